//! The 61 bytes in front of every record batch of magic 2 (`DefaultRecordBatch`). Big endian.
//!
//! ```text
//!  0 base_offset         i64      23 last_offset_delta  i32
//!  8 batch_length        i32      27 base_timestamp     i64
//! 12 leader_epoch        i32      35 max_timestamp      i64
//! 16 magic               i8 = 2   43 producer_id        i64
//! 17 crc                 u32      51 producer_epoch     i16
//! 21 attributes          i16      53 base_sequence      i32
//!                                 57 records_count      i32
//! ```
//!
//! 1. `batch_length` counts the bytes after itself, so a batch takes 12 + `batch_length` bytes.
//! 2. The CRC covers everything from `attributes` to the end of the batch. `base_offset` and
//!    `leader_epoch` lie before it: the broker writes them without computing it again.
//! 3. A [`BatchHeader`] that was read has magic 2 and a `batch_length` of at least 49. Nothing else
//!    about it may be trusted.

use crate::types::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, TimestampMs};

use super::compression::Compression;

/// The header of a batch, up to its records.
pub const HEADER_BYTES: usize = 61;
/// The bytes of a batch that `batch_length` does not count: the base offset and itself.
pub(super) const LENGTH_OVERHEAD_BYTES: usize = 12;
/// Where the bytes start that the CRC covers.
pub(super) const CRC_START: usize = 21;
/// The only format of batches since Kafka 4.
pub(super) const MAGIC: i8 = 2;
/// "No sequence": the batch's producer is not idempotent.
pub const NO_SEQUENCE: i32 = -1;

/// Why bytes are not the header of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    #[error("a batch header needs {needed_bytes} bytes, there are {available_bytes}")]
    Short {
        needed_bytes: usize,
        available_bytes: usize,
    },
    #[error("magic {magic} is not 2")]
    Magic { magic: i8 },
    #[error("a batch length of {batch_length} does not even hold the header")]
    BatchLength { batch_length: i32 },
}

/// Whose clock the timestamps of a batch come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TimestampType {
    CreateTime,
    LogAppendTime,
}

/// The attribute bits of a batch. Bits 7 and up have no meaning and are kept as they came.
///
/// ```text
/// 0-2 compression   3 timestamp type   4 transactional   5 control   6 delete horizon
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Attributes(pub i16);

impl Attributes {
    const CODEC_MASK: i16 = 0x07;
    const LOG_APPEND_TIME: i16 = 0x08;
    const TRANSACTIONAL: i16 = 0x10;
    const CONTROL: i16 = 0x20;
    const DELETE_HORIZON: i16 = 0x40;

    /// `None`: one of the codec numbers 5 to 7, which nobody has defined.
    pub fn compression(self) -> Option<Compression> {
        Compression::from_id((self.0 & Self::CODEC_MASK) as u8)
    }

    pub fn timestamp_type(self) -> TimestampType {
        if self.has(Self::LOG_APPEND_TIME) {
            TimestampType::LogAppendTime
        } else {
            TimestampType::CreateTime
        }
    }

    pub fn is_transactional(self) -> bool {
        self.has(Self::TRANSACTIONAL)
    }

    pub fn is_control(self) -> bool {
        self.has(Self::CONTROL)
    }

    /// Whether `base_timestamp` is the time from which compaction may drop tombstones (KIP-534).
    pub fn has_delete_horizon(self) -> bool {
        self.has(Self::DELETE_HORIZON)
    }

    /// Without the bits that have no meaning.
    pub fn known(self) -> Attributes {
        Attributes(self.0 & 0x7f)
    }

    pub fn with_compression(self, compression: Compression) -> Attributes {
        Attributes((self.0 & !Self::CODEC_MASK) | i16::from(compression.id()))
    }

    pub fn with_timestamp_type(self, timestamp_type: TimestampType) -> Attributes {
        let on = timestamp_type == TimestampType::LogAppendTime;
        self.with(Self::LOG_APPEND_TIME, on)
    }

    pub fn with_transactional(self, on: bool) -> Attributes {
        self.with(Self::TRANSACTIONAL, on)
    }

    pub fn with_control(self, on: bool) -> Attributes {
        self.with(Self::CONTROL, on)
    }

    pub fn with_delete_horizon(self, on: bool) -> Attributes {
        self.with(Self::DELETE_HORIZON, on)
    }

    fn has(self, bit: i16) -> bool {
        self.0 & bit != 0
    }

    fn with(self, bit: i16, on: bool) -> Attributes {
        Attributes(if on { self.0 | bit } else { self.0 & !bit })
    }
}

/// The first 17 bytes: enough to step from batch to batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchPrefix {
    pub base_offset: Offset,
    pub batch_length: i32,
    pub magic: i8,
}

impl BatchPrefix {
    pub const BYTES: usize = 17;

    /// Fails only with [`HeaderError::Short`]; the values are as they stand.
    pub fn read(bytes: &[u8]) -> Result<BatchPrefix, HeaderError> {
        let Some(bytes) = bytes.first_chunk::<{ Self::BYTES }>() else {
            return Err(HeaderError::Short {
                needed_bytes: Self::BYTES,
                available_bytes: bytes.len(),
            });
        };
        Ok(BatchPrefix {
            base_offset: Offset(i64::from_be_bytes(field(bytes, 0))),
            batch_length: i32::from_be_bytes(field(bytes, 8)),
            magic: bytes[16] as i8,
        })
    }

    /// The size of the whole batch, if this can be the start of one of magic 2.
    pub fn size_bytes(&self) -> Result<usize, HeaderError> {
        if self.magic != MAGIC {
            return Err(HeaderError::Magic { magic: self.magic });
        }
        let batch_length = self.batch_length;
        match usize::try_from(batch_length) {
            Ok(length) if length >= HEADER_BYTES - LENGTH_OVERHEAD_BYTES => {
                Ok(length + LENGTH_OVERHEAD_BYTES)
            }
            _ => Err(HeaderError::BatchLength { batch_length }),
        }
    }
}

/// The fields of a batch header, without the magic, which is 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchHeader {
    pub base_offset: Offset,
    pub batch_length: i32,
    pub leader_epoch: LeaderEpoch,
    pub crc: u32,
    pub attributes: Attributes,
    pub last_offset_delta: i32,
    pub base_timestamp: TimestampMs,
    pub max_timestamp: TimestampMs,
    pub producer_id: ProducerId,
    pub producer_epoch: ProducerEpoch,
    pub base_sequence: i32,
    pub records_count: i32,
}

impl BatchHeader {
    pub fn read(bytes: &[u8]) -> Result<BatchHeader, HeaderError> {
        let prefix = BatchPrefix::read(bytes)?;
        prefix.size_bytes()?;
        let Some(bytes) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Err(HeaderError::Short {
                needed_bytes: HEADER_BYTES,
                available_bytes: bytes.len(),
            });
        };
        Ok(BatchHeader {
            base_offset: prefix.base_offset,
            batch_length: prefix.batch_length,
            leader_epoch: LeaderEpoch(i32::from_be_bytes(field(bytes, 12))),
            crc: u32::from_be_bytes(field(bytes, 17)),
            attributes: Attributes(i16::from_be_bytes(field(bytes, 21))),
            last_offset_delta: i32::from_be_bytes(field(bytes, 23)),
            base_timestamp: TimestampMs(i64::from_be_bytes(field(bytes, 27))),
            max_timestamp: TimestampMs(i64::from_be_bytes(field(bytes, 35))),
            producer_id: ProducerId(i64::from_be_bytes(field(bytes, 43))),
            producer_epoch: ProducerEpoch(i16::from_be_bytes(field(bytes, 51))),
            base_sequence: i32::from_be_bytes(field(bytes, 53)),
            records_count: i32::from_be_bytes(field(bytes, 57)),
        })
    }

    pub fn write(&self, out: &mut [u8; HEADER_BYTES]) {
        out[0..8].copy_from_slice(&self.base_offset.0.to_be_bytes());
        out[8..12].copy_from_slice(&self.batch_length.to_be_bytes());
        out[12..16].copy_from_slice(&self.leader_epoch.0.to_be_bytes());
        out[16] = MAGIC as u8;
        out[17..21].copy_from_slice(&self.crc.to_be_bytes());
        out[21..23].copy_from_slice(&self.attributes.0.to_be_bytes());
        out[23..27].copy_from_slice(&self.last_offset_delta.to_be_bytes());
        out[27..35].copy_from_slice(&self.base_timestamp.0.to_be_bytes());
        out[35..43].copy_from_slice(&self.max_timestamp.0.to_be_bytes());
        out[43..51].copy_from_slice(&self.producer_id.0.to_be_bytes());
        out[51..53].copy_from_slice(&self.producer_epoch.0.to_be_bytes());
        out[53..57].copy_from_slice(&self.base_sequence.to_be_bytes());
        out[57..61].copy_from_slice(&self.records_count.to_be_bytes());
    }

    pub fn to_bytes(&self) -> [u8; HEADER_BYTES] {
        let mut out = [0; HEADER_BYTES];
        self.write(&mut out);
        out
    }

    /// The size of the whole batch.
    pub fn size_bytes(&self) -> usize {
        self.batch_length as usize + LENGTH_OVERHEAD_BYTES
    }

    pub fn last_offset(&self) -> Offset {
        let delta = i64::from(self.last_offset_delta);
        Offset(self.base_offset.0.wrapping_add(delta))
    }

    /// The offset of the record after this batch.
    pub fn next_offset(&self) -> Offset {
        Offset(self.last_offset().0.wrapping_add(1))
    }

    pub fn has_producer_id(&self) -> bool {
        self.producer_id.0 > ProducerId::NONE.0
    }

    /// The sequence of the last record; [`NO_SEQUENCE`] if the batch has none.
    pub fn last_sequence(&self) -> i32 {
        if self.base_sequence == NO_SEQUENCE {
            return NO_SEQUENCE;
        }
        sequence_plus(self.base_sequence, self.last_offset_delta)
    }
}

/// The sequence `records` places later. After 2147483647 comes 0.
pub fn sequence_plus(sequence: i32, records: i32) -> i32 {
    sequence.wrapping_add(records) & i32::MAX
}

/// The `N` bytes at `at`. The caller's array holds them.
fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[at..at + N]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> BatchHeader {
        BatchHeader {
            base_offset: Offset(0x0102_0304_0506_0708),
            batch_length: 0x1112_1314,
            leader_epoch: LeaderEpoch(0x2122_2324),
            crc: 0xf1f2_f3f4,
            attributes: Attributes(0x3132),
            last_offset_delta: 0x4142_4344,
            base_timestamp: TimestampMs(0x5152_5354_5556_5758),
            max_timestamp: TimestampMs(0x6162_6364_6566_6768),
            producer_id: ProducerId(0x7172_7374_7576_7778),
            producer_epoch: ProducerEpoch(0x0102),
            base_sequence: 0x1112_1315,
            records_count: 0x2122_2325,
        }
    }

    #[test]
    fn fields_stand_where_kafka_puts_them() {
        let bytes = header().to_bytes();
        let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(
            hex,
            concat!(
                "0102030405060708",
                "11121314",
                "21222324",
                "02",
                "f1f2f3f4",
                "3132",
                "41424344",
                "5152535455565758",
                "6162636465666768",
                "7172737475767778",
                "0102",
                "11121315",
                "21222325"
            )
        );
        assert_eq!(BatchHeader::read(&bytes), Ok(header()));
        assert_eq!(header().size_bytes(), 0x1112_1320);
    }

    #[test]
    fn short_old_and_tiny_headers_are_refused() {
        let mut bytes = header().to_bytes();
        let short = |needed_bytes, available_bytes| HeaderError::Short {
            needed_bytes,
            available_bytes,
        };
        assert_eq!(BatchPrefix::read(&bytes[..16]), Err(short(17, 16)));
        assert_eq!(BatchHeader::read(&bytes[..60]), Err(short(61, 60)));
        bytes[16] = 1;
        assert_eq!(
            BatchHeader::read(&bytes),
            Err(HeaderError::Magic { magic: 1 })
        );
        bytes[16] = 2;
        for batch_length in [-1, 0, 48, i32::MIN] {
            bytes[8..12].copy_from_slice(&i32::to_be_bytes(batch_length));
            let refused = Err(HeaderError::BatchLength { batch_length });
            assert_eq!(BatchHeader::read(&bytes), refused);
        }
        bytes[8..12].copy_from_slice(&49_i32.to_be_bytes());
        assert_eq!(BatchHeader::read(&bytes).map(|h| h.size_bytes()), Ok(61));
    }

    #[test]
    fn sequences_wrap_to_zero() {
        assert_eq!(sequence_plus(i32::MAX, 1), 0);
        assert_eq!(sequence_plus(i32::MAX - 1, 1), i32::MAX);
        assert_eq!(sequence_plus(i32::MAX - 1, 4), 2);
        let mut header = header();
        (header.base_sequence, header.last_offset_delta) = (i32::MAX, 2);
        assert_eq!(header.last_sequence(), 1);
        header.base_sequence = NO_SEQUENCE;
        assert_eq!(header.last_sequence(), NO_SEQUENCE);
    }

    #[test]
    fn attribute_bits() {
        let all = Attributes(0x7f).with_compression(Compression::Zstd);
        assert_eq!(all.0, 0x7c);
        assert_eq!(all.compression(), Some(Compression::Zstd));
        assert_eq!(all.timestamp_type(), TimestampType::LogAppendTime);
        assert!(all.is_transactional() && all.is_control() && all.has_delete_horizon());
        let none = all
            .with_compression(Compression::None)
            .with_timestamp_type(TimestampType::CreateTime)
            .with_transactional(false)
            .with_control(false)
            .with_delete_horizon(false);
        assert_eq!(none.0, 0);
        assert_eq!(Attributes(-1).known(), Attributes(0x7f));
        assert_eq!(Attributes(5).compression(), None);
        assert_eq!(Attributes(-1).with_control(false).0, !0x20);
    }
}
