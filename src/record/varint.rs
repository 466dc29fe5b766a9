//! Zigzag varints, as they stand inside records (`ByteUtils.writeVarint`): the low 7 bits first,
//! bit 7 says that another byte follows. At most 5 bytes of 32 bits, 10 of 64; a longer form than
//! needed is read, and bits beyond the type's width are dropped.

use bytes::BufMut;

pub(super) const VARINT_BYTES_MAX: usize = 5;
pub(super) const VARLONG_BYTES_MAX: usize = 10;

pub(super) fn put_varint(out: &mut impl BufMut, value: i32) {
    put_unsigned(out, u64::from(((value << 1) ^ (value >> 31)) as u32));
}

pub(super) fn put_varlong(out: &mut impl BufMut, value: i64) {
    put_unsigned(out, ((value << 1) ^ (value >> 63)) as u64);
}

pub(super) fn varint_bytes(value: i32) -> usize {
    varlong_bytes(i64::from(value))
}

pub(super) fn varlong_bytes(value: i64) -> usize {
    let zigzag = ((value << 1) ^ (value >> 63)) as u64;
    (70 - (zigzag | 1).leading_zeros() as usize) / 7
}

/// The value and the number of bytes it takes; `None` if `bytes` end too soon or it is too long.
#[inline]
pub(super) fn read_varint(bytes: &[u8]) -> Option<(i32, usize)> {
    let (raw, length) = read_unsigned(bytes, VARINT_BYTES_MAX)?;
    let raw = raw as u32;
    Some((((raw >> 1) as i32) ^ -((raw & 1) as i32), length))
}

/// As [`read_varint`], of 64 bits.
#[inline]
pub(super) fn read_varlong(bytes: &[u8]) -> Option<(i64, usize)> {
    let (raw, length) = read_unsigned(bytes, VARLONG_BYTES_MAX)?;
    Some((((raw >> 1) as i64) ^ -((raw & 1) as i64), length))
}

fn put_unsigned(out: &mut impl BufMut, mut value: u64) {
    while value >= 0x80 {
        out.put_u8(value as u8 | 0x80);
        value >>= 7;
    }
    out.put_u8(value as u8);
}

#[inline]
fn read_unsigned(bytes: &[u8], bytes_max: usize) -> Option<(u64, usize)> {
    let mut value = 0_u64;
    for (i, &byte) in bytes.iter().take(bytes_max).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte & 0x80 == 0 {
            return Some((value, i + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_in_the_fewest_bytes() {
        let mut values = vec![0, i64::MAX, i64::MIN];
        for shift in 0..63 {
            values.extend([
                1 << shift,
                (1 << shift) - 1,
                -(1 << shift),
                -(1 << shift) - 1,
            ]);
        }
        for value in values {
            let mut bytes = Vec::new();
            put_varlong(&mut bytes, value);
            assert_eq!(read_varlong(&bytes), Some((value, bytes.len())), "{value}");
            assert_eq!(varlong_bytes(value), bytes.len(), "{value}");
            assert_eq!(read_varlong(&bytes[..bytes.len() - 1]), None, "{value}");
            if let Ok(value) = i32::try_from(value) {
                bytes.clear();
                put_varint(&mut bytes, value);
                assert_eq!(read_varint(&bytes), Some((value, bytes.len())), "{value}");
                assert_eq!(varint_bytes(value), bytes.len(), "{value}");
            }
        }
    }

    #[test]
    fn zigzag_and_length_limits() {
        for (value, byte) in [(0, 0), (-1, 1), (1, 2), (-64, 127)] {
            assert_eq!(read_varint(&[byte]), Some((value, 1)));
        }
        assert_eq!(read_varint(&[0x82, 0x80, 0x80, 0x80, 0]), Some((1, 5)));
        assert_eq!(read_varint(&[0x82, 0x80, 0x80, 0x80, 0x80, 0]), None);
        assert_eq!(read_varlong(&[0x80; 10]), None);
    }
}
