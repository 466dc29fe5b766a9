//! Reads the fields of Kafka's metadata records, all of which have the flexible layout.
//!
//! No length is believed that the bytes left cannot hold.

use std::sync::Arc;

use uuid::Uuid;

use crate::types::BrokerId;

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum FieldError {
    #[error("it ends too soon")]
    Ends,
    #[error("a length is no varint")]
    Varint,
    #[error("a text is not UTF-8")]
    Text,
    #[error("null where there has to be a value")]
    Null,
}

type Field<T> = Result<T, FieldError>;

pub(super) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub fn new(bytes: &'a [u8]) -> Fields<'a> {
        Fields(bytes)
    }

    fn take(&mut self, len: usize) -> Field<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(FieldError::Ends)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Field<[u8; N]> {
        let taken = self.take(N)?;
        Ok(taken.try_into().expect("take gives what it was asked for"))
    }

    pub fn int8(&mut self) -> Field<i8> {
        Ok(i8::from_be_bytes(self.array()?))
    }

    pub fn int16(&mut self) -> Field<i16> {
        Ok(i16::from_be_bytes(self.array()?))
    }

    pub fn int32(&mut self) -> Field<i32> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    pub fn int64(&mut self) -> Field<i64> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    pub fn broker(&mut self) -> Field<BrokerId> {
        self.int32().map(BrokerId)
    }

    pub fn uuid(&mut self) -> Field<Uuid> {
        Ok(Uuid::from_bytes(self.array()?))
    }

    pub fn varint(&mut self) -> Field<u32> {
        let mut value = 0u32;
        for shift in (0..35).step_by(7) {
            let [byte] = self.array()?;
            value |= u32::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(FieldError::Varint)
    }

    /// `None` is null.
    fn length(&mut self) -> Field<Option<usize>> {
        Ok((self.varint()? as usize).checked_sub(1))
    }

    pub fn nullable_string(&mut self) -> Field<Option<Arc<str>>> {
        let Some(len) = self.length()? else {
            return Ok(None);
        };
        let text = std::str::from_utf8(self.take(len)?);
        text.map(|text| Some(text.into()))
            .map_err(|_| FieldError::Text)
    }

    pub fn string(&mut self) -> Field<Arc<str>> {
        self.nullable_string()?.ok_or(FieldError::Null)
    }

    pub fn nullable_array<T>(
        &mut self,
        each: impl Fn(&mut Self) -> Field<T>,
    ) -> Field<Option<Arc<[T]>>> {
        let Some(count) = self.length()? else {
            return Ok(None);
        };
        if count > self.0.len() {
            return Err(FieldError::Ends);
        }
        let elements: Field<Vec<T>> = (0..count).map(|_| each(self)).collect();
        elements.map(|elements| Some(elements.into()))
    }

    pub fn vec<T>(&mut self, each: impl Fn(&mut Self) -> Field<T>) -> Field<Arc<[T]>> {
        self.nullable_array(each)?.ok_or(FieldError::Null)
    }

    /// The tagged fields at the end. `read` gets those it knows and leaves the others.
    pub fn tagged(&mut self, mut read: impl FnMut(u32, &mut Fields<'a>) -> Field<()>) -> Field<()> {
        for _ in 0..self.varint()? {
            let tag = self.varint()?;
            let len = self.varint()? as usize;
            read(tag, &mut Fields(self.take(len)?))?;
        }
        Ok(())
    }
}
