//! Durations as `share.auto.offset.reset=by_duration:` has them: ISO 8601 of days, hours, minutes
//! and seconds, `PnDTnHnMn.nS`, each part optional, each with an optional sign.

/// `None` unless `text` is a duration.
pub fn milliseconds(text: &str) -> Option<i64> {
    let upper = text.to_ascii_uppercase();
    let (sign, rest) = match upper.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, upper.strip_prefix('+').unwrap_or(&upper)),
    };
    let rest = rest.strip_prefix('P')?;
    let (date, time) = match rest.split_once('T') {
        Some((_, "")) => return None,
        Some((date, time)) => (date, time),
        None => (rest, ""),
    };
    if date.is_empty() && time.is_empty() {
        return None;
    }
    let mut total = 0i64;
    let left = part(date, 'D', 24 * 60 * 60 * 1000, &mut total)?;
    if !left.is_empty() {
        return None;
    }
    let left = part(time, 'H', 60 * 60 * 1000, &mut total)?;
    let left = part(left, 'M', 60 * 1000, &mut total)?;
    if left.is_empty() {
        return total.checked_mul(sign);
    }
    total = total.checked_add(seconds(left.strip_suffix('S')?)?)?;
    total.checked_mul(sign)
}

/// Adds the number before `unit`, if there is one, and gives back what follows.
fn part<'a>(text: &'a str, unit: char, unit_ms: i64, total: &mut i64) -> Option<&'a str> {
    let Some((number, rest)) = text.split_once(unit) else {
        return Some(text);
    };
    let number: i64 = number.parse().ok()?;
    *total = total.checked_add(number.checked_mul(unit_ms)?)?;
    Some(rest)
}

fn seconds(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once(['.', ',']).unwrap_or((text, ""));
    if fraction.len() > 9 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let thousandths: i64 = format!("{fraction:0<3}")[..3].parse().ok()?;
    let whole_ms = whole.parse::<i64>().ok()?.checked_mul(1000)?;
    let signed = if whole.starts_with('-') {
        -thousandths
    } else {
        thousandths
    };
    whole_ms.checked_add(signed)
}

#[cfg(test)]
mod tests {
    use super::milliseconds;

    #[test]
    fn durations_are_read() {
        assert_eq!(milliseconds("PT1H"), Some(3_600_000));
        assert_eq!(
            milliseconds("p1dt2m3.5s"),
            Some(86_400_000 + 120_000 + 3_500)
        );
        assert_eq!(milliseconds("-PT1S"), Some(-1_000));
        assert_eq!(milliseconds("PT-0.5S"), Some(-500));
        for bad in [
            "",
            "P",
            "PT",
            "1H",
            "PT1",
            "P1H",
            "PT1S2",
            "PT99999999999999999999S",
            "P1DT",
        ] {
            assert_eq!(milliseconds(bad), None, "{bad}");
        }
    }
}
