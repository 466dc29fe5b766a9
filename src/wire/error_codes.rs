//! Finds the error codes in an answer by its layout.
//!
//! What stands here was written by this node, so that a frame which does not fit its layout is not
//! an error: what was found until then counts.

use super::layout::{Kind, Struct, api};
use super::malformed::Malformed;
use super::reader::{Read, Reader};

/// How the name of every field that holds one ends.
const ERROR_CODE: &str = "error_code";

/// Gives each error code of a response (header and body) to `found`, 0 for none with them.
pub fn error_codes(api_key: i16, version: i16, frame: &[u8], found: &mut dyn FnMut(i16)) {
    let Some((api, layout)) = api(api_key).and_then(|api| Some((api, api.response(version)?)))
    else {
        return;
    };
    let mut reader = Reader::new(frame, usize::MAX);
    let header = match api.response_header_version(version) {
        0 => reader.take(4).map(|_| ()),
        _ => reader.take(4).and_then(|_| skip_tagged(&mut reader)),
    };
    // See the head of the file.
    let _ = header.and_then(|()| fields(&mut reader, layout, found));
}

fn fields(reader: &mut Reader<'_>, layout: &Struct, found: &mut dyn FnMut(i16)) -> Read<()> {
    for field in &layout.fields {
        match field.kind {
            Kind::Int16 if field.name.ends_with(ERROR_CODE) => found(reader.int16()?),
            _ => value(reader, &field.kind, found)?,
        }
    }
    match &layout.tagged {
        // The one error code in a tagged field says why configurations are left out of an answer
        // to CreateTopics; Kafka does not count it either.
        Some(_) => skip_tagged(reader),
        None => Ok(()),
    }
}

fn value(reader: &mut Reader<'_>, kind: &Kind, found: &mut dyn FnMut(i16)) -> Read<()> {
    if let Some(bytes) = kind.fixed_bytes() {
        return reader.take(bytes).map(|_| ());
    }
    match kind {
        Kind::Text(length) => reader.text(*length).map(|_| ()),
        Kind::Bytes(length) | Kind::Records(length) => reader.bytes(*length).map(|_| ()),
        Kind::Array(length, element) => {
            let count = reader.count(*length)?.unwrap_or(0);
            if let Some(bytes) = element.fixed_bytes() {
                return reader.take(count * bytes).map(|_| ());
            }
            (0..count).try_for_each(|_| value(reader, element, found))
        }
        Kind::Struct { nullable, layout } => match reader.presence(*nullable)? {
            true => fields(reader, layout, found),
            false => Ok(()),
        },
        _ => Ok::<(), Box<Malformed>>(()),
    }
}

fn skip_tagged(reader: &mut Reader<'_>) -> Read<()> {
    for _ in 0..reader.varint()? {
        let (_, stated) = reader.tag()?;
        reader.take(stated)?;
    }
    Ok(())
}
