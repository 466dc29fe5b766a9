//! The codecs: round trips at block borders, hostile declarations, and how a stream may end.

use super::compression::Compressor;
use super::decompress::Decompressor;
use super::scan::Bounded;
use super::{Compression, CompressionError};

fn decompress_with(
    decompressor: &mut Decompressor,
    codec: Compression,
    mut input: &[u8],
    step: usize,
) -> Result<Vec<u8>, CompressionError> {
    let mut out = Vec::new();
    let mut room = vec![0; step];
    decompressor.start(codec, &mut input)?;
    loop {
        match decompressor.read(&mut input, &mut room)? {
            0 => return Ok(out),
            bytes => out.extend_from_slice(&room[..bytes]),
        }
    }
}

fn decompress(codec: Compression, input: &[u8]) -> Result<Vec<u8>, CompressionError> {
    decompress_with(&mut Decompressor::new(), codec, input, 1000)
}

fn compress(codec: Compression, input: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    codec
        .compress(codec.default_level(), input, &mut out)
        .unwrap();
    out
}

fn is_cut(result: &Result<Vec<u8>, CompressionError>) -> bool {
    matches!(result, Err(CompressionError::Cut { .. }))
}

/// Bytes that do not compress.
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..bytes).map(|_| next()).collect()
}

#[test]
fn every_codec_gives_back_what_it_got() {
    let mut decompressor = Decompressor::new();
    for bytes in [1, 100, 32_767, 32_768, 32_769, 65_536, 65_537, 200_000] {
        for input in [vec![7; bytes], noise(bytes)] {
            for codec in Compression::ALL {
                let compressed = compress(codec, &input);
                for step in [1_000, 100_000] {
                    let out = decompress_with(&mut decompressor, codec, &compressed, step);
                    assert!(out.unwrap() == input, "{codec} {bytes} {step}");
                }
            }
        }
    }
}

#[test]
fn every_level_works() {
    let input = noise(5_000);
    let levels = [
        (Compression::Gzip, vec![-1, 1, 9]),
        (Compression::Lz4, vec![1, 17]),
        (Compression::Zstd, vec![-131_072, -1, 1, 22]),
    ];
    for (codec, levels) in levels {
        for level in levels {
            let mut out = b"before".to_vec();
            codec.compress(level, &input, &mut out).unwrap();
            assert_eq!(&out[..6], b"before");
            assert!(
                decompress(codec, &out[6..]).unwrap() == input,
                "{codec} {level}"
            );
        }
    }
}

#[test]
fn what_is_cut_anywhere_is_an_error() {
    let input = [noise(300), vec![9; 300]].concat();
    for codec in [Compression::Gzip, Compression::Lz4, Compression::Zstd] {
        let whole = compress(codec, &input);
        // Zstd frames may be none at all.
        let start = usize::from(codec == Compression::Zstd);
        for end in start..whole.len() {
            let out = decompress(codec, &whole[..end]);
            assert!(is_cut(&out), "{codec} {end} {out:?}");
        }
    }
    let whole = compress(Compression::Snappy, &input);
    for end in 20..whole.len() {
        assert!(
            is_cut(&decompress(Compression::Snappy, &whole[..end])),
            "{end}"
        );
    }
    assert_eq!(decompress(Compression::Zstd, b"").unwrap(), b"");
    assert!(decompress(Compression::Snappy, b"").is_err());
}

#[test]
fn declared_sizes_are_not_believed() {
    // A raw snappy block of 4 GiB in 30 bytes.
    let mut snappy = vec![0xff, 0xff, 0xff, 0xff, 0x0f, 27 << 2];
    snappy.extend([b'x'; 28]);
    assert!(decompress(Compression::Snappy, &snappy).is_err());
    // A framed snappy block of 2 GiB.
    let mut framed = compress(Compression::Snappy, b"abc");
    framed[16..20].copy_from_slice(&i32::MAX.to_be_bytes());
    assert!(is_cut(&decompress(Compression::Snappy, &framed)));
    // An lz4 block above the frame's limit.
    let mut lz4 = compress(Compression::Lz4, &noise(70_000));
    lz4[7..11].copy_from_slice(&(0x8001_0001_u32).to_le_bytes());
    assert!(decompress(Compression::Lz4, &lz4).is_err());
    // A zstd window of 256 MiB.
    let zstd = [0x28, 0xb5, 0x2f, 0xfd, 0, 18 << 3, 9, 0, 0, b'x'];
    assert!(decompress(Compression::Zstd, &zstd).is_err());
}

#[test]
fn the_best_ratio_of_snappy_is_let_through() {
    let input = vec![0; 1 << 20];
    let raw = snap::raw::Encoder::new().compress_vec(&input).unwrap();
    assert!(decompress(Compression::Snappy, &raw).unwrap() == input);
}

#[test]
fn gzip_members_are_joined_and_junk_is_dropped() {
    let codec = Compression::Gzip;
    let two = [compress(codec, b"one "), compress(codec, b"two")].concat();
    assert_eq!(decompress(codec, &two).unwrap(), b"one two");
    for junk in [&b"junk"[..], &[0; 20], &[0x1f, 0x8b]] {
        let bytes = [&two[..], junk].concat();
        assert_eq!(decompress(codec, &bytes).unwrap(), b"one two");
    }
    let mut wrong = compress(codec, b"one");
    let end = wrong.len();
    wrong[end - 5] ^= 1;
    assert!(decompress(codec, &wrong).is_err());
    wrong[end - 5] ^= 1;
    wrong[end - 1] ^= 1;
    assert!(decompress(codec, &wrong).is_err());
    // A header with an extra field, a name, a comment and its own check.
    let plain = compress(codec, b"one");
    let mut full = plain[..10].to_vec();
    full[3] = 0x1e;
    full.extend(b"\x03\x00abcname\0comment\0\x12\x34");
    full.extend(&plain[10..]);
    assert_eq!(decompress(codec, &full).unwrap(), b"one");
}

#[test]
fn lz4_frames_are_read_as_kafka_reads_them() {
    let codec = Compression::Lz4;
    let frame = |descriptor: &[u8], tail: &[u8]| {
        let check = (twox_hash::XxHash32::oneshot(0, descriptor) >> 8) as u8;
        let block = [&[3, 0, 0, 0x80][..], b"abc"].concat();
        [
            &[0x04, 0x22, 0x4d, 0x18][..],
            descriptor,
            &[check],
            &block,
            tail,
        ]
        .concat()
    };
    let end = [0; 4];
    let sum = twox_hash::XxHash32::oneshot(0, b"abc").to_le_bytes();
    let good = [
        frame(&[0x60, 0x40], &end),
        frame(&[0x60, 0x70], &end),
        // A content size, right or wrong; a content checksum of any value; what follows the frame.
        frame(&[0x68, 0x40, 9, 0, 0, 0, 0, 0, 0, 0], &end),
        frame(&[0x64, 0x40], &[0, 0, 0, 0, 1, 2, 3, 4]),
        frame(&[0x60, 0x40], b"\0\0\0\0junk"),
        frame(&[0x70, 0x40], &[sum, end].concat()),
    ];
    for bytes in good {
        assert_eq!(decompress(codec, &bytes).unwrap(), b"abc", "{bytes:?}");
    }
    let mut check = frame(&[0x60, 0x40], &end);
    check[6] ^= 1;
    let bad = [
        check,
        frame(&[0x40, 0x40], &end),
        frame(&[0x60, 0x30], &end),
        frame(&[0x60, 0x41], &end),
        frame(&[0x61, 0x40, 0, 0, 0, 0], &end),
        frame(&[0x62, 0x40], &end),
        frame(&[0x20, 0x40], &end),
        frame(&[0x64, 0x40], &end),
        frame(&[0x70, 0x40], &[[1, 2, 3, 4], end].concat()),
    ];
    for bytes in bad {
        assert!(decompress(codec, &bytes).is_err(), "{bytes:?}");
    }
}

#[test]
fn snappy_is_read_with_and_without_its_framing() {
    let codec = Compression::Snappy;
    let raw = snap::raw::Encoder::new()
        .compress_vec(b"abcabcabc")
        .unwrap();
    assert_eq!(decompress(codec, &raw).unwrap(), b"abcabcabc");
    assert!(decompress(codec, &[&raw[..], b"j"].concat()).is_err());
    let framed = compress(codec, b"abcabcabc");
    assert_eq!(&framed[..16], b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01");
    let joined = [&framed[..], &framed[..], &[0, 0]].concat();
    assert_eq!(decompress(codec, &joined).unwrap(), b"abcabcabcabcabcabc");
    assert_eq!(decompress(codec, &framed[..16]).unwrap(), b"");
    let negative = [&framed[..], &[0xff; 4]].concat();
    assert!(decompress(codec, &negative).is_err());
    let empty = [&framed[..], &[0; 4]].concat();
    assert!(decompress(codec, &empty).is_err());
}

#[test]
fn zstd_frames_are_joined_and_junk_is_an_error() {
    let codec = Compression::Zstd;
    let skippable = b"\x50\x2a\x4d\x18\x04\0\0\0skip";
    let one = compress(codec, b"one ");
    let two = compress(codec, b"two");
    let joined = [&one[..], skippable, &two].concat();
    assert_eq!(decompress(codec, &joined).unwrap(), b"one two");
    for junk in [&b"junk"[..], b"junkjunkjunk"] {
        assert!(decompress(codec, &[&one[..], junk].concat()).is_err());
    }
}

#[test]
fn output_above_the_bound_is_given_up() {
    for codec in Compression::ALL {
        let compressor = Compressor::new(codec, codec.default_level(), Vec::new()).ok();
        let mut bounded = Bounded {
            compressor,
            bytes_max: 1_000,
        };
        bounded.write(&[7; 900]).unwrap();
        assert!(bounded.compressor.is_some());
        // More than any codec holds back.
        bounded.write(&noise(300_000)).unwrap();
        assert!(bounded.compressor.is_none(), "{codec}");
        bounded.write(b"more").unwrap();
    }
}
