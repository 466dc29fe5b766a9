//! Record batches: built from what a case says of them, right or wrong, and read back into a tree.
//! Written apart from the broker's own code, so that one does not test itself.
//!
//! ```text
//! {"batch": {"records": ["a", {"key": "k", "value": null, "timestamp": 5}], "codec": "gzip", ...}}
//! {"batches": [{...}, {...}]}
//! ```

use std::borrow::Cow;
use std::io::{Read, Write};

use bytes::Bytes;
use klamm::wire::Value;
use serde_json::{Map, Value as Json};

const HEADER_BYTES: usize = 61;
/// From here on the crc counts.
const ATTRIBUTES_AT: usize = 21;

const BATCH_FIELDS: &[&str] = &[
    "append",
    "attributes",
    "base_offset",
    "base_sequence",
    "base_timestamp",
    "codec",
    "count",
    "crc",
    "cut",
    "last_offset_delta",
    "leader_epoch",
    "length",
    "magic",
    "max_timestamp",
    "payload",
    "producer_epoch",
    "producer_id",
    "records",
];

/// Replaces every `{"batch": ...}` and `{"batches": ...}` by its bytes as `hex:...`.
pub fn build_all(json: &mut Json, t0_ms: i64) -> Result<(), String> {
    match json {
        Json::Object(fields) => {
            let built = match (fields.get("batch"), fields.get("batches")) {
                (Some(batch), _) => Some(build(batch, t0_ms)?),
                (_, Some(Json::Array(batches))) => {
                    let built = batches.iter().map(|batch| build(batch, t0_ms));
                    Some(built.collect::<Result<Vec<_>, _>>()?.concat())
                }
                _ => None,
            };
            match built {
                Some(bytes) => *json = Json::from(to_hex(&bytes)),
                None => {
                    for value in fields.values_mut() {
                        build_all(value, t0_ms)?;
                    }
                }
            }
        }
        Json::Array(elements) => {
            for element in elements {
                build_all(element, t0_ms)?;
            }
        }
        _ => {}
    }
    Ok(())
}

pub fn to_hex(bytes: &[u8]) -> String {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("hex:{digits}")
}

fn build(spec: &Json, t0_ms: i64) -> Result<Vec<u8>, String> {
    let spec = spec.as_object().ok_or("a batch is an object")?;
    if let Some(unknown) = spec
        .keys()
        .find(|key| !BATCH_FIELDS.contains(&key.as_str()))
    {
        return Err(format!("a batch has no {unknown}"));
    }
    let number = |name: &str, default: i64| match spec.get(name) {
        Some(value) => value.as_i64().ok_or(format!("{name} is no number")),
        None => Ok(default),
    };
    let none = Vec::new();
    let records = spec
        .get("records")
        .and_then(Json::as_array)
        .unwrap_or(&none);
    let times = records.iter().map(|record| timestamp_of(record, t0_ms));
    let first = times.clone().next().unwrap_or(t0_ms);
    let first = number("base_timestamp", first)?;
    let last = number("max_timestamp", times.max().unwrap_or(t0_ms))?;
    let codec = codec_of(spec.get("codec"))?;
    let payload = match spec.get("payload").and_then(Json::as_str) {
        Some(hex) => from_hex(hex)?,
        None => compress(codec, &encode_records(records, first, t0_ms)?)?,
    };
    let mut batch = Vec::with_capacity(HEADER_BYTES + payload.len());
    batch.extend(number("base_offset", 0)?.to_be_bytes());
    let length = number("length", (HEADER_BYTES - 12 + payload.len()) as i64)?;
    batch.extend((length as i32).to_be_bytes());
    batch.extend((number("leader_epoch", -1)? as i32).to_be_bytes());
    batch.push(number("magic", 2)? as u8);
    batch.extend([0; 4]);
    batch.extend((number("attributes", codec & 7)? as i16).to_be_bytes());
    let last_delta = number("last_offset_delta", records.len() as i64 - 1)?;
    batch.extend((last_delta as i32).to_be_bytes());
    batch.extend(first.to_be_bytes());
    batch.extend(last.to_be_bytes());
    batch.extend(number("producer_id", -1)?.to_be_bytes());
    batch.extend((number("producer_epoch", -1)? as i16).to_be_bytes());
    batch.extend((number("base_sequence", -1)? as i32).to_be_bytes());
    batch.extend((number("count", records.len() as i64)? as i32).to_be_bytes());
    batch.extend(payload);
    let crc = number("crc", crc32c::crc32c(&batch[ATTRIBUTES_AT..]).into())?;
    batch[17..21].copy_from_slice(&(crc as u32).to_be_bytes());
    if let Some(hex) = spec.get("append").and_then(Json::as_str) {
        batch.extend(from_hex(hex)?);
    }
    batch.truncate(batch.len() - number("cut", 0)? as usize);
    Ok(batch)
}

fn timestamp_of(record: &Json, t0_ms: i64) -> i64 {
    record
        .get("timestamp")
        .and_then(Json::as_i64)
        .unwrap_or(t0_ms)
}

fn encode_records(records: &[Json], first: i64, t0_ms: i64) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    let none = Map::new();
    for (i, record) in records.iter().enumerate() {
        let mut body = vec![0];
        put_varint(&mut body, timestamp_of(record, t0_ms) - first);
        let delta = record.get("offset_delta").and_then(Json::as_i64);
        put_varint(&mut body, delta.unwrap_or(i as i64));
        put_text(&mut body, record.get("key"));
        let value = if record.is_object() {
            record.get("value")
        } else {
            Some(record)
        };
        put_text(&mut body, value);
        let headers = record
            .get("headers")
            .and_then(Json::as_object)
            .unwrap_or(&none);
        put_varint(&mut body, headers.len() as i64);
        for (key, value) in headers {
            put_text(&mut body, Some(&Json::from(key.as_str())));
            put_text(&mut body, Some(value));
        }
        put_varint(&mut out, body.len() as i64);
        out.extend(body);
    }
    Ok(out)
}

/// `{"repeat": "x", "times": 1000}` stands for a long text.
fn put_text(out: &mut Vec<u8>, text: Option<&Json>) {
    let repeated = text.and_then(|text| {
        let times = text.get("times")?.as_u64()? as usize;
        Some(text.get("repeat")?.as_str()?.repeat(times))
    });
    match repeated.as_deref().or(text.and_then(Json::as_str)) {
        Some(text) => {
            put_varint(out, text.len() as i64);
            out.extend(text.as_bytes());
        }
        None => put_varint(out, -1),
    }
}

fn put_varint(out: &mut Vec<u8>, value: i64) {
    let mut zigzag = ((value << 1) ^ (value >> 63)) as u64;
    while zigzag >= 0x80 {
        out.push(zigzag as u8 | 0x80);
        zigzag >>= 7;
    }
    out.push(zigzag as u8);
}

pub fn from_hex(text: &str) -> Result<Vec<u8>, String> {
    let digits: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    let pairs = digits.chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair).map_err(|_| "no hex")?;
        u8::from_str_radix(pair, 16).map_err(|_| format!("no hex: {pair}"))
    });
    pairs.collect()
}

/// Snappy as the Java client writes it: a header, then blocks with their length before them.
const SNAPPY_FRAMED: i64 = 0x102;
const SNAPPY_HEADER: &[u8] = b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01";

const CODECS: &[&str] = &["none", "gzip", "snappy", "lz4", "zstd"];

fn codec_of(codec: Option<&Json>) -> Result<i64, String> {
    match codec {
        None => Ok(0),
        Some(Json::String(name)) if name == "snappy-framed" => Ok(SNAPPY_FRAMED),
        Some(Json::String(name)) => match CODECS.iter().position(|codec| codec == name) {
            Some(number) => Ok(number as i64),
            None => Err(format!("no codec is called {name}")),
        },
        Some(number) => number.as_i64().ok_or("no codec".to_owned()),
    }
}

fn compress(codec: i64, plain: &[u8]) -> Result<Vec<u8>, String> {
    let written = match codec {
        1 => {
            let level = flate2::Compression::default();
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
            encoder.write_all(plain).and_then(|()| encoder.finish())
        }
        2 => {
            return snap::raw::Encoder::new()
                .compress_vec(plain)
                .map_err(|e| e.to_string());
        }
        SNAPPY_FRAMED => {
            let block = compress(2, plain)?;
            let length = (block.len() as u32).to_be_bytes();
            return Ok([SNAPPY_HEADER, &length, &block].concat());
        }
        3 => {
            let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
            encoder.write_all(plain).map_err(|e| e.to_string())?;
            return encoder.finish().map_err(|e| e.to_string());
        }
        4 => zstd::encode_all(plain, 0),
        _ => Ok(plain.to_vec()),
    };
    written.map_err(|e| e.to_string())
}

fn decompress(codec: i64, packed: &[u8]) -> Result<Vec<u8>, String> {
    let mut plain = Vec::new();
    let read = match codec {
        0 => return Ok(packed.to_vec()),
        1 => flate2::read::GzDecoder::new(packed).read_to_end(&mut plain),
        2 if packed.starts_with(SNAPPY_HEADER) => {
            let block = packed.get(SNAPPY_HEADER.len() + 4..).unwrap_or_default();
            return decompress(2, block);
        }
        2 => {
            return snap::raw::Decoder::new()
                .decompress_vec(packed)
                .map_err(|e| e.to_string());
        }
        3 => lz4_flex::frame::FrameDecoder::new(packed).read_to_end(&mut plain),
        4 => return zstd::decode_all(packed).map_err(|e| e.to_string()),
        _ => return Err("unknown codec".to_owned()),
    };
    read.map(|_| plain).map_err(|e| e.to_string())
}

/// The batches of a Fetch answer as a tree; what is cut off at its end is counted.
pub fn read_all(records: &Bytes) -> Value {
    let mut batches = Vec::new();
    let mut rest = &records[..];
    while !rest.is_empty() {
        let stated = rest
            .get(8..12)
            .map(|b| i32::from_be_bytes(b.try_into().expect("four")));
        let whole = stated.map(|length| 12 + length as usize);
        match whole.filter(|&whole| whole <= rest.len() && whole >= HEADER_BYTES) {
            Some(whole) => {
                batches.push(read(&rest[..whole]));
                rest = &rest[whole..];
            }
            None => {
                let cut = Value::Text(format!("cut after {} bytes", rest.len()));
                batches.push(cut);
                break;
            }
        }
    }
    Value::Array(batches)
}

fn read(batch: &[u8]) -> Value {
    let number = |at: usize, bytes: usize| {
        let sign = if batch[at] >= 0x80 { -1_i64 } else { 0 };
        let add = |value: i64, byte: &u8| (value << 8) | i64::from(*byte);
        Value::Integer(batch[at..at + bytes].iter().fold(sign, add))
    };
    let attributes = i64::from(batch[22]);
    let crc = u32::from_be_bytes(batch[17..21].try_into().expect("four"));
    let crc_is_right = crc == crc32c::crc32c(&batch[ATTRIBUTES_AT..]);
    let records = match decompress(attributes & 7, &batch[HEADER_BYTES..]) {
        Ok(plain) => read_records(&plain, batch),
        Err(error) => Value::Text(error),
    };
    let fields = [
        ("base_offset", number(0, 8)),
        ("batch_length", number(8, 4)),
        ("leader_epoch", number(12, 4)),
        ("magic", number(16, 1)),
        ("crc_is_right", Value::Boolean(crc_is_right)),
        ("attributes", number(21, 2)),
        ("last_offset_delta", number(23, 4)),
        ("base_timestamp", number(27, 8)),
        ("max_timestamp", number(35, 8)),
        ("producer_id", number(43, 8)),
        ("producer_epoch", number(51, 2)),
        ("base_sequence", number(53, 4)),
        ("count", number(57, 4)),
        ("records", records),
    ];
    Value::Struct(
        fields
            .map(|(name, value)| (Cow::Borrowed(name), value))
            .into(),
    )
}

fn read_records(plain: &[u8], batch: &[u8]) -> Value {
    let count = u32::from_be_bytes(batch[57..61].try_into().expect("four"));
    let mut rest = plain;
    let mut records = Vec::new();
    for _ in 0..count {
        match read_record(&mut rest) {
            Some(text) => records.push(Value::Text(text)),
            None => return Value::Text(format!("unreadable: {}", to_hex(plain))),
        }
    }
    Value::Array(records)
}

/// One record as a line of text, and the bytes after it.
fn read_record(rest: &mut &[u8]) -> Option<String> {
    let length = take_varint(rest)? as usize;
    let mut body = rest.get(..length)?;
    *rest = &rest[length..];
    body = body.get(1..)?;
    let time = take_varint(&mut body)?;
    let offset = take_varint(&mut body)?;
    let key = take_text(&mut body)?;
    let value = take_text(&mut body)?;
    let mut text = format!("{offset} at +{time}: {key} = {value}");
    for _ in 0..take_varint(&mut body)? {
        let name = take_text(&mut body)?;
        text.push_str(&format!(", {name}: {}", take_text(&mut body)?));
    }
    Some(text)
}

fn take_varint(rest: &mut &[u8]) -> Option<i64> {
    let mut zigzag = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        zigzag |= u64::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            return Some((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64));
        }
    }
    None
}

fn take_text(rest: &mut &[u8]) -> Option<String> {
    const SHOWN_BYTES_MAX: usize = 40;
    let length = take_varint(rest)?;
    let Ok(length) = usize::try_from(length) else {
        return Some("null".to_owned());
    };
    let text = String::from_utf8_lossy(rest.get(..length)?).into_owned();
    *rest = &rest[length..];
    Some(if length > SHOWN_BYTES_MAX {
        format!("{length} bytes")
    } else {
        text
    })
}

#[test]
fn a_batch_is_read_as_it_was_built() {
    for codec in CODECS.iter().chain(&["snappy-framed"]) {
        let spec = serde_json::json!({
            "records": ["a", {"key": "k", "value": null, "timestamp": 1007, "headers": {"h": "v"}}],
            "codec": codec, "base_offset": 5, "producer_id": 9,
        });
        let bytes = build(&spec, 1000).unwrap();
        let read = read_all(&bytes.into());
        let batch = &read.elements()[0];
        let get = |name: &str| batch.get(name).unwrap().clone();
        assert_eq!(get("base_offset"), Value::Integer(5));
        assert_eq!(get("max_timestamp"), Value::Integer(1007));
        assert_eq!(get("producer_epoch"), Value::Integer(-1));
        assert_eq!(get("crc_is_right"), Value::Boolean(true));
        let records: Vec<_> = get("records").elements().to_vec();
        assert_eq!(records[0].as_text(), Some("0 at +0: null = a"));
        assert_eq!(records[1].as_text(), Some("1 at +7: k = null, h: v"));
    }
    let cut = build(&serde_json::json!({"records": ["a"], "cut": 1}), 0).unwrap();
    assert_eq!(
        read_all(&cut.into()).elements()[0].as_text(),
        Some("cut after 68 bytes")
    );
    assert!(build(&serde_json::json!({"recrods": []}), 0).is_err());
}
