//! Which version of an API two sides speak.
//!
//! This side can speak the versions that Kafka has declared stable and that the codec has the
//! layout of; of those the other side serves, the newest is taken.

use std::collections::BTreeMap;

use kafka_protocol::messages::ApiVersionsResponse;

use crate::wire;

/// The lowest and the highest version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    pub min: i16,
    pub max: i16,
}

/// What a broker says it serves.
#[derive(Debug, Clone, Default)]
pub struct Versions {
    pub apis: BTreeMap<i16, Range>,
    pub answer: Option<Box<ApiVersionsResponse>>,
}

impl Versions {
    pub fn read(answer: ApiVersionsResponse) -> Versions {
        let row = |api: &kafka_protocol::messages::api_versions_response::ApiVersion| {
            let (min, max) = (api.min_version, api.max_version);
            (api.api_key, Range { min, max })
        };
        Versions {
            apis: answer.api_keys.iter().map(row).collect(),
            answer: Some(Box::new(answer)),
        }
    }

    /// The newest version of `api_key` that both sides have, at most `max`.
    pub fn pick(&self, api_key: i16, max: i16) -> Option<i16> {
        let theirs = self.apis.get(&api_key)?;
        let api = wire::api(api_key)?;
        let newest = theirs.max.min(api.stable_max).min(max);
        let oldest = theirs.min.max(*api.versions.start());
        (oldest..=newest)
            .rev()
            .find(|version| wire::codec_version(api_key, *version).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_common_version_is_taken() {
        let range = |min, max| Range { min, max };
        let apis = BTreeMap::from([(3, range(0, 99)), (18, range(0, 5)), (1, range(90, 99))]);
        let versions = Versions { apis, answer: None };
        assert_eq!(versions.pick(3, i16::MAX), Some(13));
        assert_eq!(versions.pick(3, 7), Some(7));
        assert_eq!(versions.pick(18, i16::MAX), Some(4));
        assert_eq!(versions.pick(1, i16::MAX), None);
        assert_eq!(versions.pick(2, i16::MAX), None);
    }
}
