//! Dates and durations as `--to-datetime` and `--by-duration` take them.
//!
//! ```text
//! YYYY-MM-DDThh:mm[:ss[.sss]][Z|+hh|+hhmm|+hh:mm]       without a zone: UTC
//! PnDTnHnMn.nS                                          any part may be missing
//! ```

const DAY_MS: i64 = 86_400_000;

/// Milliseconds since 1970.
pub fn date_time_ms(text: &str) -> Option<i64> {
    let (date, time) = text.split_once('T')?;
    let mut parts = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let (time, zone_ms) = split_zone(time)?;
    let mut parts = time.splitn(3, ':');
    let hour: i64 = parts.next()?.parse().ok()?;
    let minute: i64 = parts.next()?.parse().ok()?;
    let seconds = parts.next().map_or(Some(0), seconds_ms)?;
    if hour > 23 || minute > 59 {
        return None;
    }
    let of_day = (hour * 60 + minute) * 60_000 + seconds;
    Some(days_since_1970(year, month, day) * DAY_MS + of_day - zone_ms)
}

fn split_zone(time: &str) -> Option<(&str, i64)> {
    if let Some(time) = time.strip_suffix('Z') {
        return Some((time, 0));
    }
    let Some(at) = time.rfind(['+', '-']) else {
        return Some((time, 0));
    };
    let (time, zone) = time.split_at(at);
    let digits: String = zone[1..].chars().filter(|c| *c != ':').collect();
    let hours: i64 = digits.get(..2)?.parse().ok()?;
    let minutes: i64 = match digits.get(2..4) {
        Some(minutes) => minutes.parse().ok()?,
        None => 0,
    };
    let ms = (hours * 60 + minutes) * 60_000;
    Some((time, if zone.starts_with('-') { -ms } else { ms }))
}

/// `5`, `5.25`
fn seconds_ms(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole: i64 = whole.parse().ok()?;
    let mut digits: String = fraction.chars().take(3).collect();
    while digits.len() < 3 {
        digits.push('0');
    }
    Some(whole * 1000 + digits.parse::<i64>().ok()?)
}

/// Days of the Gregorian calendar, counted in eras of 400 years that begin in March.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year - era * 400;
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

pub fn duration_ms(text: &str) -> Option<i64> {
    let rest = text.strip_prefix(['P', 'p'])?;
    let (days, time) = match rest.split_once(['T', 't']) {
        Some((days, time)) => (days, Some(time)),
        None => (rest, None),
    };
    let mut total = 0_i64;
    if !days.is_empty() {
        let days = days.strip_suffix(['D', 'd'])?;
        total += days.parse::<i64>().ok()?.checked_mul(DAY_MS)?;
    }
    let Some(mut time) = time else {
        return (!days.is_empty()).then_some(total);
    };
    if time.is_empty() {
        return None;
    }
    while !time.is_empty() {
        let end = time.find(|c: char| c.is_ascii_alphabetic())?;
        let (number, unit) = (&time[..end], &time[end..end + 1]);
        total += match unit {
            "H" | "h" => number.parse::<i64>().ok()?.checked_mul(3_600_000)?,
            "M" | "m" => number.parse::<i64>().ok()?.checked_mul(60_000)?,
            "S" | "s" => seconds_ms(number)?,
            _ => return None,
        };
        time = &time[end + 1..];
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_durations() {
        assert_eq!(date_time_ms("1970-01-01T00:00:00.000"), Some(0));
        assert_eq!(date_time_ms("2020-02-29T12:30:05.25Z"), Some(1_582_979_405_250));
        assert_eq!(date_time_ms("2020-01-01T00:00+01:00"), Some(1_577_833_200_000));
        for bad in ["", "2020-01-01", "2020-13-01T00:00", "2020-01-01T25:00"] {
            assert_eq!(date_time_ms(bad), None, "{bad}");
        }
        assert_eq!(duration_ms("PT1S"), Some(1000));
        assert_eq!(duration_ms("P1DT2H3M4.5S"), Some(93_784_500));
        for bad in ["", "P", "PT", "1S", "PT1X", "P1"] {
            assert_eq!(duration_ms(bad), None, "{bad}");
        }
    }
}
