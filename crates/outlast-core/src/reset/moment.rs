//! A point or length of time in words, part by part: a time of day, a weekday, a date, a zone, "in 2 days 17 hours".

use std::time::Duration;

use jiff::ToSpan as _;
use jiff::civil::{Date, DateTime, Time, Weekday};
use jiff::tz::{Offset, TimeZone, TimeZoneDatabase};

use super::token::Token;
use super::{FAR, Said};
use crate::time::Timestamp;

/// What has been read of a moment.
#[derive(Debug, Clone, Default)]
pub(super) struct Moment {
    span: Option<Duration>,
    time: Option<Time>,
    day: Option<Day>,
    month: Option<i8>,
    of_month: Option<i8>,
    year: Option<i16>,
    zone: Option<TimeZone>,
    /// A number that is a day, or nothing that is known.
    loose: Option<i8>,
    /// A part of it is not understood: then none of it is.
    is_unclear: bool,
}

/// A day by another name than its date.
#[derive(Debug, Clone, Copy)]
enum Day {
    Of(Weekday),
    /// So many days from today.
    In(i32),
}

/// A date without a year that is more days ahead than this has rather just passed, in this year or in the last.
const YEARLESS_DAYS_MAX: i64 = 185;

impl Moment {
    /// Reads as far as the words are those of a moment; how many tokens that were.
    pub(super) fn read(tokens: &[Token<'_>]) -> (Self, usize) {
        let mut moment = Self::default();
        let mut at = 0;
        while let Some(read) = moment.part(&tokens[at..]) {
            at += read;
        }
        (moment, at)
    }

    /// Whether it is a date with its year and a time: nothing else looks like one.
    pub(super) fn is_full(&self) -> bool {
        self.year.is_some() && self.month.is_some() && self.time.is_some()
    }

    /// The instant, where `naive` is the zone of a date with a year that names none.
    pub(super) fn at(&self, said: Said<'_>, naive: &TimeZone) -> Option<Timestamp> {
        if self.is_unclear || self.loose.is_some() {
            return None;
        }
        if let Some(span) = self.span {
            return (span > Duration::ZERO && span <= FAR && self.time.is_none()).then(|| said.at.plus(span));
        }
        let zone = self.zone.as_ref().unwrap_or(if self.year.is_some() { naive } else { said.zone });
        let now = jiff::Timestamp::from_millisecond(said.at.as_millis()).ok()?.to_zoned_datetime(zone.clone());
        let time = self.time.unwrap_or(Time::midnight());
        let today = now.date();
        let instant = |date: Date| instant(date.to_datetime(time), zone);
        if self.month.is_some() || self.of_month.is_some() {
            return self.dated(now.datetime(), time).and_then(|at| self::instant(at, zone));
        }
        match self.day {
            Some(Day::In(days)) => instant(today.checked_add(days.days()).ok()?),
            Some(Day::Of(weekday)) => {
                let days = i32::from(today.weekday().until(weekday));
                let this = instant(today.checked_add(days.days()).ok()?)?;
                if this > said.at { Some(this) } else { instant(today.checked_add((days + 7).days()).ok()?) }
            }
            None => {
                self.time?;
                // A clock that is set forward leaves a time out, and one that is set back has it twice.
                let days = [0, 1, 2].into_iter().filter_map(|days: i32| today.checked_add(days.days()).ok());
                days.filter_map(instant).find(|found| *found > said.at)
            }
        }
    }

    /// The date; where it names no year, the next one that there is, if it is near.
    fn dated(&self, now: DateTime, time: Time) -> Option<DateTime> {
        let of_year = |year: i16| Some(Date::new(year, self.month?, self.of_month?).ok()?.to_datetime(time));
        if let Some(year) = self.year {
            return of_year(year);
        }
        let near = now.checked_add(YEARLESS_DAYS_MAX.days()).ok()?;
        // This year may have no 29th of February where the next has one.
        let years = [Some(now.year()), now.year().checked_add(1)];
        years.into_iter().flatten().filter_map(of_year).find(|at| *at > now).filter(|at| *at <= near)
    }

    /// Takes the part that the tokens begin with; nothing where none does.
    fn part(&mut self, tokens: &[Token<'_>]) -> Option<usize> {
        match tokens.first()? {
            Token::Number { value, digits } => self.number(tokens, *value, *digits),
            Token::Word(word) => self.word(word, tokens),
            // What the zone of a whole date is written behind, without a name.
            Token::Sign('+' | '-' | '−') if self.is_full() && self.zone.is_none() => {
                let (zone, read) = offset(tokens)?;
                self.zone = Some(zone);
                Some(read)
            }
            Token::Sign('/') => {
                self.is_unclear |= self.loose.is_some();
                Some(1)
            }
            Token::Sign('\n' | '\\' | '|' | '{' | '}' | ';' | '!' | '?') => None,
            Token::Sign('.') if self.time.is_some() => None,
            Token::Sign(_) => Some(1),
        }
    }

    fn number(&mut self, tokens: &[Token<'_>], value: f64, digits: usize) -> Option<usize> {
        if let Some((time, read)) = time(tokens) {
            // A second time belongs to another sentence.
            if self.time.replace(time).is_some() {
                self.is_unclear = true;
            }
            return Some(read);
        }
        if let Some((span, read)) = span(tokens) {
            if self.has_any() {
                return None;
            }
            self.span = Some(span);
            return Some(read);
        }
        if self.span.is_some() || value.fract() != 0.0 {
            return None;
        }
        if let [
            _,
            Token::Sign('-'),
            Token::Number { value: month, .. },
            Token::Sign('-'),
            Token::Number { value: day, .. },
            ..,
        ] = tokens
            && digits == 4
        {
            self.year = small(value);
            self.month = small(*month);
            self.of_month = small(*day);
            self.is_unclear |= self.month.is_none() || self.of_month.is_none();
            return Some(5);
        }
        let unit = match tokens.get(1) {
            Some(Token::Word(unit @ ("年" | "月" | "日"))) => Some(*unit),
            _ => None,
        };
        match unit {
            Some("年") => self.year = small(value),
            Some("月") => self.month = small(value),
            Some(_) => self.of_month = small(value),
            None if digits == 4 && self.month.is_some() && self.year.is_none() => self.year = small(value),
            None if self.month.is_some() && self.of_month.is_none() => self.of_month = small(value),
            None if self.loose.is_none() && digits <= 2 => self.loose = small(value),
            None => self.is_unclear = true,
        }
        Some(if unit.is_some() { 2 } else { 1 })
    }

    fn word(&mut self, word: &str, tokens: &[Token<'_>]) -> Option<usize> {
        if let Some(month) = month(word) {
            self.month = Some(month);
            self.of_month = self.loose.take();
        } else if let Some(weekday) = weekday(word) {
            // Beside a date it says nothing more.
            self.day = Some(Day::Of(weekday));
        } else if matches!(word, "tomorrow" | "today") {
            self.day = Some(Day::In(i32::from(word == "tomorrow")));
        } else if FILLING.contains(&word) || matches!(word, "t" | "st" | "nd" | "rd" | "th") {
            return Some(1);
        } else if let Some((zone, read)) = zone(word, tokens).filter(|_| self.zone.is_none()) {
            self.zone = Some(zone);
            return Some(read);
        } else {
            // In brackets behind a time stands its zone: one that is not known could be any.
            let is_bracketed = matches!(tokens.get(1), Some(Token::Sign(')')));
            let looks_like_one = matches!(word.len(), 3 | 4) && word.ends_with('t');
            self.is_unclear |= (is_bracketed || looks_like_one) && self.time.is_some() && self.zone.is_none();
            return None;
        }
        Some(1)
    }

    const fn has_any(&self) -> bool {
        self.time.is_some() || self.day.is_some() || self.month.is_some() || self.span.is_some()
    }
}

/// A length of time at the start of the tokens, and how many of them it takes.
pub(super) fn span(tokens: &[Token<'_>]) -> Option<(Duration, usize)> {
    let (mut seconds, mut read, mut end) = (0.0, 0, 0);
    while let [Token::Number { value, .. }, Token::Word(unit), ..] = &tokens[read..] {
        let Some(length) = unit_seconds(unit) else { break };
        seconds += value * length;
        read += 2;
        end = read;
        while matches!(tokens.get(read), Some(Token::Sign(',') | Token::Word("and"))) {
            read += 1;
        }
    }
    Some((super::seconds_of(seconds)?, end)).filter(|_| end > 0)
}

fn unit_seconds(unit: &str) -> Option<f64> {
    Some(match unit {
        "ms" | "millisecond" | "milliseconds" => 0.001,
        "s" | "sec" | "secs" | "second" | "seconds" | "秒" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3600.0,
        "d" | "day" | "days" => 86_400.0,
        "w" | "week" | "weeks" => 604_800.0,
        _ => return None,
    })
}

/// A time of day at the start of the tokens: `3pm`, `1:30am`, `19:01:25`, `4:15 a.m.`.
fn time(tokens: &[Token<'_>]) -> Option<(Time, usize)> {
    let Token::Number { value: hour, digits: 1 | 2 } = tokens.first()? else { return None };
    let mut read = 1;
    let mut parts = [0_f64; 2];
    for part in &mut parts {
        let [Token::Sign(':'), Token::Number { value, digits: 2 }, ..] = &tokens[read..] else { break };
        *part = *value;
        read += 2;
    }
    let is_clock = read > 1;
    let half = match &tokens[read..] {
        [Token::Word(word @ ("am" | "pm")), ..] => Some((*word == "pm", 1)),
        [Token::Word(word @ ("a" | "p")), Token::Sign('.'), Token::Word("m"), ..] => Some((*word == "p", 3)),
        _ => None,
    };
    let hour = small(*hour)?;
    let hour = match half {
        Some((is_pm, words)) => {
            read += words;
            (1..=12).contains(&hour).then_some(hour % 12 + if is_pm { 12 } else { 0 })?
        }
        None if is_clock => hour,
        None => return None,
    };
    // Half a second more is a second more: never earlier than stated.
    let time = Time::new(hour, small(parts[0])?, small::<i8>(parts[1].ceil())?.min(59), 0).ok()?;
    Some((time, read))
}

/// A zone at the start of the tokens, whose first is this word.
fn zone(word: &str, tokens: &[Token<'_>]) -> Option<(TimeZone, usize)> {
    match word {
        "utc" | "gmt" | "z" => match offset(&tokens[1..]) {
            Some((zone, read)) => Some((zone, read + 1)),
            None => Some((TimeZone::UTC, 1)),
        },
        "pt" | "pst" | "pdt" => named("America/Los_Angeles"),
        "et" | "est" | "edt" => named("America/New_York"),
        "cet" | "cest" => named("Europe/Berlin"),
        // A sign behind belongs to it and means the opposite of what it looks like: `Etc/GMT+5`.
        _ if word.contains('/') && !matches!(tokens.get(1), Some(Token::Sign('+' | '-'))) => named(word),
        _ => None,
    }
}

fn named(name: &str) -> Option<(TimeZone, usize)> {
    // The one that is compiled in: the host's files are no input of the core.
    TimeZoneDatabase::bundled().get(name).ok().map(|zone| (zone, 1))
}

/// A distance from UTC: `+8`, `-03:30`, `+0800`.
fn offset(tokens: &[Token<'_>]) -> Option<(TimeZone, usize)> {
    let [Token::Sign(sign @ ('+' | '-' | '−')), Token::Number { value, digits }, rest @ ..] = tokens else {
        return None;
    };
    let (hours, minutes, read) = match rest {
        [Token::Sign(':'), Token::Number { value: minutes, digits: 2 }, ..] => (*value, *minutes, 4),
        _ if *digits == 4 => ((value / 100.0).floor(), value % 100.0, 2),
        _ => (*value, 0.0, 2),
    };
    let seconds = small::<i32>(hours)?.checked_mul(3600)? + small::<i32>(minutes)? * 60;
    let offset = Offset::from_seconds(if *sign == '+' { seconds } else { -seconds }).ok()?;
    Some((TimeZone::fixed(offset), read))
}

/// The later of the two where a clock that is set back has it twice.
fn instant(at: DateTime, zone: &TimeZone) -> Option<Timestamp> {
    let found = zone.to_ambiguous_zoned_datetime(at).later().ok()?;
    Some(Timestamp::from_millis(found.timestamp().as_millisecond()))
}

/// A whole number that a field of a date or a time could hold.
fn small<T: TryFrom<i64>>(value: f64) -> Option<T> {
    (value.fract() == 0.0 && value.abs() < 1e6).then(|| T::try_from(value as i64).ok())?
}

/// The month that a word names, by how it begins in English, Spanish, Portuguese, French, German or Italian.
fn month(word: &str) -> Option<i8> {
    let begins = |starts: &[&str]| starts.iter().any(|start| word.starts_with(start));
    const MONTHS: [&[&str]; 12] = [
        &["jan", "ene", "gen"],
        &["feb", "fev", "fév"],
        &["mar", "mär"],
        &["apr", "abr", "avr"],
        &["may", "mai", "mag"],
        &["jun", "juin", "giu"],
        &["jul", "juil", "lug"],
        &["aug", "ago", "aoû"],
        &["sep", "set"],
        &["oct", "okt", "out", "ott"],
        &["nov"],
        &["dec", "dic", "dez", "déc"],
    ];
    // A longer word that begins like one ("market", "decide", "settings") is none.
    let is_short = word.chars().count() <= 4;
    let whole = FULL_MONTHS.contains(&word);
    let at = MONTHS.iter().position(|starts| begins(starts))?;
    (is_short || whole).then_some(at as i8 + 1)
}

const FULL_MONTHS: [&str; 47] = [
    "january",
    "february",
    "march",
    "april",
    "august",
    "september",
    "october",
    "november",
    "december",
    "enero",
    "febrero",
    "marzo",
    "abril",
    "junio",
    "julio",
    "agosto",
    "septiembre",
    "setiembre",
    "octubre",
    "noviembre",
    "diciembre",
    "janeiro",
    "fevereiro",
    "março",
    "junho",
    "julho",
    "setembro",
    "outubro",
    "novembro",
    "dezembro",
    "janvier",
    "février",
    "avril",
    "juillet",
    "septembre",
    "octobre",
    "novembre",
    "décembre",
    "januar",
    "februar",
    "oktober",
    "dezember",
    "gennaio",
    "febbraio",
    "aprile",
    "maggio",
    "giugno",
];

fn weekday(word: &str) -> Option<Weekday> {
    Some(match word {
        "monday" | "mon" => Weekday::Monday,
        "tuesday" | "tue" | "tues" => Weekday::Tuesday,
        "wednesday" | "wed" => Weekday::Wednesday,
        "thursday" | "thu" | "thurs" => Weekday::Thursday,
        "friday" | "fri" => Weekday::Friday,
        "saturday" | "sat" => Weekday::Saturday,
        "sunday" | "sun" => Weekday::Sunday,
        _ => return None,
    })
}

/// Words between the parts of a moment that say nothing.
const FILLING: [&str; 17] = [
    "at", "on", "in", "the", "after", "de", "del", "um", "uhr", "am", "by", "about", "next", "again", "is", "until",
    "of",
];
