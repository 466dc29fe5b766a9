//! Reads the primitives of the protocol from a frame, as leniently as Kafka does.
//!
//! 1. Nothing is read beyond the frame, and no count is believed that the bytes left cannot hold.
//! 2. `plain` is cleared by whatever Kafka reads but the `kafka-protocol` crate would refuse or
//!    take for something else.

use super::layout::Length;
use super::malformed::{Malformed, Reason};

pub(super) type Read<T> = Result<T, Box<Malformed>>;

/// Kafka refuses longer texts even where a compact length could say more.
pub(super) const TEXT_BYTES_MAX: usize = i16::MAX as usize;

pub(super) struct Reader<'a> {
    frame: &'a [u8],
    at: usize,
    elements: usize,
    elements_max: usize,
    pub(super) plain: bool,
}

impl<'a> Reader<'a> {
    pub(super) fn new(frame: &'a [u8], elements_max: usize) -> Self {
        Reader {
            frame,
            at: 0,
            elements: 0,
            elements_max,
            plain: true,
        }
    }

    pub(super) fn frame(&self) -> &'a [u8] {
        self.frame
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// `position` must lie in the frame.
    pub(super) fn skip_to(&mut self, position: usize) {
        self.at = position;
    }

    pub(super) fn left(&self) -> usize {
        self.frame.len() - self.at
    }

    pub(super) fn take(&mut self, bytes: usize) -> Read<&'a [u8]> {
        if bytes > self.left() {
            return Err(self.refuse(Reason::CutShort {
                wanted: bytes,
                left: self.left(),
            }));
        }
        let from = self.at;
        self.at += bytes;
        Ok(&self.frame[from..self.at])
    }

    fn array<const N: usize>(&mut self) -> Read<[u8; N]> {
        let taken = self.take(N)?;
        Ok(taken.try_into().expect("take gives what it was asked for"))
    }

    pub(super) fn int8(&mut self) -> Read<i8> {
        Ok(i8::from_be_bytes(self.array()?))
    }

    pub(super) fn int16(&mut self) -> Read<i16> {
        Ok(i16::from_be_bytes(self.array()?))
    }

    pub(super) fn int32(&mut self) -> Read<i32> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    pub(super) fn int64(&mut self) -> Read<i64> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    /// At most five bytes; the bits of the fifth that do not fit are dropped, as Kafka drops them.
    pub(super) fn varint(&mut self) -> Read<u32> {
        let from = self.at;
        let mut value = 0;
        for i in 0..5 {
            let [byte] = self.array()?;
            value |= u32::from(byte & 0x7f) << (7 * i);
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Malformed::at(from, Reason::VarintTooLong))
    }

    /// The length of a text, of bytes or of an array; `None` is null.
    fn length(&mut self, length: Length, short: bool) -> Read<Option<usize>> {
        let from = self.at;
        let stated = if length.compact {
            (self.varint()? as i32).wrapping_sub(1)
        } else if short {
            i32::from(self.int16()?)
        } else {
            self.int32()?
        };
        // Kafka takes every negative length for null, the crate only -1.
        self.plain &= stated >= -1;
        match usize::try_from(stated) {
            Ok(stated) => Ok(Some(stated)),
            Err(_) if length.nullable => Ok(None),
            Err(_) => Err(Malformed::at(from, Reason::UnexpectedNull)),
        }
    }

    /// The bytes of a text, which need not be UTF-8.
    pub(super) fn text(&mut self, length: Length) -> Read<Option<&'a [u8]>> {
        let from = self.at;
        let Some(bytes) = self.length(length, true)? else {
            return Ok(None);
        };
        if bytes > TEXT_BYTES_MAX {
            let max = TEXT_BYTES_MAX;
            return Err(Malformed::at(from, Reason::TextTooLong { bytes, max }));
        }
        self.take(bytes).map(Some)
    }

    pub(super) fn bytes(&mut self, length: Length) -> Read<Option<&'a [u8]>> {
        match self.length(length, false)? {
            Some(bytes) => self.take(bytes).map(Some),
            None => Ok(None),
        }
    }

    /// The number of elements of an array. Each takes at least one byte.
    pub(super) fn count(&mut self, length: Length) -> Read<Option<usize>> {
        let from = self.at;
        let Some(count) = self.length(length, false)? else {
            return Ok(None);
        };
        let left = self.left();
        if count > left {
            return Err(Malformed::at(from, Reason::TooManyElements { count, left }));
        }
        self.elements += count;
        if self.elements > self.elements_max {
            let max = self.elements_max;
            return Err(Malformed::at(from, Reason::ElementsLimit { max }));
        }
        Ok(Some(count))
    }

    /// Whether a nullable struct follows.
    pub(super) fn presence(&mut self, nullable: bool) -> Read<bool> {
        if !nullable {
            return Ok(true);
        }
        let stated = self.int8()?;
        // Kafka takes every byte from 0 on for "present", the crate only 1.
        self.plain &= stated == 1 || stated == -1;
        Ok(stated >= 0)
    }

    /// The tag of the next tagged field and its stated size. Kafka goes by the size only for tags
    /// it does not know; of those it knows it reads what the field holds, whatever the size says.
    pub(super) fn tag(&mut self) -> Read<(u32, usize)> {
        Ok((self.varint()?, self.varint()? as usize))
    }

    fn refuse(&self, reason: Reason) -> Box<Malformed> {
        Malformed::at(self.at, reason)
    }
}
