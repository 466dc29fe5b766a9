//! Numbers with a meaning. Each is a plain integer in memory and on the wire.

use serde::{Deserialize, Serialize};

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }

        impl From<$inner> for $name {
            fn from(value: $inner) -> Self {
                $name(value)
            }
        }
    };
}

number! {
    /// A record's place in its partition's log.
    Offset(i64)
}
number! {
    /// The count of leaders a partition has had. -1 is "unknown".
    LeaderEpoch(i32)
}
number! {
    /// Milliseconds since 1970, wall clock. -1 is "none".
    TimestampMs(i64)
}
number! {
    /// An idempotent producer. -1 is "none".
    ProducerId(i64)
}
number! {
    /// A producer id's incarnation. -1 is "none".
    ProducerEpoch(i16)
}
number! {
    /// A node of the cluster (`node.id`). -1 is "none".
    BrokerId(i32)
}

impl Offset {
    pub const ZERO: Offset = Offset(0);
    /// Kafka's "no such offset" in answers.
    pub const NONE: Offset = Offset(-1);

    /// The offset `records` places later.
    pub const fn plus(self, records: i64) -> Offset {
        Offset(self.0 + records)
    }

    pub const fn next(self) -> Offset {
        self.plus(1)
    }
}

impl LeaderEpoch {
    pub const NONE: LeaderEpoch = LeaderEpoch(-1);
}

impl TimestampMs {
    pub const NONE: TimestampMs = TimestampMs(-1);
}

impl ProducerId {
    pub const NONE: ProducerId = ProducerId(-1);
}

impl ProducerEpoch {
    pub const NONE: ProducerEpoch = ProducerEpoch(-1);
}

impl BrokerId {
    pub const NONE: BrokerId = BrokerId(-1);
}
