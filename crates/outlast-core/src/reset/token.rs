//! Cuts a sentence into numbers, words and signs.

/// A piece of a sentence, in lower case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Token<'a> {
    /// Digits, with a fraction where one follows.
    Number {
        /// What they amount to.
        value: f64,
        /// How many digits stand before the fraction: `07` is a month, `2026` a year, `0300` an offset.
        digits: usize,
    },
    /// Letters; a slash or an underscore between letters belongs to them, as in `america/new_york`.
    Word(&'a str),
    /// Anything else but space.
    Sign(char),
}

/// The tokens of a text.
pub(super) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let len = if first.is_ascii_digit() {
            let digits = run(rest, |c| c.is_ascii_digit());
            let fraction = rest[digits..].strip_prefix('.').map_or(0, |after| run(after, |c| c.is_ascii_digit()));
            let len = if fraction > 0 { digits + 1 + fraction } else { digits };
            // Digits without end are no number that means anything here.
            found.push(Token::Number { value: rest[..len].parse().unwrap_or(f64::INFINITY), digits });
            len
        } else if is_ideograph(first) {
            // Each is a word of its own: a year's sign stands right after its number and before the month's.
            found.push(Token::Word(&rest[..first.len_utf8()]));
            first.len_utf8()
        } else if first.is_alphabetic() {
            let letters = run(rest, |c| (c.is_alphabetic() && !is_ideograph(c)) || matches!(c, '/' | '_'));
            let len = rest[..letters].trim_end_matches(['/', '_']).len();
            found.push(Token::Word(&rest[..len]));
            len
        } else {
            // A line's end is the end of what was said.
            if first == '\n' || !first.is_whitespace() {
                found.push(Token::Sign(first));
            }
            first.len_utf8()
        };
        rest = &rest[len..];
    }
    found
}

/// How many bytes at the start of a text meet a condition.
fn run(text: &str, meets: impl Fn(char) -> bool) -> usize {
    text.find(|c| !meets(c)).unwrap_or(text.len())
}

const fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{9fff}')
}
