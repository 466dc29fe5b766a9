//! The codecs of a batch's records: their names, numbers and levels.

/// The codec of a batch: the low three bits of its attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Compression {
    None,
    Gzip,
    Snappy,
    Lz4,
    Zstd,
}

impl Compression {
    pub const ALL: [Compression; 5] = [
        Compression::None,
        Compression::Gzip,
        Compression::Snappy,
        Compression::Lz4,
        Compression::Zstd,
    ];

    /// The number in the attributes.
    pub const fn id(self) -> u8 {
        self as u8
    }

    pub fn from_id(id: u8) -> Option<Compression> {
        Compression::ALL.get(usize::from(id)).copied()
    }

    /// The name in `compression.type`. There, no compression is also called `uncompressed`.
    pub const fn name(self) -> &'static str {
        match self {
            Compression::None => "none",
            Compression::Gzip => "gzip",
            Compression::Snappy => "snappy",
            Compression::Lz4 => "lz4",
            Compression::Zstd => "zstd",
        }
    }

    /// The level that Kafka takes when none is configured; codecs without levels have 0.
    pub const fn default_level(self) -> i32 {
        match self {
            Compression::None | Compression::Snappy => 0,
            Compression::Gzip => -1,
            Compression::Lz4 => 9,
            Compression::Zstd => 3,
        }
    }
}
