//! Values that are one of a few words, as types.

use super::{FromValue, Value};

macro_rules! words {
    ($($(#[$meta:meta])* $name:ident { $($variant:ident = $text:literal,)* })*) => { $(
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $($variant,)* }

        impl $name {
            pub const fn text(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }

            pub fn from_text(text: &str) -> Option<$name> {
                match text { $($text => Some($name::$variant),)* _ => None }
            }
        }

        impl FromValue for $name {
            fn from_value(value: Value) -> Self {
                let word = match &value {
                    Value::Text(text) => $name::from_text(text),
                    _ => None,
                };
                word.unwrap_or_else(|| {
                    panic!("{value:?} is no {}, which its row should refuse", stringify!($name))
                })
            }
        }
    )* };
}

words! {
    /// `compression.type`: what becomes of a batch that is appended.
    CompressionType {
        Producer = "producer",
        Uncompressed = "uncompressed",
        Gzip = "gzip",
        Snappy = "snappy",
        Lz4 = "lz4",
        Zstd = "zstd",
    }
    /// `message.timestamp.type`: whose clock stamps a record.
    TimestampType {
        CreateTime = "CreateTime",
        LogAppendTime = "LogAppendTime",
    }
    /// `share.isolation.level`.
    ShareIsolationLevel {
        ReadCommitted = "read_committed",
        ReadUncommitted = "read_uncommitted",
    }
}

/// `cleanup.policy`: a set, which may be empty (nothing is ever removed).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CleanupPolicies {
    pub compact: bool,
    pub delete: bool,
}

impl FromValue for CleanupPolicies {
    fn from_value(value: Value) -> Self {
        let items = Vec::from_value(value);
        let has = |policy: &str| items.iter().any(|item: &String| item == policy);
        CleanupPolicies {
            compact: has("compact"),
            delete: has("delete"),
        }
    }
}

/// `leader.replication.throttled.replicas` and its like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ThrottledReplicas {
    All,
    /// Partition and broker.
    Some(std::sync::Arc<[(i32, i32)]>),
}

impl ThrottledReplicas {
    pub fn contains(&self, partition: i32, broker: i32) -> bool {
        match self {
            ThrottledReplicas::All => true,
            ThrottledReplicas::Some(pairs) => pairs.contains(&(partition, broker)),
        }
    }
}

impl FromValue for ThrottledReplicas {
    fn from_value(value: Value) -> Self {
        let items: Vec<String> = Vec::from_value(value);
        if matches!(items.as_slice(), [all] if all == "*") {
            return ThrottledReplicas::All;
        }
        // A number too large for an id names no replica.
        let pair = |item: &String| {
            let (partition, broker) = item.split_once(':')?;
            Some((partition.parse().ok()?, broker.parse().ok()?))
        };
        ThrottledReplicas::Some(items.iter().filter_map(pair).collect())
    }
}

/// `share.auto.offset.reset`: where a share group starts to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShareAutoOffsetReset {
    Earliest,
    Latest,
    /// So long before now.
    ByDurationMs(i64),
}

impl FromValue for ShareAutoOffsetReset {
    fn from_value(value: Value) -> Self {
        let text = String::from_value(value);
        let duration = text
            .strip_prefix("by_duration:")
            .and_then(super::duration::milliseconds);
        match (text.as_str(), duration) {
            ("earliest", _) => ShareAutoOffsetReset::Earliest,
            ("latest", _) => ShareAutoOffsetReset::Latest,
            (_, Some(ms)) => ShareAutoOffsetReset::ByDurationMs(ms),
            _ => panic!("{text} is no offset reset, which its row should refuse"),
        }
    }
}
