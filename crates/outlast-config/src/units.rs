//! Values with a unit: durations, hours of the day, money.

use std::time::Duration;

/// Reads a duration such as `90s`, `20m` or `1h30m`: whole numbers with the units `d`, `h`, `m`, `s`, `ms`, large to small.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];
    let mut rest = text.trim();
    let mut total: u64 = 0;
    let mut smallest = u64::MAX;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: u64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let (_, millis) = UNITS.into_iter().find(|(name, _)| *name == &rest[..letters])?;
        if millis >= smallest {
            return None;
        }
        smallest = millis;
        total = total.checked_add(number.checked_mul(millis)?)?;
        rest = rest[letters..].trim_start();
    }
    (smallest != u64::MAX).then(|| Duration::from_millis(total))
}

/// Hours of the day between which something is allowed; may pass midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hours {
    /// First minute of the day, from 0.
    pub from_minute: u16,
    /// First minute of the day that is no longer in it, up to 1440.
    pub to_minute: u16,
}

impl Hours {
    /// Tells whether a minute of the day lies in them.
    pub fn has(self, minute: u16) -> bool {
        if self.from_minute <= self.to_minute {
            (self.from_minute..self.to_minute).contains(&minute)
        } else {
            minute >= self.from_minute || minute < self.to_minute
        }
    }
}

/// Reads hours such as `22:00-08:00`.
pub(crate) fn hours(text: &str) -> Option<Hours> {
    let (from, to) = text.split_once('-')?;
    let (from_minute, to_minute) = (minute(from)?, minute(to)?);
    (from_minute != to_minute && from_minute < 1440).then_some(Hours { from_minute, to_minute })
}

fn minute(text: &str) -> Option<u16> {
    let (hours, minutes) = text.trim().split_once(':')?;
    let two_digits = |s: &str| s.len() == 2 && s.bytes().all(|b| b.is_ascii_digit());
    if !two_digits(hours) || !two_digits(minutes) {
        return None;
    }
    let (hours, minutes): (u16, u16) = (hours.parse().ok()?, minutes.parse().ok()?);
    (minutes < 60).then_some(hours * 60 + minutes).filter(|&minute| minute <= 1440)
}

/// Turns US dollars into millionths, if they are a sensible sum.
pub fn usd_micros(usd: f64) -> Option<u64> {
    /// A billion dollars: beyond it is a slip of the pen, and far below it a float still holds a millionth.
    const USD_MAX: f64 = 1e9;
    if !(usd > 0.0 && usd <= USD_MAX) {
        return None;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and 1e15 by the check above"
    )]
    let micros = (usd * 1e6).round() as u64;
    (micros > 0).then_some(micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_need_units_in_falling_order() {
        assert_eq!(duration("20m"), Some(Duration::from_secs(1200)));
        assert_eq!(duration("1h30m"), Some(Duration::from_secs(5400)));
        assert_eq!(duration("1h 30m 5s"), Some(Duration::from_secs(5405)));
        assert_eq!(duration("250ms"), Some(Duration::from_millis(250)));
        for bad in ["", "20", "m", "5m1h", "1m1m", "1.5h", "-1m", "99999999999999999999d", "20 minutes", "١m"] {
            assert_eq!(duration(bad), None, "{bad}");
        }
    }

    #[test]
    fn hours_and_money_stay_in_range() {
        let night = hours("22:00-08:00").unwrap();
        assert!(night.has(0) && night.has(22 * 60) && !night.has(8 * 60) && !night.has(12 * 60));
        assert!(hours("00:00-24:00").unwrap().has(1439));
        for bad in ["22-8", "25:00-08:00", "08:00-08:00", "8:00-9:00", "08:60-09:00", "24:00-01:00"] {
            assert_eq!(hours(bad), None, "{bad}");
        }
        assert_eq!(usd_micros(40.0), Some(40_000_000));
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300, 1e-9] {
            assert_eq!(usd_micros(bad), None, "{bad}");
        }
    }
}
