//! Why a frame cannot be read: Kafka closes the connection on each of these.

use std::fmt;

/// Where and why a frame cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    /// The path of the field, as in `topics[2].name`.
    pub field: String,
    /// The byte of the frame where the field's value was to be read.
    pub position: usize,
    pub reason: Reason,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    #[error("no API has the key {0}")]
    UnknownApi(i16),
    #[error("{api} has no version {version}")]
    UnknownVersion { api: &'static str, version: i16 },
    #[error("{wanted} bytes are wanted, {left} are left")]
    CutShort { wanted: usize, left: usize },
    #[error("{count} elements cannot be in {left} bytes")]
    TooManyElements { count: usize, left: usize },
    #[error("more than {max} elements in one frame")]
    ElementsLimit { max: usize },
    #[error("null in a field that has no null")]
    UnexpectedNull,
    #[error("a varint of more than five bytes")]
    VarintTooLong,
    #[error("text of {bytes} bytes; {max} is the limit")]
    TextTooLong { bytes: usize, max: usize },
    #[error("{bytes} bytes are left over")]
    LeftOver { bytes: usize },
}

impl Malformed {
    pub(super) fn at(position: usize, reason: Reason) -> Box<Malformed> {
        Box::new(Malformed {
            field: String::new(),
            position,
            reason,
        })
    }

    /// The same, seen from the struct that has the field `name`.
    pub(super) fn within(mut self: Box<Self>, name: &str) -> Box<Self> {
        if !self.field.is_empty() && !self.field.starts_with('[') {
            self.field.insert(0, '.');
        }
        self.field.insert_str(0, name);
        self
    }

    /// The same, seen from the array.
    pub(super) fn within_element(self: Box<Self>, index: usize) -> Box<Self> {
        self.within(&format!("[{index}]"))
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Malformed {
            field,
            position,
            reason,
        } = self;
        match field.as_str() {
            "" => write!(f, "byte {position}: {reason}"),
            field => write!(f, "{field} at byte {position}: {reason}"),
        }
    }
}

impl std::error::Error for Malformed {}
