//! Record batches, PURE: header view, CRC, validation, compression, timestamps.
