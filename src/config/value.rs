//! A value read from its text by its type, and written back as Kafka writes it.
//!
//! 1. Text is trimmed first, of every type, as Kafka does.
//! 2. A list drops the blanks around its items; blank and repeated items are kept here, since a
//!    topic refuses blank ones where a properties file does not (`Value::tidied`).
//! 3. `to_text` of a parsed value parses to the same value.

use super::ConfigType;

#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Null,
    Boolean(bool),
    Short(i16),
    Int(i32),
    Long(i64),
    Double(f64),
    /// STRING, CLASS and PASSWORD.
    Text(String),
    List(Vec<String>),
}

impl Value {
    /// The value that `text` names; else Kafka's sentence about what is wrong.
    pub fn parse(config_type: ConfigType, text: &str) -> Result<Value, String> {
        let trimmed = trim(text);
        let not_a_number = || format!("Not a number of type {}", config_type.name());
        match config_type {
            ConfigType::Boolean if trimmed.eq_ignore_ascii_case("true") => Ok(Value::Boolean(true)),
            ConfigType::Boolean if trimmed.eq_ignore_ascii_case("false") => {
                Ok(Value::Boolean(false))
            }
            ConfigType::Boolean => Err("Expected value to be either true or false".to_owned()),
            ConfigType::String | ConfigType::Class | ConfigType::Password => {
                Ok(Value::Text(trimmed.to_owned()))
            }
            ConfigType::Short => trimmed
                .parse()
                .map(Value::Short)
                .map_err(|_| not_a_number()),
            ConfigType::Int => trimmed.parse().map(Value::Int).map_err(|_| not_a_number()),
            ConfigType::Long => trimmed.parse().map(Value::Long).map_err(|_| not_a_number()),
            ConfigType::Double => parse_double(trimmed)
                .map(Value::Double)
                .ok_or_else(not_a_number),
            ConfigType::List if trimmed.is_empty() => Ok(Value::List(Vec::new())),
            ConfigType::List => {
                let items = trimmed.split(',').map(|item| trim(item).to_owned());
                Ok(Value::List(items.collect()))
            }
        }
    }

    /// A list without its blank items (what a trailing comma leaves in a properties file) and
    /// without repetitions.
    pub fn tidied(self) -> Value {
        match self {
            Value::List(items) => {
                let mut kept: Vec<String> = Vec::with_capacity(items.len());
                for item in items {
                    if !item.is_empty() && !kept.contains(&item) {
                        kept.push(item);
                    }
                }
                Value::List(kept)
            }
            other => other,
        }
    }

    pub fn has_blanks(&self) -> bool {
        matches!(self, Value::List(items) if items.iter().any(String::is_empty))
    }

    /// The text that DescribeConfigs answers; `None` for null.
    pub fn to_text(&self) -> Option<String> {
        match self {
            Value::Null => None,
            Value::Boolean(value) => Some(value.to_string()),
            Value::Short(value) => Some(value.to_string()),
            Value::Int(value) => Some(value.to_string()),
            Value::Long(value) => Some(value.to_string()),
            Value::Double(value) => Some(double_text(*value)),
            Value::Text(value) => Some(value.clone()),
            Value::List(items) => Some(items.join(",")),
        }
    }

    /// The value as an error message shows it.
    pub fn shown(&self) -> String {
        match self {
            Value::List(items) => format!("[{}]", items.join(", ")),
            other => other.to_text().unwrap_or_else(|| "null".to_owned()),
        }
    }
}

/// Java's `String.trim`: everything up to and including the space character goes.
pub fn trim(text: &str) -> &str {
    text.trim_matches(|c: char| c <= ' ')
}

/// Java's `Double.parseDouble`, without its hexadecimal form: that takes a suffix of `d` or `f`,
/// and spells its constants `NaN` and `Infinity`.
fn parse_double(text: &str) -> Option<f64> {
    let unsigned = text.trim_start_matches(['+', '-']);
    if unsigned == "NaN" || unsigned == "Infinity" {
        return text.parse().ok();
    }
    let digits = unsigned
        .strip_suffix(['d', 'D', 'f', 'F'])
        .unwrap_or(unsigned);
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    text[..text.len() - (unsigned.len() - digits.len())]
        .parse()
        .ok()
}

/// Java's `Double.toString`: plain between 0.001 and 10,000,000, else with an exponent; always a
/// digit after the point.
fn double_text(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let size = value.abs();
    if size == 0.0 || (1e-3..1e7).contains(&size) {
        return format!("{value:?}");
    }
    let scientific = format!("{value:e}");
    match scientific.split_once('e') {
        Some((digits, exponent)) if digits.contains('.') => format!("{digits}E{exponent}"),
        Some((digits, exponent)) => format!("{digits}.0E{exponent}"),
        None => scientific,
    }
}

/// A Rust type that a row's value becomes.
pub trait FromValue: Sized {
    /// Panics when the table gives a row a field of another type: our bug, which a test over all
    /// rows finds.
    fn from_value(value: Value) -> Self;
}

macro_rules! from_value {
    ($($type:ty: $variant:ident,)*) => { $(
        impl FromValue for $type {
            fn from_value(value: Value) -> Self {
                match value {
                    Value::$variant(value) => value,
                    other => panic!("a field of type {} cannot hold {other:?}", stringify!($type)),
                }
            }
        }
    )* };
}

from_value! {
    bool: Boolean,
    i16: Short,
    i32: Int,
    i64: Long,
    f64: Double,
    String: Text,
    Vec<String>: List,
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: Value) -> Self {
        match value {
            Value::Null => None,
            value => Some(T::from_value(value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_are_written_as_java_writes_them() {
        // Answers of a running Kafka 4.4, and of Java's documents.
        for (text, written) in [
            ("0.0001", "1.0E-4"),
            ("12345678.9", "1.23456789E7"),
            ("1.7976931348623157E308", "1.7976931348623157E308"),
            ("100000", "100000.0"),
            ("10000000", "1.0E7"),
            ("0.5", "0.5"),
            ("0", "0.0"),
            ("2147483647", "2.147483647E9"),
        ] {
            let value = Value::parse(ConfigType::Double, text).unwrap();
            assert_eq!(value.to_text().unwrap(), written);
        }
        for taken in [".5", "5e-1", "0.5f", "0.5d", "NaN", "+1"] {
            assert!(Value::parse(ConfigType::Double, taken).is_ok(), "{taken}");
        }
        for refused in ["", "abc", "inf", "nan", "0.5x", "infinity", "--1"] {
            assert!(
                Value::parse(ConfigType::Double, refused).is_err(),
                "{refused}"
            );
        }
    }

    #[test]
    fn text_is_trimmed_and_read_by_its_type() {
        let parse = Value::parse;
        assert_eq!(parse(ConfigType::Int, " +12 "), Ok(Value::Int(12)));
        let error = parse(ConfigType::Int, "1e7").unwrap_err();
        assert_eq!(error, "Not a number of type INT");
        assert_eq!(
            parse(ConfigType::Boolean, " True "),
            Ok(Value::Boolean(true))
        );
        assert!(parse(ConfigType::Boolean, "yes").is_err());
        let list = parse(ConfigType::List, " a , b,,a").unwrap();
        assert!(list.has_blanks());
        assert_eq!(list.tidied().to_text().unwrap(), "a,b");
        assert_eq!(parse(ConfigType::List, " "), Ok(Value::List(Vec::new())));
    }
}
