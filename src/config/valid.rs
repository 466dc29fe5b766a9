//! Which values a row takes, and what is said of one it does not take, in Kafka's words.
//!
//! The text of a rule (`Display`) is how Kafka's documents print it; a test holds every row
//! against Kafka's own list.

use super::{Value, split_host_port};

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Valid {
    Any,
    AtLeast(i64),
    Between(i64, i64),
    BetweenDouble(f64, f64),
    /// The range, or one value outside it that means "the codec's own".
    BetweenOr(i64, i64, i64),
    OneOf(&'static [&'static str]),
    OneOfIgnoreCase(&'static [&'static str]),
    /// A list of some of these.
    ListOf(&'static [&'static str]),
    NonEmptyList,
    NonEmptyText,
    NonNullText,
    /// `host:port`, where the host may be empty; or nothing.
    HostAndPort,
    /// `*`, or `partition:broker` pairs.
    ThrottledReplicas,
    /// `earliest`, `latest`, or `by_duration:` and an ISO 8601 duration.
    ShareOffsetReset,
}

/// Why a value is not valid: the value in question (an item, where a list has a wrong one) and
/// Kafka's sentence about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    pub value: String,
    pub reason: String,
}

impl Valid {
    /// Holds `value` against the rule. Null is every row's "not set" and passes.
    pub fn check(&self, name: &str, value: &Value) -> Result<(), Invalid> {
        let reason = match (self, value) {
            (Valid::Any | Valid::NonEmptyList | Valid::NonNullText, _) | (_, Value::Null) => None,
            (Valid::NonEmptyText, Value::Text(text)) => text
                .is_empty()
                .then(|| "String must be non-empty".to_owned()),
            (Valid::HostAndPort, Value::Text(text)) => (!text.is_empty()
                && host_and_port(text).is_none())
            .then(|| "String must be host:port".to_owned()),
            (Valid::OneOf(allowed), Value::Text(text)) => (!allowed.contains(&text.as_str()))
                .then(|| format!("String must be one of: {}", allowed.join(", "))),
            (Valid::OneOfIgnoreCase(allowed), Value::Text(text)) => {
                let known = allowed.iter().any(|a| a.eq_ignore_ascii_case(text));
                let listed = || allowed.join(", ");
                (!known).then(|| format!("String must be one of (case insensitive): {}", listed()))
            }
            (Valid::ShareOffsetReset, Value::Text(text)) => {
                (!share_offset_reset(text)).then(|| {
                    format!(
                        "Invalid value `{text}` for configuration {name}. The value must be either \
                         'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
                    )
                })
            }
            (Valid::ListOf(allowed), Value::List(items)) => {
                return match items.iter().find(|i| !allowed.contains(&i.as_str())) {
                    None => Ok(()),
                    Some(item) => Err(Invalid {
                        value: item.clone(),
                        reason: format!("String must be one of: {}", allowed.join(", ")),
                    }),
                };
            }
            (Valid::ThrottledReplicas, Value::List(items)) => {
                (!throttled_replicas(items)).then(|| {
                    format!(
                        "{name} must be the literal '*' or a list of replicas in the following \
                     format: {THROTTLED_REPLICAS}"
                    )
                })
            }
            (_, number) => self.check_number(number),
        };
        match reason {
            None => Ok(()),
            Some(reason) => Err(Invalid {
                value: value.shown(),
                reason,
            }),
        }
    }

    fn check_number(&self, value: &Value) -> Option<String> {
        let (least, most) = match *self {
            Valid::AtLeast(least) => (least as f64, f64::INFINITY),
            Valid::Between(least, most) | Valid::BetweenOr(least, most, _) => {
                (least as f64, most as f64)
            }
            Valid::BetweenDouble(least, most) => (least, most),
            _ => panic!("{self:?} is no rule for {value:?}"),
        };
        // Limits are small enough to be exact as doubles; a long rounds to the right side of them.
        let number = match value {
            Value::Short(n) => f64::from(*n),
            Value::Int(n) => f64::from(*n),
            Value::Long(n) => *n as f64,
            Value::Double(n) => *n,
            _ => panic!("{self:?} is no rule for {value:?}"),
        };
        if let Valid::BetweenOr(least, most, or) = *self {
            let inside = (number >= least as f64 && number <= most as f64) || number == or as f64;
            return (!inside)
                .then(|| format!("Value must be between {least} and {most} or equal to {or}"));
        }
        if number < least {
            Some(format!("Value must be at least {least}"))
        } else if number > most {
            Some(format!("Value must be no more than {most}"))
        } else {
            None
        }
    }
}

/// The host, without brackets, and the port.
pub fn host_and_port(text: &str) -> Option<(&str, u16)> {
    let (host, port) = split_host_port(text)?;
    Some((host, port.parse().ok()?))
}

const THROTTLED_REPLICAS: &str = "[partitionId]:[brokerId],[partitionId]:[brokerId],...";

fn throttled_replicas(items: &[String]) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let pair = |item: &String| {
        item.split_once(':')
            .is_some_and(|(partition, broker)| digits(partition) && digits(broker))
    };
    matches!(items, [all] if all == "*") || items.iter().all(pair)
}

fn share_offset_reset(text: &str) -> bool {
    match text.strip_prefix("by_duration:") {
        None => matches!(text, "earliest" | "latest"),
        Some(duration) => super::duration::milliseconds(duration).is_some_and(|ms| ms >= 0),
    }
}

impl std::fmt::Display for Valid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Valid::Any => Ok(()),
            Valid::AtLeast(least) => write!(f, "[{least},...]"),
            Valid::Between(least, most) => write!(f, "[{least},...,{most}]"),
            Valid::BetweenDouble(least, most) => write!(f, "[{least},...,{most}]"),
            Valid::BetweenOr(least, most, or) => write!(f, "[{least},...,{most}] or {or}"),
            Valid::OneOf(allowed) | Valid::ListOf(allowed) => write!(f, "[{}]", allowed.join(", ")),
            Valid::OneOfIgnoreCase(allowed) => {
                write!(f, "(case insensitive) [{}]", allowed.join(", "))
            }
            Valid::NonEmptyList => f.write_str("non-empty list"),
            Valid::NonEmptyText => f.write_str("non-empty string"),
            Valid::NonNullText => f.write_str("non-null string"),
            Valid::HostAndPort => f.write_str("host:port"),
            Valid::ThrottledReplicas => f.write_str(THROTTLED_REPLICAS),
            Valid::ShareOffsetReset => f.write_str("[latest, earliest, by_duration:PnDTnHnMn.nS]"),
        }
    }
}
