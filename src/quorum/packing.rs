//! Long values are compressed: metadata repeats itself (a topic of 10,000 partitions is about 1.5
//! MB as MessagePack and 20 KB compressed), and what is written costs syncs, disk and the store's
//! cache.
//!
//! ```text
//! 0 bytes                           short values as they are
//! 1 length(4, little-endian) frame  a zstd frame and the length of what it holds
//! ```

use std::borrow::Cow;

use super::QuorumError;
use super::keys::damaged;

const PLAIN: u8 = 0;
const ZSTD: u8 = 1;

/// Shorter values are not worth the trouble.
const PACKED_BYTES_MIN: usize = 1024;

/// More than any value has: 1,000,000 partitions are about 150 MB.
const UNPACKED_BYTES_MAX: usize = 1 << 30;

/// Fast; the next levels gain little here.
const LEVEL: i32 = 1;

pub(super) fn pack(bytes: &[u8]) -> Vec<u8> {
    assert!(
        bytes.len() <= UNPACKED_BYTES_MAX,
        "a value of {} bytes",
        bytes.len()
    );
    if bytes.len() < PACKED_BYTES_MIN {
        let mut packed = vec![PLAIN];
        packed.extend(bytes);
        return packed;
    }
    let mut packed = vec![ZSTD];
    packed.extend((bytes.len() as u32).to_le_bytes());
    let frame = zstd::bulk::compress(bytes, LEVEL).expect("zstd takes any bytes");
    packed.extend(frame);
    packed
}

pub(super) fn unpack<'a>(
    place: &'static str,
    packed: &'a [u8],
) -> Result<Cow<'a, [u8]>, QuorumError> {
    match packed {
        [PLAIN, bytes @ ..] => Ok(Cow::Borrowed(bytes)),
        [ZSTD, a, b, c, d, frame @ ..] => {
            let length = u32::from_le_bytes([*a, *b, *c, *d]) as usize;
            if length > UNPACKED_BYTES_MAX {
                return Err(damaged(place, format!("it claims to hold {length} bytes")));
            }
            let bytes = zstd::bulk::decompress(frame, length)
                .map_err(|error| damaged(place, error.to_string()))?;
            match bytes.len() == length {
                true => Ok(Cow::Owned(bytes)),
                false => Err(damaged(place, format!("{} of {length} bytes", bytes.len()))),
            }
        }
        _ => Err(damaged(place, "it has no known form".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_back() {
        for len in [0, 1, PACKED_BYTES_MIN - 1, PACKED_BYTES_MIN, 1_000_000] {
            let bytes: Vec<u8> = (0..len).map(|i| (i % 7) as u8).collect();
            let packed = pack(&bytes);
            assert_eq!(unpack("x", &packed).unwrap(), bytes);
            assert!(
                packed.len() <= len.min(PACKED_BYTES_MIN) + 1,
                "{}",
                packed.len()
            );
        }
    }

    #[test]
    fn damage_is_noticed() {
        let mut packed = pack(&[5; 5000]);
        packed[1] += 1;
        assert!(unpack("x", &packed).is_err(), "shorter than it says");
        packed[1] -= 2;
        assert!(unpack("x", &packed).is_err(), "longer than it says");
        packed[4] = 0xff;
        assert!(unpack("x", &packed).is_err(), "longer than anything");
        assert!(unpack("x", &pack(&[5; 5000])[..20]).is_err());
        assert!(unpack("x", &[]).is_err());
        assert!(unpack("x", &[2, 0]).is_err());
    }
}
