//! Reads an agent's output as it arrives: raw bytes in, events out.
//!
//! Feeding the same bytes in other pieces gives the same events, so a restarted engine may read the files again from
//! their start.

use crate::event::Event;
use crate::lines::Lines;
use crate::spread::Spread;

/// Where bytes came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Turns the lines of one CLI into events.
pub(crate) trait Parse: Send {
    /// Reads one line of standard output.
    fn line(&mut self, line: &[u8], events: &mut Vec<Event>);

    /// Reads one line of standard error; by default it is kept as it is.
    fn complaint(&mut self, line: &str, events: &mut Vec<Event>) {
        events.push(Event::Complaint(line.to_owned()));
    }

    /// Says what only the end of the output tells.
    fn end(&mut self, _events: &mut Vec<Event>) {}
}

/// Reads the output of one attempt.
pub struct Reader {
    stdout: Lines,
    spread: Spread,
    stderr: Lines,
    parse: Box<dyn Parse>,
}

impl Reader {
    /// A reader over a CLI's own line format.
    pub(crate) fn new(parse: impl Parse + 'static) -> Self {
        Self { stdout: Lines::default(), spread: Spread::default(), stderr: Lines::default(), parse: Box::new(parse) }
    }

    /// Takes the next bytes of one stream; a line may be split anywhere.
    pub fn feed(&mut self, source: Source, bytes: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        let (parse, spread) = (&mut *self.parse, &mut self.spread);
        match source {
            Source::Stdout => {
                let mut on_line = |line: Option<&[u8]>| {
                    spread.line(line, &mut |line| read(parse, source, line, &mut events));
                };
                self.stdout.feed(bytes, &mut on_line);
                self.stdout.object(&mut on_line);
            }
            Source::Stderr => self.stderr.feed(bytes, &mut |line| read(parse, source, line, &mut events)),
        }
        events
    }

    /// Reads what is left when both streams have ended.
    pub fn finish(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        let (parse, spread) = (&mut *self.parse, &mut self.spread);
        let mut on_line = |line: Option<&[u8]>| read(parse, Source::Stdout, line, &mut events);
        self.stdout.finish(&mut |line| spread.line(line, &mut on_line));
        spread.finish(&mut on_line);
        self.stderr.finish(&mut |line| read(parse, Source::Stderr, line, &mut events));
        parse.end(&mut events);
        events
    }
}

/// Longest line of text kept as one event, in bytes.
const TEXT_MAX: usize = 2_000;

fn text_of(line: &[u8]) -> String {
    String::from_utf8_lossy(&line[..line.len().min(TEXT_MAX)]).into_owned()
}

fn read(parse: &mut dyn Parse, source: Source, line: Option<&[u8]>, events: &mut Vec<Event>) {
    match (source, line) {
        (_, None) => events.push(Event::Skipped),
        (Source::Stdout, Some(line)) => {
            let from = events.len();
            parse.line(line, events);
            events.extract_if(from.., |event| !can_be_named(event)).for_each(drop);
            if events.len() == from && line.first() != Some(&b'{') && !line.trim_ascii().is_empty() {
                events.push(Event::Stray(text_of(line)));
            }
        }
        (Source::Stderr, Some(line)) => {
            let text = text_of(line);
            if !text.trim().is_empty() {
                parse.complaint(text.trim_end(), events);
            }
        }
    }
}

/// Longest name of a session that is taken for one, in bytes: those of the known CLIs have 40.
const SESSION_MAX: usize = 512;

/// Whether what an event names can be handed to a program again: a session goes into the arguments of the next attempt.
fn can_be_named(event: &Event) -> bool {
    match event {
        Event::SessionSeen(id) => id.len() <= SESSION_MAX && !id.chars().any(char::is_control),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::messages::Messages;

    #[test]
    fn a_session_that_no_program_could_be_given_is_none() {
        let sessions = |id: &str| {
            let mut reader = Reader::new(Messages::default());
            let line = format!("{{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"{id}\"}}\n");
            let events = reader.feed(Source::Stdout, line.as_bytes());
            events.iter().filter(|event| matches!(event, Event::SessionSeen(_))).count()
        };
        assert_eq!(sessions("s-1"), 1);
        assert_eq!(sessions("s\\u0000-1"), 0);
        assert_eq!(sessions(&"s".repeat(600)), 0);
    }
}
