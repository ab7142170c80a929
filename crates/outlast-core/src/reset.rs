//! When a limit ends, out of what a provider or an agent's CLI says about it: one parser for every form.
//!
//! Pure: text, the moment at which it was said and the host's zone in, an instant out. What cannot be read whole is
//! unknown, and never a part of it: a date whose day is not understood must not count as a time of today. An instant
//! is later than the moment at which it was said, and never earlier than stated.

mod moment;
mod token;

use std::time::Duration;

use jiff::tz::{Offset, TimeZone};

use crate::time::Timestamp;
use moment::Moment;
use token::{Token, tokens};

/// When something was said, and where.
#[derive(Debug, Clone, Copy)]
pub struct Said<'a> {
    /// When: a time of day is the next one after this.
    pub at: Timestamp,
    /// The zone of a time that names none.
    pub zone: &'a TimeZone,
}

/// What is further away is no reset, whoever says so.
const FAR: Duration = Duration::from_secs(366 * 86_400);

/// Names that a value stands after, in bodies, headers and events, the more certain first: what is relative needs no
/// clock of ours to agree with theirs.
const NAMED: [(&str, Form); 11] = [
    ("resets_in_seconds", Form::Span),
    ("retry-after-ms", Form::Millis),
    ("quotaresettimestamp", Form::Instant),
    ("quotaresetdelay", Form::Span),
    ("retrydelay", Form::Span),
    ("resets_at", Form::Instant),
    ("resetsat", Form::Instant),
    ("reset_at", Form::Instant),
    ("reset_time", Form::Instant),
    ("retry-after", Form::Span),
    ("retry_after", Form::Span),
];

/// What a value is.
#[derive(Clone, Copy)]
enum Form {
    /// A length of time; a bare number is seconds.
    Span,
    /// Milliseconds.
    Millis,
    /// An epoch or a date.
    Instant,
}

/// When the text says that the limit ends; nothing where it does not say, or not in a form that is known.
///
/// What is named (`"resets_at": …`) goes before sentences; of several sentences the latest counts.
pub fn stated(text: &str, said: Said<'_>) -> Option<Timestamp> {
    let text = text.to_lowercase();
    let found = named(&text, said).or_else(|| after_a_bar(&text)).or_else(|| in_words(&text, said))?;
    within(found, said.at)
}

/// When a limit ends by what an agent says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// As it was stated.
    Stated(Timestamp),
    /// It was stated for later than the window lasts, and is looked for when that is over.
    Cut(Timestamp),
}

impl End {
    /// The instant at which to try again.
    pub const fn at(self) -> Timestamp {
        match self {
            Self::Stated(at) | Self::Cut(at) => at,
        }
    }
}

/// As [`stated`], for what an agent's CLI prints: a limit ends no later than the window that is named lasts, and where none is
/// named no later than a month, which is the longest that any provider has.
pub fn reported(text: &str, said: Said<'_>) -> Option<End> {
    stated(text, said).map(|found| bounded(found, said.at, text))
}

/// An end that was stated, but no later than the window lasts that a text names; an hour later is believed, since clocks are
/// changed and do not agree.
pub fn bounded(found: Timestamp, said_at: Timestamp, text: &str) -> End {
    const HOUR: Duration = Duration::from_secs(3600);
    let longest = longest(text);
    if found.since(said_at) <= longest + HOUR { End::Stated(found) } else { End::Cut(said_at.plus(longest)) }
}

/// The longest that a limit can last of which a text speaks.
fn longest(text: &str) -> Duration {
    const HOUR: Duration = Duration::from_secs(3600);
    let text = text.to_lowercase();
    let names = |names: &[&str]| names.iter().any(|name| text.contains(name));
    let hours = match () {
        // Where several are named it may be the longest of them.
        () if names(&["month", "billing cycle"]) => 31 * 24,
        () if names(&["week", "seven_day", "seven day", "7-day", "7 day"]) => 7 * 24,
        () if names(&["5-hour", "5 hour", "five_hour", "five hour", "session limit"]) => 5,
        () => 31 * 24,
    };
    HOUR * hours
}

/// A length of time as headers and bodies write it: `12`, `500ms`, `6m0s`, `1m30.5s`, `4h28m20s`, `2 days 3 hours`. A bare
/// number is seconds. Nothing for what is none, or longer than a year.
pub fn span(text: &str) -> Option<Duration> {
    let text = text.trim().trim_matches('"').to_lowercase();
    if let Ok(seconds) = text.parse::<f64>() {
        return seconds_of(seconds);
    }
    let tokens = tokens(&text);
    let (span, read) = moment::span(&tokens)?;
    (read == tokens.len()).then_some(span).filter(|span| *span <= FAR)
}

/// An instant given as seconds, or as milliseconds, since the Unix epoch.
pub fn epoch(value: f64) -> Option<Timestamp> {
    // Past this the number can only be milliseconds: as seconds it would be the year 5138.
    const SECONDS_MAX: f64 = 1e11;
    // Before this it is some other number: as seconds it is in the year 2001.
    const SECONDS_MIN: f64 = 1e9;
    if !(SECONDS_MIN..1e15).contains(&value) {
        return None;
    }
    let millis = if value < SECONDS_MAX { value * 1000.0 } else { value };
    Some(Timestamp::from_millis(millis.ceil() as i64))
}

/// Seconds as a length of time; nothing for what is none: negative, not a number, longer than a year.
pub fn seconds_of(seconds: f64) -> Option<Duration> {
    (0.0..=FAR.as_secs_f64()).contains(&seconds).then(|| Duration::from_secs_f64(seconds))
}

/// An instant that a limit may end at: after it was said, and not further away than any limit.
pub fn within(found: Timestamp, said_at: Timestamp) -> Option<Timestamp> {
    (found > said_at && found.since(said_at) <= FAR).then_some(found)
}

/// The value after the first known name that has one.
fn named(text: &str, said: Said<'_>) -> Option<Timestamp> {
    NAMED.iter().find_map(|(name, form)| {
        text.match_indices(name).find_map(|(at, _)| {
            let value = text[at + name.len()..].trim_start_matches(['"', '\\', ':', '=', ' ', '\'']);
            let end = value.find(['"', '\\', ',', '}', '\n', '\'', ';', ')']).unwrap_or(value.len());
            let value = value[..end].trim();
            match form {
                Form::Span => Some(said.at.plus(span(value)?)),
                Form::Millis => Some(said.at.plus(seconds_of(value.parse::<f64>().ok()? / 1000.0)?)),
                Form::Instant => match value.parse::<f64>() {
                    Ok(number) => epoch(number),
                    Err(_) => {
                        let (moment, _) = Moment::read(&tokens(value));
                        moment.is_full().then(|| moment.at(said, said.zone))?
                    }
                },
            }
            .filter(|found| *found > said.at)
        })
    })
}

/// Claude Code's oldest form: `…reached|1762952400`.
fn after_a_bar(text: &str) -> Option<Timestamp> {
    text.split('|').skip(1).find_map(|rest| {
        let digits = rest.trim_start();
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        matches!(end, 10 | 13).then(|| epoch(digits[..end].parse().ok()?))?
    })
}

/// The latest of what sentences say: after a word such as "resets", or a whole date with its year and a time.
fn in_words(text: &str, said: Said<'_>) -> Option<Timestamp> {
    let zone = naive_zone(text, said);
    let tokens = tokens(text);
    let mut latest = None;
    let mut at = 0;
    while at < tokens.len() {
        let is_announced = at > 0 && matches!(&tokens[at - 1], Token::Word(word) if announces(word));
        // A number in the midst of another date is no beginning of one.
        if !is_announced && !matches!(tokens[at], Token::Number { .. } | Token::Word(_)) {
            at += 1;
            continue;
        }
        let (moment, read) = Moment::read(&tokens[at..]);
        if is_announced || moment.is_full() {
            latest = latest.max(moment.at(said, &zone).filter(|found| *found > said.at));
            at += read.max(1);
        } else {
            at += 1;
        }
    }
    latest
}

/// Whether a time follows at which one may come back.
fn announces(word: &str) -> bool {
    word.starts_with("reset") || matches!(word, "again" | "retry" | "refreshes" | "renews")
}

/// The zone of a date that names none. GLM's are of its own clock; of all others nothing else is known than ours.
fn naive_zone(text: &str, said: Said<'_>) -> TimeZone {
    let is_theirs = text.contains("重置") || text.contains("usage limit reached for");
    match Offset::from_hours(8) {
        Ok(offset) if is_theirs => TimeZone::fixed(offset),
        _ => said.zone.clone(),
    }
}

#[cfg(test)]
mod tests;
