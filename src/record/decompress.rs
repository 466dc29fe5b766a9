//! The side of the codecs that decompresses, as a stream.
//!
//! 1. No size that the data declares is trusted before it is bounded: a snappy block by what its
//!    compressed bytes can give at most, an lz4 block by the largest size of the format (4 MiB), a
//!    zstd window by that library's limit of 128 MiB, the one that Kafka has too.
//! 2. The output goes into the caller's buffer piece by piece, so a bomb costs time, not memory.
//! 3. A [`Decompressor`] keeps its buffers from batch to batch. Large ones are given back.
//! 4. Output is given before the error that follows it, a wrong checksum too.
//!
//! Where a stream may go on after its end Kafka's readers differ, and this follows them: gzip
//! members and zstd frames are joined; what follows gzip that is not gzip, and anything that
//! follows an lz4 frame, is ignored; junk after zstd is an error.

use flate2::{Crc, Decompress, FlushDecompress, Status};
use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use super::compression::{
    Compression, CompressionError, LZ4_UNCOMPRESSED, SNAPPY_HEADER_BYTES, SNAPPY_MAGIC,
};

/// Above this, a buffer is not kept for the next batch.
const KEPT_BYTES_MAX: usize = 1 << 20;
/// A snappy element of 3 bytes gives at most 64.
const SNAPPY_RATIO_MAX: usize = 22;

/// Decompresses one stream after the other.
pub struct Decompressor {
    codec: Compression,
    block: Block,
    gzip: Option<Gzip>,
    snappy: snap::raw::Decoder,
    is_snappy_framed: bool,
    lz4: Lz4,
    zstd: Option<Decoder<'static>>,
    /// Nothing follows, or only another gzip member or zstd frame.
    is_at_end: bool,
}

/// The output of a codec that gives whole blocks.
#[derive(Default)]
struct Block {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

struct Gzip {
    inflate: Decompress,
    crc: Crc,
    is_in_member: bool,
    /// The data of the member is over, its trailer is not read yet.
    is_trailer_due: bool,
}

#[derive(Default)]
struct Lz4 {
    block_bytes_max: usize,
    has_block_checksum: bool,
    has_content_checksum: bool,
}

impl Default for Decompressor {
    fn default() -> Self {
        Decompressor::new()
    }
}

impl Decompressor {
    pub fn new() -> Decompressor {
        Decompressor {
            codec: Compression::None,
            block: Block::default(),
            gzip: None,
            snappy: snap::raw::Decoder::new(),
            is_snappy_framed: false,
            lz4: Lz4::default(),
            zstd: None,
            is_at_end: false,
        }
    }

    /// Begins a stream. `input` is then what is left of it, to be handed to every `read`.
    pub fn start(&mut self, codec: Compression, input: &mut &[u8]) -> Result<(), CompressionError> {
        self.codec = codec;
        self.is_at_end = false;
        (self.block.start, self.block.end) = (0, 0);
        if self.block.bytes.capacity() > KEPT_BYTES_MAX {
            self.block.bytes = Vec::new();
        }
        match codec {
            Compression::None => {}
            Compression::Gzip => {
                let gzip = self.gzip.get_or_insert_with(Gzip::new);
                gzip.start_member(input)?;
            }
            Compression::Snappy => {
                self.is_snappy_framed =
                    input.len() >= SNAPPY_HEADER_BYTES && input.starts_with(&SNAPPY_MAGIC);
            }
            Compression::Lz4 => self.lz4 = Lz4::read_header(input)?,
            Compression::Zstd => {
                let library = |source| CompressionError::Library { codec, source };
                match &mut self.zstd {
                    Some(zstd) => zstd.reinit().map_err(library)?,
                    none => *none = Some(Decoder::new().map_err(library)?),
                }
                self.is_at_end = true;
            }
        }
        Ok(())
    }

    /// Some bytes of output; 0 at the end of the stream. `out` is not empty.
    pub fn read(&mut self, input: &mut &[u8], out: &mut [u8]) -> Result<usize, CompressionError> {
        debug_assert!(!out.is_empty());
        match self.codec {
            Compression::None => {
                let bytes = out.len().min(input.len());
                out[..bytes].copy_from_slice(take(input, bytes, self.codec)?);
                Ok(bytes)
            }
            Compression::Gzip => self.gzip.get_or_insert_with(Gzip::new).read(input, out),
            Compression::Zstd => self.read_zstd(input, out),
            Compression::Snappy | Compression::Lz4 => {
                while self.block.start == self.block.end && !self.is_at_end {
                    self.is_at_end = !match self.codec {
                        Compression::Lz4 => self.lz4.read_block(input, &mut self.block)?,
                        _ => self.read_snappy_block(input)?,
                    };
                }
                Ok(self.block.read(out))
            }
        }
    }

    /// `false` at the end of the stream.
    fn read_snappy_block(&mut self, input: &mut &[u8]) -> Result<bool, CompressionError> {
        let codec = Compression::Snappy;
        if !self.is_snappy_framed {
            let block = std::mem::take(input);
            self.decompress_snappy(block)?;
            self.is_at_end = true;
            return Ok(false);
        }
        // Less than a length is no error to Kafka's reader; and streams may be joined.
        while input.len() >= SNAPPY_HEADER_BYTES && input.starts_with(&SNAPPY_MAGIC) {
            take(input, SNAPPY_HEADER_BYTES, codec)?;
        }
        let Some(&length) = input.first_chunk::<4>() else {
            return Ok(false);
        };
        take(input, 4, codec)?;
        let length = usize::try_from(i32::from_be_bytes(length))
            .map_err(|_| CompressionError::Corrupt { codec })?;
        let block = take(input, length, codec)?;
        self.decompress_snappy(block)?;
        Ok(true)
    }

    fn decompress_snappy(&mut self, block: &[u8]) -> Result<(), CompressionError> {
        let corrupt = CompressionError::Corrupt {
            codec: Compression::Snappy,
        };
        let bytes = match snap::raw::decompress_len(block) {
            Ok(bytes) if !block.is_empty() && bytes / SNAPPY_RATIO_MAX <= block.len() => bytes,
            _ => return Err(corrupt),
        };
        let out = self.block.prepare(bytes);
        match self.snappy.decompress(block, out) {
            Ok(bytes) => self.block.end = bytes,
            Err(_) => return Err(corrupt),
        }
        Ok(())
    }

    fn read_zstd(&mut self, input: &mut &[u8], out: &mut [u8]) -> Result<usize, CompressionError> {
        let codec = Compression::Zstd;
        let library = |source| CompressionError::Library { codec, source };
        let Some(zstd) = &mut self.zstd else {
            return Ok(0);
        };
        loop {
            if self.is_at_end && input.is_empty() {
                return Ok(0);
            }
            let mut from = InBuffer::around(input);
            let mut to = OutBuffer::around(&mut *out);
            self.is_at_end = zstd.run(&mut from, &mut to).map_err(library)? == 0;
            let (taken, given) = (from.pos(), to.pos());
            *input = &input[taken..];
            if given > 0 {
                return Ok(given);
            }
            if taken == 0 && !self.is_at_end {
                return Err(CompressionError::Cut { codec });
            }
        }
    }
}

impl Block {
    /// Room for `bytes` of a new block.
    fn prepare(&mut self, bytes: usize) -> &mut [u8] {
        (self.start, self.end) = (0, 0);
        if self.bytes.len() < bytes {
            self.bytes.resize(bytes, 0);
        }
        &mut self.bytes[..bytes]
    }

    fn read(&mut self, out: &mut [u8]) -> usize {
        let bytes = out.len().min(self.end - self.start);
        out[..bytes].copy_from_slice(&self.bytes[self.start..self.start + bytes]);
        self.start += bytes;
        bytes
    }
}

impl Gzip {
    const CODEC: Compression = Compression::Gzip;

    fn new() -> Gzip {
        Gzip {
            inflate: Decompress::new(false),
            crc: Crc::new(),
            is_in_member: false,
            is_trailer_due: false,
        }
    }

    /// Reads the header of a member (RFC 1952). Java's reader ignores the reserved flags.
    fn start_member(&mut self, input: &mut &[u8]) -> Result<(), CompressionError> {
        let header = take(input, 10, Self::CODEC)?;
        let flags = header[3];
        if header[..3] != [0x1f, 0x8b, 8] {
            return Err(CompressionError::Corrupt { codec: Self::CODEC });
        }
        if flags & 4 != 0 {
            let length = take(input, 2, Self::CODEC)?;
            let length = u16::from_le_bytes([length[0], length[1]]);
            take(input, usize::from(length), Self::CODEC)?;
        }
        // A file name and a comment, each up to a zero.
        for _ in 0..(flags & 0x18).count_ones() {
            let end = input.iter().position(|&b| b == 0);
            let end = end.ok_or(CompressionError::Cut { codec: Self::CODEC })?;
            take(input, end + 1, Self::CODEC)?;
        }
        if flags & 2 != 0 {
            take(input, 2, Self::CODEC)?;
        }
        self.inflate.reset(false);
        self.crc.reset();
        (self.is_in_member, self.is_trailer_due) = (true, false);
        Ok(())
    }

    fn read(&mut self, input: &mut &[u8], out: &mut [u8]) -> Result<usize, CompressionError> {
        let codec = Self::CODEC;
        while self.is_in_member {
            if self.is_trailer_due {
                self.end_member(input)?;
                continue;
            }
            let (taken, given) = (self.inflate.total_in(), self.inflate.total_out());
            let status = self
                .inflate
                .decompress(input, out, FlushDecompress::None)
                .map_err(|_| CompressionError::Corrupt { codec })?;
            let taken = (self.inflate.total_in() - taken) as usize;
            let given = (self.inflate.total_out() - given) as usize;
            take(input, taken, codec)?;
            self.crc.update(&out[..given]);
            if status == Status::StreamEnd {
                self.is_trailer_due = true;
            } else if taken == 0 && given == 0 {
                return Err(CompressionError::Cut { codec });
            }
            if given > 0 {
                return Ok(given);
            }
        }
        Ok(0)
    }

    /// Checks the trailer, and goes on to the next member if there is one.
    fn end_member(&mut self, input: &mut &[u8]) -> Result<(), CompressionError> {
        let trailer = take(input, 8, Self::CODEC)?;
        let bytes = self.crc.amount();
        if trailer[..4] != self.crc.sum().to_le_bytes() || trailer[4..] != bytes.to_le_bytes() {
            return Err(CompressionError::Corrupt { codec: Self::CODEC });
        }
        self.is_in_member = false;
        let mut next = *input;
        if self.start_member(&mut next).is_ok() {
            *input = next;
        }
        Ok(())
    }
}

impl Lz4 {
    const CODEC: Compression = Compression::Lz4;
    const CORRUPT: CompressionError = CompressionError::Corrupt { codec: Self::CODEC };

    fn read_header(input: &mut &[u8]) -> Result<Lz4, CompressionError> {
        let header = *input;
        let start = take(input, 6, Self::CODEC)?;
        let (flags, sizes) = (start[4], start[5]);
        // Version 1, independent blocks, no dictionary: Kafka's readers know nothing else.
        if start[..4] != [0x04, 0x22, 0x4d, 0x18] || flags & 0xe3 != 0x60 || sizes & 0x8f != 0 {
            return Err(Self::CORRUPT);
        }
        let block_bytes_max = match sizes >> 4 {
            size @ 4..=7 => 1 << (8 + 2 * size),
            _ => return Err(Self::CORRUPT),
        };
        // The content size, when it is there, is only checked for having its place.
        let content_size_bytes = if flags & 0x08 != 0 { 8 } else { 0 };
        take(input, content_size_bytes, Self::CODEC)?;
        let descriptor = &header[4..6 + content_size_bytes];
        let check = take(input, 1, Self::CODEC)?[0];
        if (twox_hash::XxHash32::oneshot(0, descriptor) >> 8) as u8 != check {
            return Err(Self::CORRUPT);
        }
        Ok(Lz4 {
            block_bytes_max,
            has_block_checksum: flags & 0x10 != 0,
            has_content_checksum: flags & 0x04 != 0,
        })
    }

    /// `false` at the end of the frame.
    fn read_block(&self, input: &mut &[u8], out: &mut Block) -> Result<bool, CompressionError> {
        let word = read_u32(input)?;
        let length = (word & !LZ4_UNCOMPRESSED) as usize;
        if length == 0 {
            // Kafka's reader does not compare the content's checksum, but wants it there.
            let checksum_bytes = if self.has_content_checksum { 4 } else { 0 };
            take(input, checksum_bytes, Self::CODEC)?;
            return Ok(false);
        }
        if length > self.block_bytes_max {
            return Err(Self::CORRUPT);
        }
        let block = take(input, length, Self::CODEC)?;
        if self.has_block_checksum && twox_hash::XxHash32::oneshot(0, block) != read_u32(input)? {
            return Err(Self::CORRUPT);
        }
        if word & LZ4_UNCOMPRESSED != 0 {
            out.prepare(length).copy_from_slice(block);
            out.end = length;
        } else {
            let room = out.prepare(self.block_bytes_max);
            let bytes = lz4_flex::block::decompress_into(block, room);
            out.end = bytes.map_err(|_| Self::CORRUPT)?;
        }
        Ok(true)
    }
}

fn read_u32(input: &mut &[u8]) -> Result<u32, CompressionError> {
    let bytes = take(input, 4, Lz4::CODEC)?;
    Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

/// The next `bytes` of the input.
fn take<'a>(
    input: &mut &'a [u8],
    bytes: usize,
    codec: Compression,
) -> Result<&'a [u8], CompressionError> {
    let (taken, rest) = input
        .split_at_checked(bytes)
        .ok_or(CompressionError::Cut { codec })?;
    *input = rest;
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_size_takes_no_memory() {
        // A raw snappy block that declares 4 GiB.
        let mut snappy = vec![0xff, 0xff, 0xff, 0xff, 0x0f, 27 << 2];
        snappy.extend([b'x'; 28]);
        let mut decompressor = Decompressor::new();
        let mut input = &snappy[..];
        decompressor.start(Compression::Snappy, &mut input).unwrap();
        assert!(decompressor.read(&mut input, &mut [0; 10]).is_err());
        assert_eq!(decompressor.block.bytes.capacity(), 0);
    }

    #[test]
    fn a_large_buffer_is_given_back() {
        let input = vec![0; KEPT_BYTES_MAX + 1];
        let large = snap::raw::Encoder::new().compress_vec(&input).unwrap();
        let mut decompressor = Decompressor::new();
        for (stream, is_kept) in [(&large[..], true), (b"", false)] {
            let mut input = stream;
            decompressor.start(Compression::Snappy, &mut input).unwrap();
            let _ = decompressor.read(&mut input, &mut [0; 10]);
            let capacity = decompressor.block.bytes.capacity();
            assert_eq!(capacity > KEPT_BYTES_MAX, is_kept);
        }
    }
}
