//! Record batches, PURE: header view, CRC, validation, compression, timestamps.
//!
//! Only magic 2 is known here: Kafka 4 neither writes nor serves the older formats.

mod batch;
mod builder;
mod check;
mod compression;
mod decompress;
mod header;
mod prepare;
mod records;
mod scan;
mod varint;

pub use batch::{Batch, BatchError, BatchView, BatchViews, Batches};
pub use builder::{BatchBuilder, Marker, MarkerType};
pub use compression::{Compression, CompressionError};
pub use decompress::Decompressor;
pub use header::{
    Attributes, BatchHeader, BatchPrefix, HEADER_BYTES, HeaderError, NO_SEQUENCE, TimestampType,
    sequence_plus,
};
pub use prepare::{PreparedBatch, ProduceRules, Rejected, prepare};
pub use records::{Record, RecordHeader, Records, RecordsError};
pub use scan::{RecordFault, Scratch};

#[cfg(test)]
mod any_tests;
#[cfg(test)]
mod codec_tests;
#[cfg(test)]
mod golden_tests;
#[cfg(test)]
mod prepare_tests;
