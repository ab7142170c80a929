//! Puts together JSON that is spread over lines for people to read: a CLI that prints one result may print it so, and what reads
//! events reads one a line. A list of events is taken apart, one a line.

use serde_json::Value;

/// Longest JSON that is put together, in bytes. What is longer is text that only begins as JSON does.
const WHOLE_MAX: usize = 1024 * 1024;

/// The lines of an object or a list that has begun and not ended.
#[derive(Debug, Default)]
pub(crate) struct Spread {
    lines: Vec<Vec<u8>>,
    bytes: usize,
    closes: Option<u8>,
}

impl Spread {
    /// Takes a line, and hands out each line there is to read, in their order; `None` is one that was too long.
    pub(crate) fn line(&mut self, line: Option<&[u8]>, on_line: &mut dyn FnMut(Option<&[u8]>)) {
        let Some(line) = line else {
            self.finish(on_line);
            return on_line(None);
        };
        match (self.closes, line.trim_ascii_end()) {
            (None, b"{") => self.begin(line, b'}'),
            (None, b"[") => self.begin(line, b']'),
            (None, _) if line.starts_with(b"[{") => take_apart(line, on_line),
            (None, _) => on_line(Some(line)),
            (Some(end), bare) => {
                self.keep(line);
                if bare == [end] {
                    self.end(on_line);
                } else if self.bytes > WHOLE_MAX {
                    self.finish(on_line);
                }
            }
        }
    }

    /// Hands out what has not ended, as it came.
    pub(crate) fn finish(&mut self, on_line: &mut dyn FnMut(Option<&[u8]>)) {
        (self.closes, self.bytes) = (None, 0);
        for line in self.lines.drain(..) {
            on_line(Some(&line));
        }
    }

    fn begin(&mut self, line: &[u8], end: u8) {
        self.closes = Some(end);
        self.keep(line);
    }

    fn keep(&mut self, line: &[u8]) {
        self.bytes += line.len() + 1;
        self.lines.push(line.to_vec());
    }

    fn end(&mut self, on_line: &mut dyn FnMut(Option<&[u8]>)) {
        match serde_json::from_slice::<Value>(&self.lines.join(&b'\n')) {
            Ok(value) if is_event(&value) || events(&value).is_some() => {
                self.lines.clear();
                let whole = value.to_string();
                take_apart(whole.as_bytes(), on_line);
            }
            _ => {}
        }
        self.finish(on_line);
    }
}

/// A list of events one by one; any other line as it is.
fn take_apart(line: &[u8], on_line: &mut dyn FnMut(Option<&[u8]>)) {
    let value: Option<Value> = line.starts_with(b"[").then(|| serde_json::from_slice(line).ok()).flatten();
    match value.as_ref().and_then(events) {
        Some(events) => events.iter().for_each(|event| on_line(Some(event.to_string().as_bytes()))),
        None => on_line(Some(line)),
    }
}

/// The events of a list that holds nothing else.
fn events(value: &Value) -> Option<&[Value]> {
    value.as_array().filter(|events| !events.is_empty() && events.iter().all(is_event)).map(Vec::as_slice)
}

/// Whether it is what a CLI prints as one line: an event, a message, a result or an error.
fn is_event(value: &Value) -> bool {
    ["type", "role", "result", "error"].iter().any(|name| value.get(name).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<String> {
        let (mut spread, mut seen) = (Spread::default(), Vec::new());
        let mut on_line =
            |line: Option<&[u8]>| seen.push(line.map_or("-".into(), |line| String::from_utf8_lossy(line).into_owned()));
        text.lines().for_each(|line| spread.line(Some(line.as_bytes()), &mut on_line));
        spread.finish(&mut on_line);
        seen
    }

    #[test]
    fn a12_what_is_spread_over_lines_is_read_as_one_and_text_stays_as_it_is() {
        let whole = r#"{"result":"x"}"#;
        assert_eq!(read("{\n  \"result\": \"x\"\n}"), [whole]);
        assert_eq!(read("before\n{\n  \"result\": \"x\"\n}\nafter"), ["before", whole, "after"]);
        assert_eq!(
            read("[\n  {\n    \"type\": \"a\"\n  },\n  {\"type\": \"b\"}\n]"),
            [r#"{"type":"a"}"#, r#"{"type":"b"}"#]
        );
        assert_eq!(read(r#"[{"type":"a"},{"type":"b"}]"#), [r#"{"type":"a"}"#, r#"{"type":"b"}"#]);
        for text in ["{\n  let x = 1;\n}", "[INFO] x\n[{1}]", "{\n  \"result\": 1", "{\n  \"other\": 1\n}\nafter"] {
            assert_eq!(read(text).join("\n"), text);
        }
    }

    #[test]
    fn text_that_only_begins_as_json_does_is_handed_out_in_bounded_memory() {
        let (mut spread, mut seen) = (Spread::default(), 0);
        let line = vec![b'x'; 1024];
        spread.line(Some(b"{"), &mut |_| seen += 1);
        for _ in 0..4096 {
            spread.line(Some(&line), &mut |_| seen += 1);
            assert!(spread.bytes <= WHOLE_MAX + line.len() + 1);
        }
        assert!(seen > 4000, "{seen}");
    }
}
