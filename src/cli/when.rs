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

/// `yyyy-MM-dd HH:mm:ss:SSS`, in UTC.
pub fn show_ms(at_ms: i64) -> String {
    let (day, of_day) = (at_ms.div_euclid(DAY_MS), at_ms.rem_euclid(DAY_MS));
    let shifted = day + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted - era * 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute) = (of_day / 3_600_000, of_day / 60_000 % 60);
    let (second, ms) = (of_day / 1000 % 60, of_day % 1000);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}:{ms:03}")
}

/// `yyyy-MM-dd HH:mm:ss,SSS`, as log lines have it.
pub fn log_time(at_ms: i64) -> String {
    let mut text = show_ms(at_ms);
    if let Some(at) = text.rfind(':') {
        text.replace_range(at..=at, ",");
    }
    text
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
        assert_eq!(
            date_time_ms("2020-02-29T12:30:05.25Z"),
            Some(1_582_979_405_250)
        );
        assert_eq!(
            date_time_ms("2020-01-01T00:00+01:00"),
            Some(1_577_833_200_000)
        );
        for bad in ["", "2020-01-01", "2020-13-01T00:00", "2020-01-01T25:00"] {
            assert_eq!(date_time_ms(bad), None, "{bad}");
        }
        assert_eq!(show_ms(1_582_979_405_250), "2020-02-29 12:30:05:250");
        assert_eq!(show_ms(1_704_067_199_999), "2023-12-31 23:59:59:999");
        assert_eq!(log_time(1_704_067_199_999), "2023-12-31 23:59:59,999");
        assert_eq!(duration_ms("PT1S"), Some(1000));
        assert_eq!(duration_ms("P1DT2H3M4.5S"), Some(93_784_500));
        for bad in ["", "P", "PT", "1S", "PT1X", "P1"] {
            assert_eq!(duration_ms(bad), None, "{bad}");
        }
    }
}
