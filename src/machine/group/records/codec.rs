//! Reading and writing the primitive types of Kafka's message format, as far as the records of
//! `__consumer_offsets` use them.
//!
//! 1. A length that comes from disk is compared with the bytes that are left before anything is
//!    allocated.
//! 2. Unknown tagged fields are skipped: a newer Kafka may have written them.

use bytes::Bytes;
use uuid::Uuid;

use super::RecordError;

/// Reads fields from the front of a byte string.
pub(in crate::machine::group) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(in crate::machine::group) fn new(bytes: &'a [u8]) -> Self {
        Reader { rest: bytes }
    }

    pub(in crate::machine::group) fn take(&mut self, len: usize) -> Result<&'a [u8], RecordError> {
        if len > self.rest.len() {
            return Err(RecordError::Truncated {
                wanted: len,
                left: self.rest.len(),
            });
        }
        let (front, rest) = self.rest.split_at(len);
        self.rest = rest;
        Ok(front)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], RecordError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub(in crate::machine::group) fn i8(&mut self) -> Result<i8, RecordError> {
        Ok(i8::from_be_bytes(self.array()?))
    }

    pub(in crate::machine::group) fn i16(&mut self) -> Result<i16, RecordError> {
        Ok(i16::from_be_bytes(self.array()?))
    }

    pub(in crate::machine::group) fn i32(&mut self) -> Result<i32, RecordError> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    pub(in crate::machine::group) fn i64(&mut self) -> Result<i64, RecordError> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    pub(in crate::machine::group) fn uuid(&mut self) -> Result<Uuid, RecordError> {
        Ok(Uuid::from_bytes(self.array()?))
    }

    pub(in crate::machine::group) fn uvarint(&mut self) -> Result<u32, RecordError> {
        let mut value = 0u32;
        for shift in (0..35).step_by(7) {
            let byte = self.array::<1>()?[0];
            value |= u32::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(RecordError::VarintTooLong)
    }

    /// The length of a compact field: `None` is null.
    pub(in crate::machine::group) fn compact_len(&mut self) -> Result<Option<usize>, RecordError> {
        Ok((self.uvarint()? as usize).checked_sub(1))
    }

    /// The length of a classic array or byte string: `None` is null.
    pub(in crate::machine::group) fn len_i32(&mut self) -> Result<Option<usize>, RecordError> {
        Ok(usize::try_from(self.i32()?).ok())
    }

    fn text(&mut self, len: Option<usize>) -> Result<Option<String>, RecordError> {
        let Some(len) = len else { return Ok(None) };
        let bytes = self.take(len)?;
        Ok(Some(String::from_utf8_lossy(bytes).into_owned()))
    }

    /// A string, nullable, in the layout of a flexible version or not.
    pub(in crate::machine::group) fn nullable_string(
        &mut self,
        flex: bool,
    ) -> Result<Option<String>, RecordError> {
        let len = if flex {
            self.compact_len()?
        } else {
            usize::try_from(self.i16()?).ok()
        };
        self.text(len)
    }

    pub(in crate::machine::group) fn string(&mut self, flex: bool) -> Result<String, RecordError> {
        self.nullable_string(flex)?
            .ok_or(RecordError::UnexpectedNull)
    }

    pub(in crate::machine::group) fn bytes(&mut self, flex: bool) -> Result<Bytes, RecordError> {
        let len = if flex {
            self.compact_len()?
        } else {
            self.len_i32()?
        };
        let len = len.ok_or(RecordError::UnexpectedNull)?;
        Ok(Bytes::copy_from_slice(self.take(len)?))
    }

    /// An array whose elements `read` reads; `None` is null.
    pub(in crate::machine::group) fn nullable_vec<T>(
        &mut self,
        flex: bool,
        mut read: impl FnMut(&mut Self) -> Result<T, RecordError>,
    ) -> Result<Option<Vec<T>>, RecordError> {
        let len = if flex {
            self.compact_len()?
        } else {
            self.len_i32()?
        };
        let Some(len) = len else { return Ok(None) };
        // Every element of these records is at least one byte long.
        if len > self.rest.len() {
            return Err(RecordError::Truncated {
                wanted: len,
                left: self.rest.len(),
            });
        }
        let mut elements = Vec::new();
        for _ in 0..len {
            elements.push(read(self)?);
        }
        Ok(Some(elements))
    }

    pub(in crate::machine::group) fn vec<T>(
        &mut self,
        flex: bool,
        read: impl FnMut(&mut Self) -> Result<T, RecordError>,
    ) -> Result<Vec<T>, RecordError> {
        self.nullable_vec(flex, read)?
            .ok_or(RecordError::UnexpectedNull)
    }

    /// The tagged fields that end a structure; `read` gets each tag with a reader of its bytes.
    pub(in crate::machine::group) fn tagged(
        &mut self,
        mut read: impl FnMut(u32, &mut Reader<'a>) -> Result<(), RecordError>,
    ) -> Result<(), RecordError> {
        for _ in 0..self.uvarint()? {
            let tag = self.uvarint()?;
            let len = self.uvarint()? as usize;
            read(tag, &mut Reader::new(self.take(len)?))?;
        }
        Ok(())
    }

    pub(in crate::machine::group) fn skip_tagged(&mut self) -> Result<(), RecordError> {
        self.tagged(|_, _| Ok(()))
    }
}

/// Appends fields to a byte string.
#[derive(Default)]
pub(in crate::machine::group) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    pub(in crate::machine::group) fn version(version: i16) -> Self {
        let mut writer = Writer::default();
        writer.i16(version);
        writer
    }

    pub(in crate::machine::group) fn finish(self) -> Bytes {
        Bytes::from(self.bytes)
    }

    pub(in crate::machine::group) fn i8(&mut self, value: i8) {
        self.bytes.extend(value.to_be_bytes());
    }

    pub(in crate::machine::group) fn i16(&mut self, value: i16) {
        self.bytes.extend(value.to_be_bytes());
    }

    pub(in crate::machine::group) fn i32(&mut self, value: i32) {
        self.bytes.extend(value.to_be_bytes());
    }

    pub(in crate::machine::group) fn i64(&mut self, value: i64) {
        self.bytes.extend(value.to_be_bytes());
    }

    pub(in crate::machine::group) fn uuid(&mut self, value: Uuid) {
        self.bytes.extend(value.as_bytes());
    }

    pub(in crate::machine::group) fn uvarint(&mut self, mut value: usize) {
        while value >= 0x80 {
            self.bytes.push((value as u8 & 0x7f) | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    pub(in crate::machine::group) fn string(&mut self, value: &str) {
        let len = i16::try_from(value.len()).expect("ids and metadata come in int16 strings");
        self.i16(len);
        self.bytes.extend(value.as_bytes());
    }

    pub(in crate::machine::group) fn nullable_string(&mut self, value: Option<&str>) {
        match value {
            None => self.i16(-1),
            Some(value) => self.string(value),
        }
    }

    pub(in crate::machine::group) fn bytes(&mut self, value: &[u8]) {
        let len = i32::try_from(value.len()).expect("a request is smaller than 2 GiB");
        self.i32(len);
        self.bytes.extend(value);
    }

    pub(in crate::machine::group) fn array_len(&mut self, len: usize) {
        self.i32(i32::try_from(len).expect("a request is smaller than 2 GiB"));
    }

    pub(in crate::machine::group) fn compact_len(&mut self, len: usize) {
        self.uvarint(len + 1);
    }

    pub(in crate::machine::group) fn compact_bytes(&mut self, value: &[u8]) {
        self.compact_len(value.len());
        self.bytes.extend(value);
    }

    pub(in crate::machine::group) fn compact_string(&mut self, value: &str) {
        self.compact_bytes(value.as_bytes());
    }

    pub(in crate::machine::group) fn compact_nullable_string(&mut self, value: Option<&str>) {
        match value {
            None => self.uvarint(0),
            Some(value) => self.compact_string(value),
        }
    }

    pub(in crate::machine::group) fn no_tags(&mut self) {
        self.uvarint(0);
    }

    /// One tagged field, alone in its structure.
    pub(in crate::machine::group) fn one_tag(
        &mut self,
        tag: usize,
        write: impl FnOnce(&mut Writer),
    ) {
        let mut field = Writer::default();
        write(&mut field);
        self.uvarint(1);
        self.uvarint(tag);
        self.uvarint(field.bytes.len());
        self.bytes.extend(field.bytes);
    }
}
