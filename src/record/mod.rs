//! Record batches, PURE: header view, CRC, validation, compression, timestamps.
//!
//! Only magic 2 is known here: Kafka 4 neither writes nor serves the older formats.

mod batch;
mod compression;
mod header;

pub use batch::{Batch, BatchError, BatchView, BatchViews, Batches};
pub use compression::Compression;
pub use header::{
    Attributes, BatchHeader, BatchPrefix, HEADER_BYTES, HeaderError, NO_SEQUENCE, TimestampType,
    sequence_plus,
};
