//! Steps over the records of a batch without keeping them.
//!
//! ```text
//! length varint                  counts what follows
//! attributes i8                  unused
//! timestamp_delta varlong        to base_timestamp
//! offset_delta varint            to base_offset
//! key_length varint, key         negative: null
//! value_length varint, value     negative: null
//! headers_count varint           then per header: key_length varint, key, value_length, value
//! ```
//!
//! 1. A record is as long as it says, to the byte. Kafka does not look in a compressed batch that
//!    it keeps as it is; but no consumer can read such a record, so it is refused everywhere.
//! 2. No memory is taken for what a length promises.

use std::io::Write;

use super::compression::{Compression, CompressionError, Compressor};
use super::decompress::Decompressor;
use super::varint::{VARINT_BYTES_MAX, VARLONG_BYTES_MAX, read_varint, read_varlong};

/// Why bytes are not a record.
#[derive(Debug, thiserror::Error)]
pub enum RecordFault {
    #[error("the records end too soon")]
    Ends,
    #[error("bytes follow the last record")]
    Trailing,
    #[error("the length is not a varint")]
    LengthVarint,
    #[error("a field is not a varint")]
    Varint,
    #[error("the length {length} is not that of the record")]
    Length { length: i32 },
    #[error("the record has {bytes} bytes, the limit is {bytes_max}")]
    TooLong { bytes: usize, bytes_max: usize },
    #[error("{count} headers")]
    HeadersCount { count: i32 },
    #[error("a header without a key")]
    HeaderKey,
    #[error(transparent)]
    Compression(#[from] CompressionError),
}

/// Where record bytes come from.
pub(super) trait Input {
    /// What is buffered: at least `bytes`, unless the input ends before.
    fn fill(&mut self, bytes: usize) -> Result<&[u8], RecordFault>;

    /// Steps over bytes that `fill` has shown.
    fn consume(&mut self, bytes: usize) -> Result<(), RecordFault>;

    fn skip(&mut self, mut bytes: usize) -> Result<(), RecordFault> {
        while bytes > 0 {
            let shown = self.fill(1)?.len().min(bytes);
            if shown == 0 {
                return Err(RecordFault::Ends);
            }
            self.consume(shown)?;
            bytes -= shown;
        }
        Ok(())
    }

    fn is_at_end(&mut self) -> Result<bool, RecordFault> {
        Ok(self.fill(1)?.is_empty())
    }

    /// Why `fill` showed less than it was asked for.
    fn end_fault(&mut self) -> RecordFault {
        RecordFault::Ends
    }
}

impl Input for &[u8] {
    #[inline]
    fn fill(&mut self, _bytes: usize) -> Result<&[u8], RecordFault> {
        Ok(self)
    }

    #[inline]
    fn consume(&mut self, bytes: usize) -> Result<(), RecordFault> {
        *self = self.get(bytes..).ok_or(RecordFault::Ends)?;
        Ok(())
    }

    #[inline]
    fn skip(&mut self, bytes: usize) -> Result<(), RecordFault> {
        self.consume(bytes)
    }
}

/// What scanning compressed batches needs, kept from batch to batch.
pub struct Scratch {
    decompressor: Decompressor,
    chunk: Box<[u8]>,
    /// What may still be decompressed.
    room_bytes: usize,
    is_exceeded: bool,
}

impl Scratch {
    const CHUNK_BYTES: usize = 16 * 1024;

    /// From now on no more than about `bytes` are decompressed. A batch that has more is rejected
    /// for whatever reason, and [`Scratch::room`] is `None`.
    pub fn limit(&mut self, bytes: usize) {
        (self.room_bytes, self.is_exceeded) = (bytes, false);
    }

    /// What is left of the limit; `None` once a batch had more.
    pub fn room(&self) -> Option<usize> {
        (!self.is_exceeded).then_some(self.room_bytes)
    }

    pub fn new() -> Scratch {
        Scratch {
            decompressor: Decompressor::new(),
            chunk: vec![0; Self::CHUNK_BYTES].into_boxed_slice(),
            room_bytes: usize::MAX,
            is_exceeded: false,
        }
    }
}

impl Default for Scratch {
    fn default() -> Self {
        Scratch::new()
    }
}

/// The decompressed bytes of a body, a chunk at a time.
pub(super) struct Decompressed<'a> {
    codec: Compression,
    body: &'a [u8],
    scratch: &'a mut Scratch,
    start: usize,
    end: usize,
    /// What comes after the bytes that are there. They are looked at first.
    fault: Option<CompressionError>,
}

impl<'a> Decompressed<'a> {
    pub fn new(
        codec: Compression,
        mut body: &'a [u8],
        scratch: &'a mut Scratch,
    ) -> Result<Decompressed<'a>, RecordFault> {
        scratch.decompressor.start(codec, &mut body)?;
        Ok(Decompressed {
            codec,
            body,
            scratch,
            start: 0,
            end: 0,
            fault: None,
        })
    }
}

impl Input for Decompressed<'_> {
    #[inline]
    fn fill(&mut self, bytes: usize) -> Result<&[u8], RecordFault> {
        if self.end - self.start < bytes {
            self.scratch.chunk.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
            while self.end < bytes && self.fault.is_none() {
                if self.scratch.room_bytes == 0 {
                    self.scratch.is_exceeded = true;
                    let codec = self.codec;
                    self.fault = Some(CompressionError::Cut { codec });
                    break;
                }
                let room = &mut self.scratch.chunk[self.end..];
                match self.scratch.decompressor.read(&mut self.body, room) {
                    Ok(0) => break,
                    Ok(bytes) => {
                        self.end += bytes;
                        self.scratch.room_bytes = self.scratch.room_bytes.saturating_sub(bytes);
                    }
                    Err(fault) => self.fault = Some(fault),
                }
            }
            if self.end == 0 && self.fault.is_some() {
                return Err(self.end_fault());
            }
        }
        Ok(&self.scratch.chunk[self.start..self.end])
    }

    #[inline]
    fn consume(&mut self, bytes: usize) -> Result<(), RecordFault> {
        debug_assert!(bytes <= self.end - self.start);
        self.start += bytes;
        Ok(())
    }

    fn end_fault(&mut self) -> RecordFault {
        self.fault
            .take()
            .map_or(RecordFault::Ends, RecordFault::Compression)
    }
}

/// A compressor that is given up once its output is too large.
pub(super) struct Bounded {
    pub compressor: Option<Compressor>,
    pub bytes_max: usize,
}

impl Bounded {
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), RecordFault> {
        let Some(compressor) = &mut self.compressor else {
            return Ok(());
        };
        compressor.write_all(bytes).map_err(|source| {
            let codec = compressor.codec();
            RecordFault::Compression(CompressionError::Library { codec, source })
        })?;
        if compressor.out_bytes() > self.bytes_max {
            self.compressor = None;
        }
        Ok(())
    }
}

/// An input whose consumed bytes are written on.
pub(super) struct Mirror<'a, I> {
    pub input: &'a mut I,
    pub out: &'a mut Bounded,
}

impl<I: Input> Input for Mirror<'_, I> {
    fn fill(&mut self, bytes: usize) -> Result<&[u8], RecordFault> {
        self.input.fill(bytes)
    }

    fn consume(&mut self, bytes: usize) -> Result<(), RecordFault> {
        let shown = self.input.fill(bytes)?;
        self.out
            .write(shown.get(..bytes).ok_or(RecordFault::Ends)?)?;
        self.input.consume(bytes)
    }

    fn end_fault(&mut self) -> RecordFault {
        self.input.end_fault()
    }
}

/// The fields of a record before its key.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecordHead {
    pub length: i32,
    pub timestamp_delta: i64,
    pub offset_delta: i32,
    /// The bytes of the record that follow.
    pub rest_bytes: usize,
}

/// The lengths as they stand: negative means null.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecordRest {
    pub key_length: i32,
    pub value_length: i32,
}

/// Steps over the fields before the key.
#[inline]
pub(super) fn read_head(
    input: &mut impl Input,
    bytes_max: usize,
) -> Result<RecordHead, RecordFault> {
    let shown = input.fill(VARINT_BYTES_MAX)?;
    let is_cut = shown.len() < VARINT_BYTES_MAX;
    let Some((length, taken)) = read_varint(shown) else {
        return Err(match is_cut {
            true => input.end_fault(),
            false => RecordFault::LengthVarint,
        });
    };
    input.consume(taken)?;
    let bytes = usize::try_from(length).map_err(|_| RecordFault::Length { length })?;
    if bytes > bytes_max {
        return Err(RecordFault::TooLong { bytes, bytes_max });
    }
    let mut left = Left { length, bytes };
    left.take(1)?;
    input.skip(1)?;
    let timestamp_delta = left.varlong(input)?;
    let offset_delta = left.varint(input)?;
    Ok(RecordHead {
        length,
        timestamp_delta,
        offset_delta,
        rest_bytes: left.bytes,
    })
}

/// Steps over the key, the value and the headers of the record that `head` begins.
#[inline]
pub(super) fn read_rest(
    input: &mut impl Input,
    head: RecordHead,
) -> Result<RecordRest, RecordFault> {
    let mut left = Left {
        length: head.length,
        bytes: head.rest_bytes,
    };
    let key_length = left.skip_field(input)?;
    let value_length = left.skip_field(input)?;
    let count = left.varint(input)?;
    if count < 0 {
        return Err(RecordFault::HeadersCount { count });
    }
    for _ in 0..count {
        if left.skip_field(input)? < 0 {
            return Err(RecordFault::HeaderKey);
        }
        left.skip_field(input)?;
    }
    if left.bytes > 0 {
        return Err(RecordFault::Length {
            length: left.length,
        });
    }
    Ok(RecordRest {
        key_length,
        value_length,
    })
}

/// How much of a record is still to come.
struct Left {
    length: i32,
    bytes: usize,
}

impl Left {
    #[inline]
    fn take(&mut self, bytes: usize) -> Result<(), RecordFault> {
        self.bytes = self.bytes.checked_sub(bytes).ok_or(RecordFault::Length {
            length: self.length,
        })?;
        Ok(())
    }

    #[inline]
    fn varint(&mut self, input: &mut impl Input) -> Result<i32, RecordFault> {
        self.ensure_open()?;
        let shown = input.fill(VARINT_BYTES_MAX)?;
        let seen = shown.len();
        let is_cut = seen < VARINT_BYTES_MAX;
        let Some((value, bytes)) = read_varint(shown) else {
            return Err(match is_cut {
                true => self.end_fault(seen, input),
                false => RecordFault::Varint,
            });
        };
        self.take(bytes)?;
        input.consume(bytes)?;
        Ok(value)
    }

    #[inline]
    fn varlong(&mut self, input: &mut impl Input) -> Result<i64, RecordFault> {
        self.ensure_open()?;
        let shown = input.fill(VARLONG_BYTES_MAX)?;
        let seen = shown.len();
        let is_cut = seen < VARLONG_BYTES_MAX;
        let Some((value, bytes)) = read_varlong(shown) else {
            return Err(match is_cut {
                true => self.end_fault(seen, input),
                false => RecordFault::Varint,
            });
        };
        self.take(bytes)?;
        input.consume(bytes)?;
        Ok(value)
    }

    /// Fails at the end of the record, before the input is asked for more than it needs to give.
    #[inline]
    fn ensure_open(&self) -> Result<(), RecordFault> {
        match self.bytes {
            0 => Err(RecordFault::Length {
                length: self.length,
            }),
            _ => Ok(()),
        }
    }

    /// Why a field is cut after `seen` bytes: because the record ends there, or the input.
    #[cold]
    fn end_fault(&self, seen: usize, input: &mut impl Input) -> RecordFault {
        match self.bytes <= seen {
            true => RecordFault::Length {
                length: self.length,
            },
            false => input.end_fault(),
        }
    }

    /// Steps over a length and as many bytes; the length.
    #[inline]
    fn skip_field(&mut self, input: &mut impl Input) -> Result<i32, RecordFault> {
        let length = self.varint(input)?;
        if let Ok(bytes) = usize::try_from(length) {
            self.take(bytes)?;
            input.skip(bytes)?;
        }
        Ok(length)
    }
}
