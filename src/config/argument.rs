//! `--override name=value` arguments as properties.

use super::value::trim;
use super::{ConfigError, Origin, Property};

/// The pairs of `arguments`, each `name=value`.
pub fn argument_properties<'a>(
    arguments: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<Property>, ConfigError> {
    let pair = |argument: &str| {
        let origin = Origin::Argument;
        match argument.split_once('=') {
            Some((name, value)) if !trim(name).is_empty() => Ok(Property {
                name: trim(name).to_owned(),
                value: value.to_owned(),
                origin,
            }),
            _ => Err(ConfigError::NotAPair {
                text: argument.to_owned(),
                origin,
            }),
        }
    };
    arguments.into_iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::argument_properties;

    #[test]
    fn arguments_are_pairs() {
        let found = argument_properties(["a.b=c=d", "e="]).unwrap();
        let pairs: Vec<_> = found
            .iter()
            .map(|p| (p.name.as_str(), p.value.as_str()))
            .collect();
        assert_eq!(pairs, [("a.b", "c=d"), ("e", "")]);
        assert!(argument_properties(["a.b"]).is_err());
        assert!(argument_properties(["=b"]).is_err());
    }
}
