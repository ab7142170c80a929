//! Cuts a stream of bytes into lines with a bound on memory: an agent may print one line without end.

/// Longest line that is kept, in bytes. Tool results of several megabytes come as one line of JSON and must be read;
/// beyond this a line is no event of a CLI any more.
pub(crate) const LINE_MAX: usize = 8 * 1024 * 1024;

/// An incremental line splitter.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    line: Vec<u8>,
    too_long: bool,
    /// Whether the line has been handed out before its newline came.
    is_ahead: bool,
}

impl Lines {
    /// Takes bytes and hands out each line they complete, without its newline; `None` for a line beyond [`LINE_MAX`].
    pub(crate) fn feed(&mut self, mut bytes: &[u8], on_line: &mut dyn FnMut(Option<&[u8]>)) {
        while let Some(end) = bytes.iter().position(|&byte| byte == b'\n') {
            self.keep(&bytes[..end]);
            if std::mem::take(&mut self.is_ahead) && self.line.trim_ascii().is_empty() {
                self.line.clear();
            } else {
                self.hand_out(on_line);
            }
            bytes = &bytes[end + 1..];
        }
        self.keep(bytes);
    }

    /// Hands out what follows the last newline where that is one whole object of JSON: whoever says a last word without the
    /// newline, and stays, has said it.
    pub(crate) fn object(&mut self, on_line: &mut dyn FnMut(Option<&[u8]>)) {
        let is_whole = self.line.first() == Some(&b'{')
            && self.line.last() == Some(&b'}')
            && serde_json::from_slice::<&serde_json::value::RawValue>(&self.line).is_ok();
        if is_whole {
            self.hand_out(on_line);
            self.is_ahead = true;
        }
    }

    /// Hands out what follows the last newline, once the stream has ended.
    pub(crate) fn finish(&mut self, on_line: &mut dyn FnMut(Option<&[u8]>)) {
        if self.too_long || !self.line.is_empty() {
            self.hand_out(on_line);
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.too_long || self.line.len() + bytes.len() > LINE_MAX {
            self.too_long = true;
            self.line = Vec::new();
        } else {
            self.line.extend_from_slice(bytes);
        }
    }

    fn hand_out(&mut self, on_line: &mut dyn FnMut(Option<&[u8]>)) {
        if self.too_long {
            on_line(None);
        } else {
            let line = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
            on_line(Some(line));
        }
        self.too_long = false;
        self.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d03_a_last_object_without_its_newline_is_seen_and_seen_once() {
        let mut lines = Lines::default();
        let mut seen: Vec<Option<Vec<u8>>> = Vec::new();
        let mut on_line = |line: Option<&[u8]>| seen.push(line.map(<[u8]>::to_vec));
        for piece in [&b"{\"a\": {}"[..], b"}", b"\r", b"\nnext {}", b"\n{\"b\": 1}"] {
            lines.feed(piece, &mut on_line);
            lines.object(&mut on_line);
        }
        lines.finish(&mut on_line);
        let text = |text: &str| Some(text.as_bytes().to_vec());
        assert_eq!(seen, [text("{\"a\": {}}"), text("next {}"), text("{\"b\": 1}")]);
    }

    #[test]
    fn d16_an_endless_line_is_dropped_in_bounded_memory_and_the_next_one_is_seen() {
        let mut lines = Lines::default();
        let mut seen: Vec<Option<Vec<u8>>> = Vec::new();
        let mut on_line = |line: Option<&[u8]>| seen.push(line.map(<[u8]>::to_vec));
        let block = vec![b'x'; 1024 * 1024];
        for _ in 0..20 {
            lines.feed(&block, &mut on_line);
            assert!(lines.line.len() <= LINE_MAX);
        }
        lines.feed(b"\nnext\r\nrest", &mut on_line);
        lines.finish(&mut on_line);
        assert_eq!(seen, [None, Some(b"next".to_vec()), Some(b"rest".to_vec())]);
    }
}
