//! Which names a topic may have.

use crate::metadata::PlanError;
use crate::types::ErrorCode;

const NAME_BYTES_MAX: usize = 249;

/// Checks a name for a new topic as Kafka does.
pub fn check_topic_name(name: &str) -> Result<(), PlanError> {
    let invalid = |why: String| {
        let message = format!("Topic name is invalid: {why}");
        Err(PlanError::new(ErrorCode::InvalidTopicException, message))
    };
    if name.is_empty() {
        return invalid("the empty string is not allowed".into());
    }
    if name == "." || name == ".." {
        return invalid(format!("'{name}' is not allowed"));
    }
    // Kafka counts UTF-16 units; what is longer in bytes only has characters that are refused too.
    if name.encode_utf16().count() > NAME_BYTES_MAX {
        return invalid(format!(
            "the length of '{name}' is longer than the max allowed length {NAME_BYTES_MAX}"
        ));
    }
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if !name.chars().all(legal) {
        return invalid(format!(
            "'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' \
             and '-'"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_as_kafka_judges_them() {
        let longest = "y".repeat(249);
        for name in ["a", "a.b", "a_b-C9", "...", &longest] {
            assert_eq!(check_topic_name(name), Ok(()), "{name}");
        }
        let too_long = "y".repeat(250);
        let cases = [
            (
                "",
                "Topic name is invalid: the empty string is not allowed".to_owned(),
            ),
            (".", "Topic name is invalid: '.' is not allowed".to_owned()),
            (
                "..",
                "Topic name is invalid: '..' is not allowed".to_owned(),
            ),
            (
                "a/b",
                "Topic name is invalid: 'a/b' contains one or more characters other than ASCII \
                 alphanumerics, '.', '_' and '-'"
                    .to_owned(),
            ),
            (
                &too_long,
                format!(
                    "Topic name is invalid: the length of '{too_long}' is longer than the max \
                     allowed length 249"
                ),
            ),
        ];
        for (name, message) in cases {
            let expected = PlanError::new(ErrorCode::InvalidTopicException, message);
            assert_eq!(check_topic_name(name), Err(expected));
        }
    }
}
