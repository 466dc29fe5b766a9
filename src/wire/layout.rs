//! The table of APIs and their layouts (`layouts.txt`), read when it is asked for.
//!
//! 1. Nothing is parsed before its first use: start-up scans for the headings of the table, a
//!    request's first use of an API lists its versions, and a version's first use parses that one
//!    layout (some hundred bytes of memory).
//! 2. Names are slices of the embedded text.

use std::ops::RangeInclusive;
use std::sync::OnceLock;

use super::API_VERSIONS;
use super::parse;

const TEXT: &str = include_str!("layouts.txt");

/// How the length of a text, of bytes or of an array stands on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Length {
    /// An unsigned varint of the length plus one; otherwise an int16 (text) or int32.
    pub compact: bool,
    pub nullable: bool,
}

/// What stands in one field.
#[derive(Debug, PartialEq, Eq)]
pub enum Kind {
    Boolean,
    Int8,
    Int16,
    Uint16,
    Int32,
    Int64,
    Float64,
    Uuid,
    Text(Length),
    Bytes(Length),
    /// Record batches; on the wire the same as bytes.
    Records(Length),
    Array(Length, Box<Kind>),
    Struct {
        nullable: bool,
        layout: Box<Struct>,
    },
}

impl Kind {
    /// The bytes a value of this kind takes, when it is always the same.
    pub fn fixed_bytes(&self) -> Option<usize> {
        match self {
            Kind::Boolean | Kind::Int8 => Some(1),
            Kind::Int16 | Kind::Uint16 => Some(2),
            Kind::Int32 => Some(4),
            Kind::Int64 | Kind::Float64 => Some(8),
            Kind::Uuid => Some(16),
            Kind::Text(_) | Kind::Bytes(_) | Kind::Records(_) => None,
            Kind::Array(..) | Kind::Struct { .. } => None,
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub struct Field {
    pub name: &'static str,
    pub kind: Kind,
}

#[derive(Debug, PartialEq, Eq)]
pub struct TaggedField {
    pub tag: u32,
    pub field: Field,
}

/// The fields of a message or of a part of it, in the order of the wire.
#[derive(Debug, PartialEq, Eq)]
pub struct Struct {
    pub fields: Box<[Field]>,
    /// The known tagged fields by ascending tag; `None` where the version has no tagged fields.
    pub tagged: Option<Box<[TaggedField]>>,
}

/// The versions of a request or of a response that share one layout.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) versions: RangeInclusive<i16>,
    pub(super) text: &'static str,
    pub(super) layout: OnceLock<Struct>,
}

#[derive(Debug)]
pub(super) struct Sections {
    pub(super) flexible_from: Option<i16>,
    pub(super) requests: Box<[Section]>,
    pub(super) responses: Box<[Section]>,
}

/// One API of Kafka, as it stands in the table.
#[derive(Debug)]
pub struct Api {
    pub key: i16,
    pub name: &'static str,
    /// Every version that Kafka has a layout for. Empty for an API that was removed.
    pub versions: RangeInclusive<i16>,
    /// The newest version that Kafka serves; those above are still in the making.
    pub stable_max: i16,
    /// Answered on the listeners of brokers.
    pub broker: bool,
    /// Answered on the listeners of controllers.
    pub controller: bool,
    pub(super) text: &'static str,
    pub(super) sections: OnceLock<Sections>,
}

/// Every API, by ascending key.
pub fn apis() -> &'static [Api] {
    static APIS: OnceLock<Box<[Api]>> = OnceLock::new();
    APIS.get_or_init(|| parse::apis(TEXT))
}

pub fn api(key: i16) -> Option<&'static Api> {
    let apis = apis();
    apis.binary_search_by_key(&key, |api| api.key)
        .ok()
        .map(|at| &apis[at])
}

pub fn api_by_name(name: &str) -> Option<&'static Api> {
    apis().iter().find(|api| api.name == name)
}

impl Api {
    /// The layout of a request's body; `None` for a version outside of `versions`.
    pub fn request(&self, version: i16) -> Option<&Struct> {
        layout_of(&self.sections().requests, version)
    }

    /// The layout of a response's body; `None` for a version outside of `versions`.
    pub fn response(&self, version: i16) -> Option<&Struct> {
        layout_of(&self.sections().responses, version)
    }

    /// The first version with tagged fields and compact lengths.
    pub fn flexible_from(&self) -> Option<i16> {
        self.sections().flexible_from
    }

    fn is_flexible(&self, version: i16) -> bool {
        self.flexible_from().is_some_and(|from| version >= from)
    }

    /// The header version of a request. Defined for every version, as the header of an
    /// ApiVersions request is read before its version is held against the table.
    pub fn request_header_version(&self, version: i16) -> i16 {
        if self.is_flexible(version) { 2 } else { 1 }
    }

    /// The header version of a response. ApiVersions always answers with v0, as its client does
    /// not know yet what the broker can do (KIP-511).
    pub fn response_header_version(&self, version: i16) -> i16 {
        let flexible = self.key != API_VERSIONS && self.is_flexible(version);
        if flexible { 1 } else { 0 }
    }

    fn sections(&self) -> &Sections {
        self.sections.get_or_init(|| parse::sections(self.text))
    }
}

fn layout_of(sections: &[Section], version: i16) -> Option<&Struct> {
    let section = sections.iter().find(|s| s.versions.contains(&version))?;
    Some(section.layout.get_or_init(|| parse::layout(section.text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_has_both_layouts() {
        for api in apis() {
            for version in api.versions.clone() {
                assert!(api.request(version).is_some(), "{} v{version}", api.name);
                assert!(api.response(version).is_some(), "{} v{version}", api.name);
            }
            assert!(api.request(api.versions.end() + 1).is_none());
            assert!(api.request(-1).is_none());
        }
        assert_eq!(apis().len(), 95);
        assert!(api(4).unwrap().versions.is_empty());
        assert!(api(95).is_none());
        assert!(api(-1).is_none());
    }

    #[test]
    fn header_versions_are_kafkas() {
        let produce = api_by_name("Produce").unwrap();
        assert_eq!(produce.flexible_from(), Some(9));
        assert_eq!(produce.request_header_version(8), 1);
        assert_eq!(produce.request_header_version(9), 2);
        assert_eq!(produce.response_header_version(8), 0);
        assert_eq!(produce.response_header_version(13), 1);
        let api_versions = api(API_VERSIONS).unwrap();
        assert_eq!(api_versions.request_header_version(2), 1);
        assert_eq!(api_versions.request_header_version(3), 2);
        assert_eq!(api_versions.request_header_version(99), 2);
        assert_eq!(api_versions.request_header_version(-1), 1);
        assert_eq!(api_versions.response_header_version(3), 0);
        let handshake = api_by_name("SaslHandshake").unwrap();
        assert_eq!(handshake.flexible_from(), None);
        assert_eq!(handshake.request_header_version(1), 1);
    }

    /// The table states the header versions of each API's newest version: they must come out of
    /// the layouts too.
    #[test]
    fn header_versions_agree_with_the_table() {
        for api in apis().iter().filter(|api| !api.versions.is_empty()) {
            let newest = *api.versions.end();
            let heading = api.text.lines().next().unwrap();
            let stated = format!(
                "request header v{}  response header v{}",
                api.request_header_version(newest),
                api.response_header_version(newest)
            );
            assert!(heading.ends_with(&stated), "{heading}: {stated}");
        }
    }

    #[test]
    fn tagged_fields_and_nesting_are_read() {
        let fetch = api(1).unwrap().request(18).unwrap();
        let tags: Vec<_> = fetch
            .tagged
            .as_ref()
            .unwrap()
            .iter()
            .map(|t| t.tag)
            .collect();
        assert_eq!(tags, [0, 1]);
        let topics = fetch.fields.iter().find(|f| f.name == "topics").unwrap();
        let Kind::Array(length, element) = &topics.kind else {
            panic!("{topics:?}");
        };
        assert!(length.compact && !length.nullable);
        let Kind::Struct { layout, .. } = &**element else {
            panic!("{element:?}");
        };
        assert_eq!(layout.fields[0].kind, Kind::Uuid);
        assert_eq!(layout.fields[1].name, "partitions");
    }

    #[test]
    fn unstable_versions_are_told_apart() {
        let init = api_by_name("InitProducerId").unwrap();
        assert_eq!((init.stable_max, *init.versions.end()), (5, 6));
        let metadata = api_by_name("Metadata").unwrap();
        assert_eq!(metadata.stable_max, 13);
        assert!(metadata.broker && !metadata.controller);
    }
}
