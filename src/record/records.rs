//! Reads the records of a batch, one after the other.
//!
//! 1. Keys and values of an uncompressed batch are slices of its body; a record of a compressed one
//!    is decompressed into a buffer of its own. Only one record is in memory at a time.
//! 2. A buffer grows with what is really there, up to a limit, whatever a length says.
//! 3. Iteration ends after the first error. Bytes after the last record are one.

use bytes::Bytes;

use super::batch::Batch;
use super::compression::Compression;
use super::decompress::Decompressor;
use super::scan::RecordFault;
use super::varint::{VARINT_BYTES_MAX, read_varint, read_varlong};

/// One record, its timestamp and offset relative to its batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// No bit has a meaning.
    pub attributes: i8,
    pub timestamp_delta: i64,
    pub offset_delta: i32,
    pub key: Option<Bytes>,
    pub value: Option<Bytes>,
    pub headers: Vec<RecordHeader>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordHeader {
    pub key: Bytes,
    pub value: Option<Bytes>,
}

/// Why the records of a batch cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordsError {
    #[error("codec {id} is not known")]
    Codec { id: u8 },
    #[error("record {index} of the batch")]
    Record {
        index: i32,
        #[source]
        source: RecordFault,
    },
}

/// No record that Kafka accepts by default comes near it, compressed or not.
const RECORD_BYTES_MAX: usize = 256 << 20;
/// How much a buffer grows at a time.
const CHUNK_BYTES: usize = 16 * 1024;

/// The records of a batch.
pub struct Records {
    body: Bytes,
    /// Of a compressed batch.
    stream: Option<Stream>,
    record_bytes_max: usize,
    codec: Result<Compression, u8>,
    index: i32,
    records_count: i32,
    is_over: bool,
}

/// A decompressor, and what it gave beyond the last record: `ahead[start..]`.
struct Stream {
    decompressor: Decompressor,
    ahead: Vec<u8>,
    start: usize,
}

impl Batch {
    pub fn records(&self) -> Records {
        self.records_within(RECORD_BYTES_MAX)
    }

    /// As [`Batch::records`]; a record of more than `record_bytes_max` is an error.
    pub fn records_within(&self, record_bytes_max: usize) -> Records {
        let codec = self.header.attributes.compression();
        Records {
            body: self.body.clone(),
            stream: None,
            record_bytes_max,
            codec: codec.ok_or((self.header.attributes.0 & 7) as u8),
            index: 0,
            records_count: self.header.records_count,
            is_over: false,
        }
    }
}

impl Iterator for Records {
    type Item = Result<Record, RecordsError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let codec = match self.codec {
            Ok(codec) => codec,
            Err(id) => {
                self.is_over = true;
                return Some(Err(RecordsError::Codec { id }));
            }
        };
        let next = self.next_record(codec).transpose()?;
        self.is_over = next.is_err();
        let index = self.index;
        self.index += 1;
        Some(next.map_err(|source| RecordsError::Record { index, source }))
    }
}

impl Records {
    fn next_record(&mut self, codec: Compression) -> Result<Option<Record>, RecordFault> {
        if codec != Compression::None && self.stream.is_none() {
            let mut decompressor = Decompressor::new();
            let mut input = &self.body[..];
            decompressor.start(codec, &mut input)?;
            let used = self.body.len() - input.len();
            self.body = self.body.slice(used..);
            let ahead = Vec::new();
            self.stream = Some(Stream {
                decompressor,
                ahead,
                start: 0,
            });
        }
        if self.index >= self.records_count {
            self.is_over = true;
            self.fill(1)?;
            return match self.shown().is_empty() {
                true => Ok(None),
                false => Err(RecordFault::Trailing),
            };
        }
        self.fill(VARINT_BYTES_MAX)?;
        let is_cut = self.shown().len() < VARINT_BYTES_MAX;
        let (length, taken) = read_varint(self.shown()).ok_or(match is_cut {
            true => RecordFault::Ends,
            false => RecordFault::LengthVarint,
        })?;
        let bytes = usize::try_from(length).map_err(|_| RecordFault::Length { length })?;
        if bytes > self.record_bytes_max {
            let bytes_max = self.record_bytes_max;
            return Err(RecordFault::TooLong { bytes, bytes_max });
        }
        self.fill(taken + bytes)?;
        if self.shown().len() < taken + bytes {
            return Err(RecordFault::Ends);
        }
        let record = self.split(taken + bytes).slice(taken..);
        parse_record(record, length).map(Some)
    }

    fn shown(&self) -> &[u8] {
        match &self.stream {
            Some(stream) => &stream.ahead[stream.start..],
            None => &self.body,
        }
    }

    /// Decompresses until `bytes` are shown or the stream ends.
    fn fill(&mut self, bytes: usize) -> Result<(), RecordFault> {
        let Some(stream) = &mut self.stream else {
            return Ok(());
        };
        let Stream {
            decompressor,
            ahead,
            start,
        } = stream;
        if ahead.len() - *start >= bytes {
            return Ok(());
        }
        ahead.drain(..*start);
        *start = 0;
        let mut input = &self.body[..];
        while ahead.len() < bytes {
            let filled = ahead.len();
            ahead.resize(filled + CHUNK_BYTES, 0);
            let given = decompressor.read(&mut input, &mut ahead[filled..]);
            ahead.truncate(filled + *given.as_ref().unwrap_or(&0));
            if given? == 0 {
                break;
            }
        }
        let used = self.body.len() - input.len();
        self.body = self.body.slice(used..);
        Ok(())
    }

    /// The first `bytes` of what is shown.
    fn split(&mut self, bytes: usize) -> Bytes {
        match &mut self.stream {
            Some(stream) => {
                let end = stream.start + bytes;
                let record = Bytes::copy_from_slice(&stream.ahead[stream.start..end]);
                stream.start = end;
                record
            }
            None => self.body.split_to(bytes),
        }
    }
}

/// The record whose bytes, without their length, are `bytes`.
fn parse_record(mut bytes: Bytes, length: i32) -> Result<Record, RecordFault> {
    if bytes.is_empty() {
        return Err(RecordFault::Length { length });
    }
    let attributes = bytes.split_to(1)[0] as i8;
    let (timestamp_delta, taken) = read_varlong(&bytes).ok_or(RecordFault::Varint)?;
    let _ = bytes.split_to(taken);
    let offset_delta = take_varint(&mut bytes)?;
    let key = take_field(&mut bytes, length)?;
    let value = take_field(&mut bytes, length)?;
    let count = take_varint(&mut bytes)?;
    if count < 0 {
        return Err(RecordFault::HeadersCount { count });
    }
    let mut headers = Vec::new();
    for _ in 0..count {
        let key = take_field(&mut bytes, length)?.ok_or(RecordFault::HeaderKey)?;
        let value = take_field(&mut bytes, length)?;
        headers.push(RecordHeader { key, value });
    }
    if !bytes.is_empty() {
        return Err(RecordFault::Length { length });
    }
    Ok(Record {
        attributes,
        timestamp_delta,
        offset_delta,
        key,
        value,
        headers,
    })
}

fn take_varint(bytes: &mut Bytes) -> Result<i32, RecordFault> {
    let (value, taken) = read_varint(bytes).ok_or(RecordFault::Varint)?;
    let _ = bytes.split_to(taken);
    Ok(value)
}

/// A length and as many bytes; a negative length is null.
fn take_field(bytes: &mut Bytes, length: i32) -> Result<Option<Bytes>, RecordFault> {
    match usize::try_from(take_varint(bytes)?) {
        Err(_) => Ok(None),
        Ok(field) if field <= bytes.len() => Ok(Some(bytes.split_to(field))),
        Ok(_) => Err(RecordFault::Length { length }),
    }
}
