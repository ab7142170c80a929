//! From the text of a glob to its parts.

use std::iter::Peekable;
use std::str::Chars;

use super::Error;
use super::set::Set;

/// Deepest nesting of braces: people write one or two, and each level is one level of recursion.
pub(super) const DEPTH_MAX: usize = 16;

/// A part of a glob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// One symbol of the set.
    One(Set),
    /// `*`: any symbols within a segment, or none.
    Star,
    /// `**/`: any number of whole directories, or none.
    Directories,
    /// `**` at the end: at least one symbol, separators included.
    Beneath,
    /// `{…}`: one of these.
    Choice(Vec<Vec<Self>>),
}

/// Reads a whole glob.
pub(super) fn parse(glob: &str) -> Result<Vec<Part>, Error> {
    if glob.is_empty() {
        return Err(Error::Empty);
    }
    let mut parser = Parser { rest: glob.chars().peekable(), segment_start: true, depth: 0 };
    let mut parts = parser.sequence()?;
    if parser.rest.peek().is_some() {
        return Err(Error::UnpairedBrace);
    }
    if parser.segment_start && parts.last() == Some(&Part::One(Set::one('/'))) {
        parts.push(Part::Beneath);
    }
    if !beneath_only_at_the_end(&parts, true) {
        return Err(Error::DirectoriesInChoice);
    }
    Ok(parts)
}

/// [`Part::Beneath`] takes everything up to the end of the path, so nothing may follow it.
fn beneath_only_at_the_end(parts: &[Part], at_end: bool) -> bool {
    parts.iter().enumerate().all(|(i, part)| {
        let at_end = at_end && i + 1 == parts.len();
        match part {
            Part::Beneath => at_end,
            Part::Choice(choices) => choices.iter().all(|choice| beneath_only_at_the_end(choice, at_end)),
            Part::One(_) | Part::Star | Part::Directories => true,
        }
    })
}

struct Parser<'a> {
    rest: Peekable<Chars<'a>>,
    /// Nothing of the current segment has been read.
    segment_start: bool,
    depth: usize,
}

impl Parser<'_> {
    /// Reads up to the end, or up to a `,` or `}` that belongs to the braces around.
    fn sequence(&mut self) -> Result<Vec<Part>, Error> {
        let mut parts = Vec::new();
        while let Some(&c) = self.rest.peek() {
            if self.depth > 0 && (c == ',' || c == '}') {
                break;
            }
            if self.depth == 0 && c == '}' {
                return Err(Error::UnpairedBrace);
            }
            self.rest.next();
            let part = match c {
                '*' => self.star(),
                '?' => self.within(Part::One(Set::not_slash())),
                '[' => {
                    let class = self.class()?;
                    self.within(Part::One(class))
                }
                '{' => self.choice()?,
                '\\' => {
                    let c = self.rest.next().ok_or(Error::DanglingEscape)?;
                    self.literal(c)
                }
                c => self.literal(c),
            };
            parts.push(part);
        }
        Ok(parts)
    }

    fn within(&mut self, part: Part) -> Part {
        self.segment_start = false;
        part
    }

    fn literal(&mut self, c: char) -> Part {
        self.segment_start = c == '/';
        Part::One(Set::one(c))
    }

    fn star(&mut self) -> Part {
        let mut stars = 1;
        while self.rest.next_if_eq(&'*').is_some() {
            stars += 1;
        }
        if stars != 2 || !self.segment_start {
            return self.within(Part::Star);
        }
        match self.rest.peek() {
            None => self.within(Part::Beneath),
            Some(',' | '}') if self.depth > 0 => self.within(Part::Beneath),
            Some('/') => {
                self.rest.next();
                Part::Directories
            }
            Some(_) => self.within(Part::Star),
        }
    }

    fn choice(&mut self) -> Result<Part, Error> {
        if self.depth == DEPTH_MAX {
            return Err(Error::TooDeep);
        }
        self.depth += 1;
        let at_start = self.segment_start;
        let mut choices = Vec::new();
        loop {
            self.segment_start = at_start;
            choices.push(self.sequence()?);
            match self.rest.next() {
                Some(',') => {}
                Some('}') => break,
                _ => return Err(Error::UnpairedBrace),
            }
        }
        self.depth -= 1;
        // What follows braces is no start of a segment, even where one choice ends in `/`: `**` is then `*`.
        self.segment_start = false;
        Ok(Part::Choice(choices))
    }

    fn class(&mut self) -> Result<Set, Error> {
        let negated = self.rest.next_if(|&c| c == '!' || c == '^').is_some();
        let mut ranges: Vec<(char, char)> = Vec::new();
        loop {
            let c = self.rest.next().ok_or(Error::UnclosedClass)?;
            if c == ']' && !ranges.is_empty() {
                return Ok(Set::class(&ranges, negated));
            }
            let mut ahead = self.rest.clone();
            let to = match (ahead.next(), ahead.next()) {
                (Some('-'), Some(to)) if to != ']' => {
                    self.rest = ahead;
                    to
                }
                _ => c,
            };
            if to < c {
                return Err(Error::BackwardRange(c, to));
            }
            ranges.push((c, to));
        }
    }
}
