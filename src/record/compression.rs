//! The codecs of a batch's records, and the side that compresses.
//!
//! What Kafka's Java clients write, and what is written here:
//! - gzip: one member. - zstd: one frame without a declared size.
//! - snappy: the header `82 "SNAPPY" 00`, version 1, compatible with 1, then per 32 KiB an i32
//!   length and a snappy block (the framing of the xerial library).
//! - lz4: one LZ4 frame of independent 64 KiB blocks without checksums. Its level has no effect:
//!   the fast compressor is the only one.

use std::io::{self, Write};

/// The codec of a batch: the low three bits of its attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Compression {
    None,
    Gzip,
    Snappy,
    Lz4,
    Zstd,
}

/// Why data could not be compressed or decompressed.
#[derive(Debug, thiserror::Error)]
pub enum CompressionError {
    #[error("the {codec} data ends too soon")]
    Cut { codec: Compression },
    #[error("this is not {codec} data")]
    Corrupt { codec: Compression },
    #[error("{codec} failed")]
    Library {
        codec: Compression,
        #[source]
        source: io::Error,
    },
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

    /// The name as in `compression.type`; there, `None` is also called `uncompressed`.
    pub const fn name(self) -> &'static str {
        match self {
            Compression::None => "none",
            Compression::Gzip => "gzip",
            Compression::Snappy => "snappy",
            Compression::Lz4 => "lz4",
            Compression::Zstd => "zstd",
        }
    }

    /// The default of `compression.<codec>.level`; codecs without levels have 0.
    pub const fn default_level(self) -> i32 {
        match self {
            Compression::None | Compression::Snappy => 0,
            Compression::Gzip => -1,
            Compression::Lz4 => 9,
            Compression::Zstd => 3,
        }
    }

    /// Appends `input` to `out`, compressed.
    pub fn compress(
        self,
        level: i32,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), CompressionError> {
        let failed = |source| CompressionError::Library {
            codec: self,
            source,
        };
        let mut compressor = Compressor::new(self, level, std::mem::take(out)).map_err(failed)?;
        compressor.write_all(input).map_err(failed)?;
        *out = compressor.finish().map_err(failed)?;
        Ok(())
    }
}

impl std::fmt::Display for Compression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

pub(super) const SNAPPY_MAGIC: [u8; 8] = *b"\x82SNAPPY\0";
pub(super) const SNAPPY_HEADER_BYTES: usize = 16;
const SNAPPY_BLOCK_BYTES: usize = 32 * 1024;
/// Magic, version 1 with independent blocks, blocks of 64 KiB, the check byte of these two.
const LZ4_HEADER: [u8; 7] = [0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82];
const LZ4_BLOCK_BYTES: usize = 64 * 1024;
pub(super) const LZ4_UNCOMPRESSED: u32 = 1 << 31;

/// Compresses a stream onto the end of a buffer.
pub(super) enum Compressor {
    None(Vec<u8>),
    Gzip(flate2::write::GzEncoder<Vec<u8>>),
    Blocks(Blocks),
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
}

impl Compressor {
    pub fn new(codec: Compression, level: i32, out: Vec<u8>) -> io::Result<Compressor> {
        Ok(match codec {
            Compression::None => Compressor::None(out),
            Compression::Gzip => {
                let level = u32::try_from(level).map(|l| flate2::Compression::new(l.min(9)));
                let level = level.unwrap_or_default();
                Compressor::Gzip(flate2::write::GzEncoder::new(out, level))
            }
            Compression::Snappy => Compressor::Blocks(Blocks::snappy(out)),
            Compression::Lz4 => Compressor::Blocks(Blocks::lz4(out)),
            Compression::Zstd => Compressor::Zstd(zstd::stream::write::Encoder::new(out, level)?),
        })
    }

    pub fn codec(&self) -> Compression {
        match self {
            Compressor::None(_) => Compression::None,
            Compressor::Gzip(_) => Compression::Gzip,
            Compressor::Blocks(blocks) if blocks.snappy.is_some() => Compression::Snappy,
            Compressor::Blocks(_) => Compression::Lz4,
            Compressor::Zstd(_) => Compression::Zstd,
        }
    }

    /// The bytes in the buffer so far; the codec may hold back more.
    pub fn out_bytes(&self) -> usize {
        match self {
            Compressor::None(out) => out.len(),
            Compressor::Gzip(gzip) => gzip.get_ref().len(),
            Compressor::Blocks(blocks) => blocks.out.len(),
            Compressor::Zstd(zstd) => zstd.get_ref().len(),
        }
    }

    pub fn finish(self) -> io::Result<Vec<u8>> {
        match self {
            Compressor::None(out) => Ok(out),
            Compressor::Gzip(gzip) => gzip.finish(),
            Compressor::Blocks(blocks) => blocks.finish(),
            Compressor::Zstd(zstd) => zstd.finish(),
        }
    }
}

impl Write for Compressor {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Compressor::None(out) => out.write(bytes),
            Compressor::Gzip(gzip) => gzip.write(bytes),
            Compressor::Blocks(blocks) => blocks.write(bytes),
            Compressor::Zstd(zstd) => zstd.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The codecs that compress block by block.
pub(super) struct Blocks {
    out: Vec<u8>,
    block: Vec<u8>,
    block_bytes_max: usize,
    /// `None`: lz4.
    snappy: Option<Box<snap::raw::Encoder>>,
}

impl Blocks {
    fn snappy(mut out: Vec<u8>) -> Blocks {
        out.extend_from_slice(&SNAPPY_MAGIC);
        out.extend_from_slice(&[0, 0, 0, 1, 0, 0, 0, 1]);
        Blocks {
            out,
            block: Vec::new(),
            block_bytes_max: SNAPPY_BLOCK_BYTES,
            snappy: Some(Box::new(snap::raw::Encoder::new())),
        }
    }

    fn lz4(mut out: Vec<u8>) -> Blocks {
        out.extend_from_slice(&LZ4_HEADER);
        Blocks {
            out,
            block: Vec::new(),
            block_bytes_max: LZ4_BLOCK_BYTES,
            snappy: None,
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.block_bytes_max - self.block.len());
        self.block.extend_from_slice(&bytes[..taken]);
        if self.block.len() == self.block_bytes_max {
            self.end_block()?;
        }
        Ok(taken)
    }

    fn end_block(&mut self) -> io::Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        let start = self.out.len();
        let body = start + 4;
        match &mut self.snappy {
            Some(snappy) => {
                let bytes_max = snap::raw::max_compress_len(self.block.len());
                self.out.resize(body + bytes_max, 0);
                let bytes = snappy.compress(&self.block, &mut self.out[body..])?;
                self.out.truncate(body + bytes);
                self.out[start..body].copy_from_slice(&(bytes as u32).to_be_bytes());
            }
            None => {
                let bytes_max = lz4_flex::block::get_maximum_output_size(self.block.len());
                self.out.resize(body + bytes_max, 0);
                let bytes = lz4_flex::block::compress_into(&self.block, &mut self.out[body..])
                    .map_err(io::Error::other)?;
                let mut length = bytes as u32;
                self.out.truncate(body + bytes);
                if bytes >= self.block.len() {
                    self.out.truncate(body);
                    self.out.extend_from_slice(&self.block);
                    length = self.block.len() as u32 | LZ4_UNCOMPRESSED;
                }
                self.out[start..body].copy_from_slice(&length.to_le_bytes());
            }
        }
        self.block.clear();
        Ok(())
    }

    fn finish(mut self) -> io::Result<Vec<u8>> {
        self.end_block()?;
        if self.snappy.is_none() {
            self.out.extend_from_slice(&[0; 4]);
        }
        Ok(self.out)
    }
}
