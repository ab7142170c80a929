//! Splits one line of a script into words, JSON strings and the rest of the line. It knows no step.

/// A reader over one line; every method answers `Err` with a sentence fragment for the author.
pub(super) struct Line<'a> {
    rest: &'a str,
}

impl<'a> Line<'a> {
    /// Starts at the beginning of a line.
    pub(super) fn new(line: &'a str) -> Self {
        Self { rest: line.trim() }
    }

    /// Takes a bare word or a JSON string.
    pub(super) fn word(&mut self, what: &str) -> Result<String, String> {
        self.rest = self.rest.trim_start();
        if self.rest.is_empty() {
            return Err(format!("{what} is missing"));
        }
        if self.rest.starts_with('"') {
            let mut values = serde_json::Deserializer::from_str(self.rest).into_iter::<String>();
            let text = match values.next() {
                Some(Ok(text)) => text,
                Some(Err(error)) => return Err(format!("{what} is not a JSON string: {error}")),
                None => return Err(format!("{what} is missing")),
            };
            self.rest = &self.rest[values.byte_offset()..];
            return Ok(text);
        }
        let end = self.rest.find(char::is_whitespace).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        Ok(word.to_owned())
    }

    /// Takes a JSON string, or everything up to the end of the line as it stands.
    pub(super) fn text(&mut self, what: &str) -> Result<String, String> {
        self.rest = self.rest.trim_start();
        if self.rest.starts_with('"') {
            return self.word(what);
        }
        if self.rest.is_empty() {
            return Err(format!("{what} is missing"));
        }
        Ok(std::mem::take(&mut self.rest).to_owned())
    }

    /// Takes a number.
    pub(super) fn number<T: std::str::FromStr>(&mut self, what: &str) -> Result<T, String> {
        let word = self.word(what)?;
        word.parse().map_err(|_| format!("{what} must be a number, not `{word}`"))
    }

    /// Takes a count, if one comes before anything else.
    pub(super) fn leading_count(&mut self) -> Result<Option<u64>, String> {
        if self.rest.trim_start().starts_with(|c: char| c.is_ascii_digit()) {
            return self.number("the count").map(Some);
        }
        Ok(None)
    }

    /// Takes the end mark of a `<<MARK` block, if the rest of the line is one.
    pub(super) fn block_mark(&mut self) -> Option<&'a str> {
        let mark = self.rest.trim().strip_prefix("<<")?.trim();
        if mark.is_empty() || mark.contains(char::is_whitespace) {
            return None;
        }
        self.rest = "";
        Some(mark)
    }

    /// Takes the rest of the line as JSON.
    pub(super) fn json<T: serde::de::DeserializeOwned>(&mut self, what: &str) -> Result<T, String> {
        let rest = std::mem::take(&mut self.rest);
        serde_json::from_str(rest).map_err(|error| format!("{what}: {error}"))
    }

    /// Whether nothing is left.
    pub(super) fn is_empty(&self) -> bool {
        self.rest.trim().is_empty()
    }

    /// Refuses what is left over.
    pub(super) fn end(self) -> Result<(), String> {
        if self.is_empty() { Ok(()) } else { Err(format!("unexpected `{}` at the end", self.rest.trim())) }
    }
}
