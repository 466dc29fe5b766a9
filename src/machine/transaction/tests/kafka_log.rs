//! Records that Kafka 4.4 wrote, byte for byte: read, written again, and decided again from the
//! same requests at the same times.

use super::*;

/// A value in hex, and the request that led to it.
type Row = (&'static str, &'static str);

/// `transaction.version` 2, a client of version 2.
const VERSION_2: &[Row] = &[
    (
        "init",
        "0001000000000000000800000000ea600000000001a22882019dffffffffffffffff0100080000000000000008",
    ),
    (
        "abort 0 v5",
        "0001000000000000000800010000ea600301000001a2288201a6000001a2288201a6020008000000000000000802020002",
    ),
    (
        "complete",
        "0001000000000000000800010000ea600501000001a2288201a7000001a2288201a6020008000000000000000802020002",
    ),
    (
        "abort 1 v5",
        "0001000000000000000800020000ea600301000001a2288201b4000001a2288201b4020008000000000000000802020002",
    ),
    (
        "complete",
        "0001000000000000000800020000ea600501000001a2288201b5000001a2288201b4020008000000000000000802020002",
    ),
    (
        "add 2 v4 tp-0 tp-1",
        "0001000000000000000800020000ea60010203747003000000010000000000000001a2288201c2000001a2288201c2020008000000000000000802020002",
    ),
    (
        "commit 2 v5",
        "0001000000000000000800030000ea60020203747003000000010000000000000001a2288201c6000001a2288201c2020008000000000000000802020002",
    ),
    (
        "complete",
        "0001000000000000000800030000ea600401000001a2288201c7000001a2288201c2020008000000000000000802020002",
    ),
    (
        "abort 3 v5",
        "0001000000000000000800040000ea600301000001a2288201d1000001a2288201d1020008000000000000000802020002",
    ),
    (
        "complete",
        "0001000000000000000800040000ea600501000001a2288201d2000001a2288201d1020008000000000000000802020002",
    ),
    (
        "add 4 v3 tp-0 tp-1",
        "0001000000000000000800040000ea60010203747003000000010000000000000001a2288201d6000001a2288201d60100080000000000000008",
    ),
    (
        "commit 4 v5",
        "0001000000000000000800050000ea60020203747003000000010000000000000001a2288201d7000001a2288201d6020008000000000000000802020002",
    ),
    (
        "complete",
        "0001000000000000000800050000ea600401000001a2288201d8000001a2288201d6020008000000000000000802020002",
    ),
    (
        "add 5 v5 tp-0 tp-1",
        "0001000000000000000800050000ea60010203747003000000010000000000000001a2288201e7000001a2288201e7020008000000000000000802020002",
    ),
    (
        "commit 5 v4",
        "0001000000000000000800050000ea60020203747003000000010000000000000001a2288201e9000001a2288201e70100080000000000000008",
    ),
    (
        "complete",
        "0001000000000000000800050000ea600401000001a2288201ea000001a2288201e70100080000000000000008",
    ),
    (
        "abort 5 v5",
        "0001000000000000000800060000ea600301000001a2288201f8000001a2288201f8020008000000000000000802020002",
    ),
    (
        "complete",
        "0001000000000000000800060000ea600501000001a2288201f8000001a2288201f8020008000000000000000802020002",
    ),
];

/// A client of versions 0 and 1 in the same cluster, with a consumer group.
const VERSION_2_OLD_CLIENT: &[Row] = &[
    (
        "init",
        "0001000000000000000600000000ea600000000001a228820123ffffffffffffffff0100080000000000000006",
    ),
    (
        "add 0 v3 tp-0 tp-1",
        "0001000000000000000600000000ea60010203747003000000010000000000000001a22882012f000001a22882012f0100080000000000000006",
    ),
    (
        "add 0 v3 tp-2",
        "0001000000000000000600000000ea6001020374700400000002000000010000000000000001a22882013b000001a22882012f0100080000000000000006",
    ),
    (
        "add 0 v3 __consumer_offsets-3",
        "0001000000000000000600000000ea6001030374700400000002000000010000000000135f5f636f6e73756d65725f6f666673657473020000000300000001a22882013e000001a22882012f0100080000000000000006",
    ),
    (
        "commit 0 v4",
        "0001000000000000000600000000ea6002030374700400000002000000010000000000135f5f636f6e73756d65725f6f666673657473020000000300000001a228820156000001a22882012f0100080000000000000006",
    ),
    (
        "complete",
        "0001000000000000000600000000ea600401000001a22882015a000001a22882012f0100080000000000000006",
    ),
    (
        "add 0 v3 tp-0 tp-1",
        "0001000000000000000600000000ea60010203747003000000010000000000000001a228820183000001a2288201830100080000000000000006",
    ),
    (
        "abort 0 v4",
        "0001000000000000000600000000ea60030203747003000000010000000000000001a228820186000001a2288201830100080000000000000006",
    ),
    (
        "complete",
        "0001000000000000000600000000ea600501000001a228820187000001a2288201830100080000000000000006",
    ),
];

/// Another producer of the same id comes while a transaction is open.
const VERSION_2_FENCE: &[Row] = &[
    (
        "init",
        "0001000000000000000a00000000ea600000000001a22882022affffffffffffffff010008000000000000000a",
    ),
    (
        "add 0 v5 tp-0 tp-1",
        "0001000000000000000a00000000ea60010203747003000000010000000000000001a22882022b000001a22882022b020008000000000000000a02020002",
    ),
    (
        "init",
        "0001000000000000000a00010000ea60030203747003000000010000000000000001a22882022d000001a22882022b020008000000000000000a02020002",
    ),
    (
        "complete",
        "0001000000000000000a00010000ea600501000001a22882022e000001a22882022b020008000000000000000a02020002",
    ),
    (
        "init",
        "0001000000000000000a00020000ea600000000001a22882023cffffffffffffffff020008000000000000000a02020002",
    ),
];

/// The last epoch is used up by a commit; the next record is a repeated InitProducerId.
const VERSION_2_LAST_EPOCH: &[Row] = &[
    (
        "is",
        "000100000000000003ee7ffe0000ea600000000001a22882d5ebffffffffffffffff01000800000000000003ee",
    ),
    (
        "add 32766 v5 tp-0 tp-1",
        "000100000000000003ee7ffe0000ea60010203747003000000010000000000000001a22882d5ec000001a22882d5ec02000800000000000003ee02020002",
    ),
    (
        "commit 32766 v5",
        "000100000000000003ee7fff0000ea60020203747003000000010000000000000001a22882d5ed000001a22882d5ec03000800000000000003ee010800000000000003ef02020002",
    ),
    (
        "complete",
        "000100000000000003ef00000000ea600401000001a22882d5ee000001a22882d5ec02000800000000000003ee02020002",
    ),
    (
        "init as 1006 32766",
        "000100000000000003ef00000000ea600000000001a22882d5fbffffffffffffffff02000800000000000003ef02020002",
    ),
];

/// `transaction.version` 1: the fence keeps the old producer out.
const VERSION_1_FENCE: &[Row] = &[
    (
        "init",
        "000100000000000003f800000000ea600000000001a2288366d1ffffffffffffffff01000800000000000003f8",
    ),
    (
        "add 0 v5 tp-0 tp-1",
        "000100000000000003f800000000ea60010203747003000000010000000000000001a2288366d2000001a2288366d202000800000000000003f802020002",
    ),
    (
        "init",
        "000100000000000003f800010000ea60030203747003000000010000000000000001a2288366d5000001a2288366d201000800000000000003f8",
    ),
    (
        "complete",
        "000100000000000003f800010000ea600501000001a2288366d6000001a2288366d201000800000000000003f8",
    ),
    (
        "init as 1016 1",
        "000100000000000003f800020000ea600000000001a2288366e2ffffffffffffffff01000800000000000003f8",
    ),
    (
        "init",
        "000100000000000003f800030000ea600000000001a2288366e3ffffffffffffffff01000800000000000003f8",
    ),
];

/// `transaction.version` 0: values of version 0.
const VERSION_0: &[Row] = &[
    (
        "init",
        "0000000000000000040100000000ea6000ffffffff000001a228838adcffffffffffffffff",
    ),
    (
        "add 0 v3 tp-0 tp-1",
        "0000000000000000040100000000ea60010000000100027470000000020000000100000000000001a228838adc000001a228838adc",
    ),
    (
        "commit 0 v4",
        "0000000000000000040100000000ea60020000000100027470000000020000000100000000000001a228838add000001a228838adc",
    ),
    (
        "complete",
        "0000000000000000040100000000ea600400000000000001a228838add000001a228838adc",
    ),
    (
        "add 0 v3 tp-2",
        "0000000000000000040100000000ea600100000001000274700000000100000002000001a228838ae8000001a228838ae8",
    ),
    (
        "abort 0 v4",
        "0000000000000000040100000000ea600300000001000274700000000100000002000001a228838ae9000001a228838ae8",
    ),
    (
        "complete",
        "0000000000000000040100000000ea600500000000000001a228838ae9000001a228838ae8",
    ),
];

/// `transaction.version` 0, a time-out of 300 ms.
const VERSION_0_TIME_OUT: &[Row] = &[
    (
        "init",
        "000000000000000003ff00000000012c00ffffffff000001a2288386edffffffffffffffff",
    ),
    (
        "add 0 v3 tp-0 tp-1",
        "000000000000000003ff00000000012c010000000100027470000000020000000100000000000001a2288386ee000001a2288386ee",
    ),
    (
        "time-out",
        "000000000000000003ff00010000012c030000000100027470000000020000000100000000000001a228838840000001a2288386ee",
    ),
    (
        "complete",
        "000000000000000003ff00010000012c0500000000000001a228838840000001a2288386ee",
    ),
];

fn bytes(hex: &str) -> Vec<u8> {
    let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(byte).collect()
}

/// Kafka writes partitions in no order, we by name. Rewritten in our order these are its bytes.
fn in_order(mut value: Vec<u8>) -> Vec<u8> {
    let (groups, topic) = (
        "135f5f636f6e73756d65725f6f6666736574730200000003",
        "03747004",
    );
    let three = "000000000000000100000002";
    for (kafka, ours) in [
        (
            "04000000020000000100000000".to_owned(),
            format!("04{three}"),
        ),
        ("0000000100000000".to_owned(), "0000000000000001".to_owned()),
        (
            format!("{topic}{three}00{groups}00"),
            format!("{groups}00{topic}{three}00"),
        ),
    ] {
        let (kafka, ours) = (bytes(&kafka), bytes(&ours));
        if let Some(at) = value
            .windows(kafka.len())
            .position(|window| window == kafka)
        {
            value.splice(at..at + kafka.len(), ours);
        }
    }
    value
}

fn command(request: &str, metadata: Option<&TransactionMetadata>, timeout_ms: i32) -> Command {
    let words: Vec<&str> = request.split(' ').collect();
    let id: TransactionalId = "id".into();
    let present = metadata.map_or(-1, |metadata| metadata.producer_id.0);
    let of_request = || producer(present, words[1].parse().unwrap());
    let api_version = || words[2][1..].parse().unwrap();
    match words[0] {
        "init" => Command::InitProducerId(InitProducerId {
            transactional_id: id,
            transaction_timeout_ms: timeout_ms,
            expected: (words.len() > 1)
                .then(|| producer(words[2].parse().unwrap(), words[3].parse().unwrap())),
        }),
        "add" => Command::AddPartitions(AddPartitions {
            transactional_id: id,
            producer: of_request(),
            partitions: partitions(words[3..].iter().copied()),
            client_transaction_version: TransactionVersion::of_add_partitions(api_version()),
        }),
        "commit" | "abort" => Command::EndTxn(EndTxn {
            transactional_id: id,
            producer: of_request(),
            result: match words[0] {
                "commit" => TransactionResult::Commit,
                _ => TransactionResult::Abort,
            },
            client_transaction_version: TransactionVersion::of_end_txn(api_version()),
        }),
        "complete" => Command::CompleteTxn(CompleteTxn {
            transactional_id: id,
            prepared_at: metadata.unwrap().last_update_timestamp,
        }),
        other => panic!("{other}"),
    }
}

/// Decides every row again and compares the bytes.
fn decide_again(version: TransactionVersion, rows: &[Row]) {
    let mut machine = TransactionMachine::new(config(version), LeaderEpoch(0));
    for (request, hex) in rows {
        let kafka = bytes(hex);
        let decoded = TransactionRecord::decode(b"\0\0\0\x02id", Some(&kafka)).unwrap();
        let wanted = decoded.metadata.as_ref().unwrap();
        let now = wanted.last_update_timestamp;
        let next_id = wanted.producer_id.0.max(wanted.next_producer_id.0);
        let mut ids = || Ok(ProducerId(next_id));
        let before = machine.describe("id").ok();
        let record = match *request {
            "is" => decoded.clone(),
            "time-out" => machine.expire(now, &mut ids).remove(0).records.remove(0),
            _ => {
                let command = command(request, before.as_ref(), wanted.transaction_timeout_ms);
                let decision = machine.decide(now, &command, &mut ids);
                assert_eq!(decision.records.len(), 1, "{request}: {:?}", decision.reply);
                decision.records.into_iter().next().unwrap()
            }
        };
        let ours = record.encode_value(version).unwrap();
        assert_eq!(ours, in_order(kafka), "{request}");
        machine.apply(record);
        for markers in machine.prepared() {
            machine.on_markers_written(&MarkersWritten {
                transactional_id: markers.transactional_id,
                prepared_at: markers.prepared_at,
                partitions: markers.partitions,
            });
        }
    }
}

#[test]
fn the_same_requests_give_the_same_bytes() {
    decide_again(TransactionVersion::V2, VERSION_2);
    decide_again(TransactionVersion::V2, VERSION_2_OLD_CLIENT);
    decide_again(TransactionVersion::V2, VERSION_2_FENCE);
    decide_again(TransactionVersion::V2, VERSION_2_LAST_EPOCH);
    decide_again(TransactionVersion::V1, VERSION_1_FENCE);
    decide_again(TransactionVersion::V0, VERSION_0);
    decide_again(TransactionVersion::V0, VERSION_0_TIME_OUT);
}

#[test]
fn a_key_has_kafka_s_bytes() {
    let record = TransactionRecord {
        transactional_id: "to1".into(),
        metadata: None,
    };
    assert_eq!(record.encode_key(), bytes("00000003746f31"));
    assert_eq!(
        TransactionRecord::decode(&bytes("00000003746f31"), None),
        Ok(record)
    );
}

#[test]
fn all_fields_are_read() {
    let (_, hex) = VERSION_2_LAST_EPOCH[2];
    let record = TransactionRecord::decode(b"\0\0\0\0", Some(&bytes(hex))).unwrap();
    let metadata = record.metadata.unwrap();
    assert_eq!(metadata.producer(), producer(1006, i16::MAX));
    assert_eq!(metadata.previous_producer_id, ProducerId(1006));
    assert_eq!(metadata.next_producer_id, ProducerId(1007));
    assert_eq!(metadata.last_producer_epoch, ProducerEpoch(-1));
    assert_eq!(metadata.client_transaction_version, TransactionVersion::V2);
    assert_eq!(metadata.transaction_timeout_ms, 60_000);
    assert_eq!(metadata.state, TransactionState::PrepareCommit);
    assert_eq!(metadata.partitions, partitions(["tp-0", "tp-1"]));
    assert_eq!(
        metadata.last_update_timestamp.0 - metadata.start_timestamp.0,
        1
    );
    // Tag 3, and one that is unknown.
    let mut longer = bytes(VERSION_2[0].1);
    let tags = longer.len() - 11;
    longer.splice(tags.., bytes("020302000709020102"));
    let metadata = TransactionRecord::decode(b"\0\0\0\0", Some(&longer))
        .unwrap()
        .metadata
        .unwrap();
    assert_eq!(metadata.next_producer_epoch, ProducerEpoch(7));
    assert_eq!(metadata.previous_producer_id, ProducerId::NONE);
}

#[test]
fn bytes_that_cannot_be_are_refused() {
    let key = b"\0\0\0\x01a";
    let decode = |value: &[u8]| TransactionRecord::decode(key, Some(value)).map(|_| ());
    let whole = bytes(VERSION_2_OLD_CLIENT[3].1);
    for len in 0..whole.len() {
        assert!(decode(&whole[..len]).is_err(), "cut at {len}");
        let _ = TransactionRecord::decode(&whole[..len], None);
    }
    let with = |at: usize, new: &[u8]| {
        let mut value = whole.clone();
        value.splice(at..at + new.len(), new.iter().copied());
        decode(&value)
    };
    assert_eq!(with(0, &[0, 2]), Err(RecordError::ValueVersion(2)));
    assert_eq!(with(0, &[0xff, 0xff]), Err(RecordError::ValueVersion(-1)));
    assert_eq!(with(16, &[8]), Err(RecordError::State(8)));
    // A topic count, a topic length and a partition count beyond the bytes.
    assert_eq!(
        with(17, &[0xff, 0xff, 0xff, 0xff, 0x0f]),
        Err(RecordError::Malformed(22))
    );
    assert!(with(18, &[0x7f]).is_err());
    assert!(with(21, &[0xff, 0x7f]).is_err());
    assert_eq!(
        TransactionRecord::decode(b"\0\x01\0\x01a", None),
        Err(RecordError::KeyVersion(1))
    );
    let level = bytes(&VERSION_2[1].1.replace("02020002", "02020003"));
    assert_eq!(decode(&level), Err(RecordError::TransactionVersion(3)));
}
