//! The output of a program that is no known agent: text, and where it prints the events of an agent, those.
//!
//! Only the exit code of such a program decides; what is read here is shown, never judged.

use super::messages::Messages;
use super::shorten;
use crate::event::Event;
use crate::reader::Parse;

/// Parser of any program's output.
#[derive(Debug, Default)]
pub(crate) struct Plain {
    messages: Messages,
    text: Option<String>,
}

/// How much of the last lines is kept as the program's closing words, in bytes: a closing account fits many times.
const TEXT_MAX: usize = 64 * 1024;

impl Parse for Plain {
    fn line(&mut self, line: &[u8], events: &mut Vec<Event>) {
        if line.first() == Some(&b'{') {
            let before = events.len();
            self.messages.line(line, events);
            if events.len() > before {
                return;
            }
        }
        let text = self.text.get_or_insert_default();
        text.push_str(&String::from_utf8_lossy(line));
        text.push('\n');
        if text.len() > 2 * TEXT_MAX {
            let cut = text.ceil_char_boundary(text.len() - TEXT_MAX);
            text.drain(..cut);
        }
        if !line.trim_ascii().is_empty() {
            events.push(Event::Text(shorten(&String::from_utf8_lossy(line))));
        }
    }

    fn end(&mut self, events: &mut Vec<Event>) {
        if let Some(text) = self.text.take() {
            events.push(Event::Printed(text.trim_end().to_owned()));
        }
    }
}
