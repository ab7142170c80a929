//! Cuts a stream of server-sent events into events as its bytes pass, however they are split.
//!
//! Only looks: the bytes themselves are passed on by someone else, unframed and unchanged. Source of the framing:
//! WHATWG HTML, "Server-sent events" (lines end in LF, CR or CRLF; a blank line ends an event).

use std::borrow::Cow;

use memchr::memchr2;

/// The longest event that is kept for reading; a longer one is passed over.
const EVENT_BYTES_MAX: usize = 32 << 20;

/// Keeps the event that is not complete yet.
#[derive(Debug, Default)]
pub(crate) struct Scanner {
    carry: Vec<u8>,
    /// How far `carry` has been searched for the event's end.
    searched: usize,
    /// An event grew past [`EVENT_BYTES_MAX`]: it is dropped up to its end.
    overlong: bool,
}

impl Scanner {
    /// Takes the next bytes and calls `on_event` with every event they complete.
    pub(crate) fn feed(&mut self, bytes: &[u8], mut on_event: impl FnMut(&[u8])) {
        if self.carry.is_empty() {
            let (used, searched) = complete_events(bytes, 0, &mut on_event);
            self.keep(&bytes[used..], searched - used);
            return;
        }
        self.carry.extend_from_slice(bytes);
        let overlong = std::mem::take(&mut self.overlong);
        let mut first = true;
        let (used, searched) = complete_events(&self.carry, self.searched, &mut |event| {
            if !(std::mem::take(&mut first) && overlong) {
                on_event(event);
            }
        });
        self.overlong = overlong && used == 0;
        self.carry.drain(..used);
        self.searched = searched - used;
        self.bound();
    }

    /// Takes the end of the stream: what was begun counts as an event, as an answer may lack its last blank line.
    pub(crate) fn finish(&mut self, mut on_event: impl FnMut(&[u8])) {
        if !self.carry.is_empty() && !self.overlong {
            on_event(&self.carry);
        }
        self.carry.clear();
    }

    fn keep(&mut self, rest: &[u8], searched: usize) {
        self.carry.extend_from_slice(rest);
        self.searched = searched;
        self.bound();
    }

    fn bound(&mut self) {
        if self.carry.len() > EVENT_BYTES_MAX {
            let tail = self.carry.split_off(self.searched);
            self.carry = tail;
            self.searched = 0;
            self.overlong = true;
        }
    }
}

/// Reports every complete event in `bytes`, looking for the first one's end from `from`.
///
/// Returns how many bytes those events take, and up to where the rest needs no second look.
fn complete_events(bytes: &[u8], from: usize, on_event: &mut impl FnMut(&[u8])) -> (usize, usize) {
    let mut start = 0;
    let mut at = from;
    loop {
        // Blank lines before an event belong to none.
        while start >= from && matches!(bytes.get(start), Some(b'\n' | b'\r')) {
            start += 1;
            at = at.max(start);
        }
        match event_end(bytes, at) {
            Ok(end) => {
                on_event(&bytes[start..end]);
                start = end;
                at = end;
            }
            Err(searched) => return (start, searched.max(start)),
        }
    }
}

/// The offset after the blank line that ends the event; else from where to look again once there are more bytes.
fn event_end(bytes: &[u8], mut at: usize) -> Result<usize, usize> {
    loop {
        let Some(found) = bytes.get(at..).and_then(|rest| memchr2(b'\n', b'\r', rest)) else {
            return Err(bytes.len());
        };
        let line_end = at + found;
        let after = match (bytes[line_end], bytes.get(line_end + 1)) {
            (_, None) => return Err(line_end),
            (b'\r', Some(b'\n')) => line_end + 2,
            _ => line_end + 1,
        };
        match (bytes.get(after), bytes.get(after + 1)) {
            (None, _) => return Err(line_end),
            (Some(b'\r'), Some(b'\n')) => return Ok(after + 2),
            (Some(b'\n' | b'\r'), _) => return Ok(after + 1),
            (Some(_), _) => at = after,
        }
    }
}

/// Whether an event's first line names it so.
pub(crate) fn is_named(event: &[u8], is_meant: impl FnOnce(&[u8]) -> bool) -> bool {
    let Some(rest) = event.strip_prefix(b"event:") else { return false };
    let name = rest.split(|b| matches!(b, b'\n' | b'\r')).next().unwrap_or_default();
    is_meant(name.strip_prefix(b" ").unwrap_or(name))
}

/// The data of an event: its `data:` lines joined by line feeds.
pub(crate) fn data(event: &[u8]) -> Cow<'_, [u8]> {
    let mut lines = event.split(|b| matches!(b, b'\n' | b'\r')).filter_map(|line| {
        let value = line.strip_prefix(b"data:")?;
        Some(value.strip_prefix(b" ").unwrap_or(value))
    });
    let Some(first) = lines.next() else {
        return Cow::Borrowed(b"");
    };
    let Some(second) = lines.next() else {
        return Cow::Borrowed(first);
    };
    let mut joined = [first, b"\n", second].concat();
    for line in lines {
        joined.push(b'\n');
        joined.extend_from_slice(line);
    }
    Cow::Owned(joined)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn events(chunks: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut scanner = Scanner::default();
        let mut found = Vec::new();
        for chunk in chunks {
            scanner.feed(chunk, |e| found.push(data(e).into_owned()));
        }
        scanner.finish(|e| found.push(data(e).into_owned()));
        found.retain(|d| !d.is_empty());
        found
    }

    #[test]
    fn every_line_ending_ends_an_event() {
        for eol in ["\n", "\r\n", "\r"] {
            let text =
                ["event: a", "data: {\"x\":1}", "", ": comment", "", "data:two", "data: lines", "", "data: last"]
                    .join(eol);
            let expected: Vec<Vec<u8>> = vec![b"{\"x\":1}".to_vec(), b"two\nlines".to_vec(), b"last".to_vec()];
            assert_eq!(events(&[text.as_bytes()]), expected, "{eol:?}");
            for cut in 0..=text.len() {
                let (a, b) = text.as_bytes().split_at(cut);
                assert_eq!(events(&[a, b]), expected, "{eol:?} cut at {cut}");
            }
            let single: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
            assert_eq!(events(&single), expected, "{eol:?} byte by byte");
        }
    }

    #[test]
    fn an_overlong_event_is_passed_over_and_the_next_one_read() {
        let mut scanner = Scanner::default();
        let mut found = Vec::new();
        let piece = vec![b'x'; 1 << 20];
        scanner.feed(b"data: ", |e| found.push(e.to_vec()));
        for _ in 0..40 {
            scanner.feed(&piece, |e| found.push(e.to_vec()));
        }
        assert!(scanner.carry.len() <= EVENT_BYTES_MAX + piece.len());
        scanner.feed(b"\n\ndata: ok\n\n", |e| found.push(data(e).into_owned()));
        assert_eq!(found, [b"ok".to_vec()]);
    }

    #[test]
    fn an_event_is_named_by_its_first_line_alone() {
        for (event, expected) in [
            ("event: a.delta\ndata: x\n\n", true),
            ("event:a.delta\r\ndata: x\r\n\r\n", true),
            ("event: a.delta", true),
            ("event:  a.delta\n", false),
            ("event: a.delta2\n", false),
            ("data: x\nevent: a.delta\n\n", false),
            ("data: event: a.delta\n\n", false),
            ("", false),
        ] {
            assert_eq!(is_named(event.as_bytes(), |name| name == b"a.delta"), expected, "{event:?}");
        }
    }

    proptest! {
        #[test]
        fn splitting_never_changes_what_is_found(text in "(data: ?[a-z]{0,4}|:c|event: x|\n|\r\n|\r){0,20}", cuts in proptest::collection::vec(0usize..80, 0..6)) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(bytes.len())).collect();
            cuts.sort_unstable();
            let mut chunks = Vec::new();
            let mut from = 0;
            for cut in cuts.into_iter().chain([bytes.len()]) {
                chunks.push(&bytes[from..cut]);
                from = cut;
            }
            prop_assert_eq!(events(&chunks), events(&[bytes]));
        }
    }
}
