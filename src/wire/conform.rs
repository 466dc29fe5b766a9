//! Holds a request frame against its layout before anything is decoded from it.
//!
//! 1. What passes can be decoded by the `kafka-protocol` crate, which reserves memory for an array
//!    from the length on the wire: every length and every element has been walked, so an array of n
//!    elements is backed by at least n bytes.
//! 2. Nested arrays cannot multiply that: elements do not share bytes, so all arrays of a frame
//!    together have at most as many elements as the frame has bytes, and at most [`ELEMENTS_MAX`].
//!    With no decoded element above 256 bytes, a frame takes at most
//!    min(256 x its length, 256 MiB) beyond its own bytes.
//! 3. A frame in its plain form comes back as it is: no copy, no allocation.
//! 4. Otherwise it is written anew: null as -1, text as UTF-8 (U+FFFD for what is none), and
//!    without unknown tagged fields: a broker has no use for them, and the crate refuses those that
//!    another version knows (so does Kafka, which closes the connection on them).
//! 5. Bytes after the body are cut off.

use std::borrow::Cow;
use std::collections::BTreeMap;

use bytes::Bytes;

use super::API_VERSIONS;
use super::layout::{Api, Field, Kind, Length, Struct, TaggedField, api};
use super::malformed::{Malformed, Reason};
use super::reader::{Read, Reader, TEXT_BYTES_MAX};
use super::value_encode::put_varint;

/// The elements that the arrays of one frame may have together.
pub const ELEMENTS_MAX: usize = 1 << 20;
/// The same of a response: metadata of 100,000 partitions has some 700,000 elements.
const RESPONSE_ELEMENTS_MAX: usize = 1 << 22;

/// The client id: the one text that has no compact form in any version (KIP-511).
pub(super) const CLIENT_ID: Length = Length {
    compact: false,
    nullable: true,
};

/// Checks a request (header and body, without the length before them) and gives it in its plain
/// form. Of an ApiVersions request of an unknown version only the header is checked and given, as
/// Kafka answers it whatever its body says.
pub fn conform(frame: &Bytes) -> Result<Bytes, Malformed> {
    let mut walk = Walk::new(frame, None);
    walk.request().map_err(|malformed| *malformed)?;
    if walk.reader.plain {
        return Ok(frame.slice(..walk.reader.position()));
    }
    let mut walk = Walk::new(frame, Some(Vec::with_capacity(frame.len())));
    walk.request().map_err(|malformed| *malformed)?;
    Ok(walk.out.map_or_else(Bytes::new, Bytes::from))
}

/// Whether the arrays of a request have at most `elements_max` elements together, found without
/// looking further than that. What cannot be read at all has few.
pub fn has_few_elements(frame: &[u8], elements_max: usize) -> bool {
    let mut walk = Walk {
        reader: Reader::new(frame, elements_max),
        out: None,
    };
    let limit = |malformed: &Malformed| matches!(malformed.reason, Reason::ElementsLimit { .. });
    !walk.request().is_err_and(|malformed| limit(&malformed))
}

/// The API and the version that a frame names in its first four bytes.
pub(super) fn api_and_version(frame: &[u8]) -> Read<(&'static Api, i16)> {
    let mut reader = Reader::new(frame, 0);
    let key = reader.int16().map_err(|e| e.within("api_key"))?;
    let version = reader.int16().map_err(|e| e.within("api_version"))?;
    match api(key).filter(|api| !api.versions.is_empty()) {
        Some(api) => Ok((api, version)),
        None => Err(Malformed::at(0, Reason::UnknownApi(key)).within("api_key")),
    }
}

/// Checks a response as [`conform`] checks a request, and gives its body in its plain form. The
/// answer to a request of `version`; see [`super::decode_response`].
pub fn conform_response(api_key: i16, version: i16, frame: &Bytes) -> Result<Bytes, Malformed> {
    let mut walk = Walk::response_of(frame, None);
    let body_start = walk
        .response(api_key, version)
        .map_err(|malformed| *malformed)?;
    if walk.reader.plain {
        return Ok(frame.slice(body_start..walk.reader.position()));
    }
    let mut walk = Walk::response_of(frame, Some(Vec::with_capacity(frame.len())));
    walk.response(api_key, version)
        .map_err(|malformed| *malformed)?;
    Ok(walk.out.map_or_else(Bytes::new, Bytes::from))
}

struct Walk<'a> {
    reader: Reader<'a>,
    /// The plain form, when it has to be written.
    out: Option<Vec<u8>>,
}

impl<'a> Walk<'a> {
    fn new(frame: &'a [u8], out: Option<Vec<u8>>) -> Self {
        Walk {
            reader: Reader::new(frame, ELEMENTS_MAX),
            out,
        }
    }

    fn response_of(frame: &'a [u8], out: Option<Vec<u8>>) -> Self {
        Walk {
            reader: Reader::new(frame, RESPONSE_ELEMENTS_MAX),
            out,
        }
    }

    /// Walks the whole response; what is written is its body. Returns where that starts.
    fn response(&mut self, api_key: i16, version: i16) -> Read<usize> {
        let api = api(api_key).ok_or_else(|| Malformed::at(0, Reason::UnknownApi(api_key)))?;
        let unknown = Reason::UnknownVersion {
            api: api.name,
            version,
        };
        let layout = api
            .response(version)
            .ok_or_else(|| Malformed::at(0, unknown))?;
        self.reader.int32()?;
        if api.response_header_version(version) >= 1 {
            for _ in 0..self.reader.varint()? {
                let (_, stated) = self.reader.tag()?;
                self.reader.take(stated)?;
            }
        }
        let body_start = self.reader.position();
        self.fields(layout)?;
        Ok(body_start)
    }

    fn request(&mut self) -> Read<()> {
        let (api, version) = api_and_version(self.reader.frame())?;
        let body = api.request(version);
        if body.is_none() && api.key != API_VERSIONS {
            let unknown = Reason::UnknownVersion {
                api: api.name,
                version,
            };
            return Err(Malformed::at(2, unknown).within("api_version"));
        }
        self.header(api.request_header_version(version))?;
        match body {
            Some(body) => self.fields(body),
            None => Ok(()),
        }
    }

    fn header(&mut self, header_version: i16) -> Read<()> {
        // The key, the version and the correlation id.
        self.fixed(8)?;
        self.text(CLIENT_ID).map_err(|e| e.within("client_id"))?;
        if header_version >= 2 {
            self.tagged(&[])?;
        }
        Ok(())
    }

    fn fields(&mut self, layout: &Struct) -> Read<()> {
        for field in &layout.fields {
            self.field(field)?;
        }
        match &layout.tagged {
            Some(tagged) => self.tagged(tagged),
            None => Ok(()),
        }
    }

    fn field(&mut self, field: &Field) -> Read<()> {
        self.value(&field.kind).map_err(|e| e.within(field.name))
    }

    fn value(&mut self, kind: &Kind) -> Read<()> {
        match kind {
            Kind::Boolean | Kind::Int8 => self.fixed(1),
            Kind::Int16 | Kind::Uint16 => self.fixed(2),
            Kind::Int32 => self.fixed(4),
            Kind::Int64 | Kind::Float64 => self.fixed(8),
            Kind::Uuid => self.fixed(16),
            Kind::Text(length) => self.text(*length),
            Kind::Bytes(length) | Kind::Records(length) => self.bytes(*length),
            Kind::Array(length, element) => self.array(*length, element),
            Kind::Struct { nullable, layout } => self.structure(*nullable, layout),
        }
    }

    fn fixed(&mut self, bytes: usize) -> Read<()> {
        let taken = self.reader.take(bytes)?;
        if let Some(out) = &mut self.out {
            out.extend_from_slice(taken);
        }
        Ok(())
    }

    fn text(&mut self, length: Length) -> Read<()> {
        let from = self.reader.position();
        let text = self.reader.text(length)?;
        if let Some(out) = &mut self.out {
            let Some(text) = text else {
                put_length(out, length, true, None);
                return Ok(());
            };
            let text = text_as_java(text);
            if text.len() > TEXT_BYTES_MAX {
                // U+FFFD takes three bytes and may stand for one.
                let (bytes, max) = (text.len(), TEXT_BYTES_MAX);
                return Err(Malformed::at(from, Reason::TextTooLong { bytes, max }));
            }
            put_length(out, length, true, Some(text.len()));
            out.extend_from_slice(text.as_bytes());
        } else if let Some(text) = text {
            self.reader.plain &= std::str::from_utf8(text).is_ok();
        }
        Ok(())
    }

    fn bytes(&mut self, length: Length) -> Read<()> {
        let bytes = self.reader.bytes(length)?;
        if let Some(out) = &mut self.out {
            put_length(out, length, false, bytes.map(<[u8]>::len));
            out.extend_from_slice(bytes.unwrap_or_default());
        }
        Ok(())
    }

    fn array(&mut self, length: Length, element: &Kind) -> Read<()> {
        let count = self.reader.count(length)?;
        if let Some(out) = &mut self.out {
            put_length(out, length, false, count);
        }
        let count = count.unwrap_or(0);
        if let Some(bytes) = element.fixed_bytes() {
            // The count is at most the bytes left, so this cannot overflow.
            return self.fixed(count * bytes);
        }
        for index in 0..count {
            self.value(element).map_err(|e| e.within_element(index))?;
        }
        Ok(())
    }

    fn structure(&mut self, nullable: bool, layout: &Struct) -> Read<()> {
        let present = self.reader.presence(nullable)?;
        if let Some(out) = self.out.as_mut().filter(|_| nullable) {
            out.push(if present { 1 } else { -1_i8 as u8 });
        }
        if present { self.fields(layout) } else { Ok(()) }
    }

    /// Tagged fields: walked in the order they come in, written by ascending tag. Of one that comes
    /// twice the last counts, as in Kafka and in the crate.
    fn tagged(&mut self, known: &[TaggedField]) -> Read<()> {
        let count = self.reader.varint()?;
        let mut written: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
        for _ in 0..count {
            let (tag, stated) = self.reader.tag()?;
            let Some(known) = known.iter().find(|known| known.tag == tag) else {
                self.reader.plain = false;
                self.reader.take(stated)?;
                continue;
            };
            if let Some(content) = self.tagged_field(&known.field)? {
                written.insert(tag, content);
            }
        }
        if let Some(out) = &mut self.out {
            put_varint(out, written.len() as u32);
            for (tag, content) in &written {
                put_varint(out, *tag);
                put_varint(out, content.len() as u32);
                out.extend_from_slice(content);
            }
        }
        Ok(())
    }

    /// Walks the content of a tagged field; gives its plain form when that has to be written.
    fn tagged_field(&mut self, field: &Field) -> Read<Option<Vec<u8>>> {
        let outer = self.out.take();
        self.out = outer.is_some().then(Vec::new);
        self.field(field)?;
        Ok(std::mem::replace(&mut self.out, outer))
    }
}

/// The text that Kafka reads from bytes that need not be UTF-8: U+FFFD stands for what is none, and
/// one of it for a whole surrogate, for which Rust would write three.
pub(super) fn text_as_java(bytes: &[u8]) -> Cow<'_, str> {
    let mut text = String::new();
    let mut rest = bytes;
    loop {
        let error = match std::str::from_utf8(rest) {
            Ok(valid) if text.is_empty() => return Cow::Borrowed(valid),
            Ok(valid) => return Cow::Owned(text + valid),
            Err(error) => error,
        };
        let (valid, invalid) = rest.split_at(error.valid_up_to());
        text.push_str(&String::from_utf8_lossy(valid));
        text.push(char::REPLACEMENT_CHARACTER);
        let is_surrogate = matches!(invalid, [0xed, 0xa0..=0xbf, 0x80..=0xbf, ..]);
        let passed = if is_surrogate {
            Some(3)
        } else {
            error.error_len()
        };
        rest = &invalid[passed.unwrap_or(invalid.len())..];
    }
}

/// Writes a length in its plain form; `None` is null.
pub(super) fn put_length(out: &mut Vec<u8>, form: Length, short: bool, length: Option<usize>) {
    // A length that was read from a frame, or that the encoder checked, fits.
    if form.compact {
        put_varint(out, length.map_or(0, |length| length as u32 + 1));
    } else if short {
        out.extend_from_slice(&length.map_or(-1, |length| length as i16).to_be_bytes());
    } else {
        out.extend_from_slice(&length.map_or(-1, |length| length as i32).to_be_bytes());
    }
}
