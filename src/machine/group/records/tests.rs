//! Records against bytes that Apache Kafka 4.4.0 wrote into its own `__consumer_offsets`.

use bytes::Bytes;

use super::*;
use crate::machine::group::protocol::Subscription;
use crate::types::{LeaderEpoch, Offset, TopicId};

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// Decodes a record, and checks that encoding it gives the same bytes back.
fn golden(key: &str, value: &str) -> Record {
    let (key, value) = (bytes(key), bytes(value));
    let value = (!value.is_empty()).then_some(value);
    let record = Record::decode(&key, value.as_deref()).unwrap().unwrap();
    let encoded = record.encode();
    assert_eq!(encoded.key, key, "{record:?}");
    assert_eq!(encoded.value, value.map(Bytes::from), "{record:?}");
    record
}

fn foo() -> TopicId {
    let id = crate::types::parse_base64_uuid("VljpONh6T0eZAk2Dut2d_A").unwrap();
    TopicId(id)
}

const MEMBER_KEY: &str = "0016 42454d676b5a3557513843467a3652524d6444767877";
const GROUP_KEY: &str = "000a 636f6e73756d65722d67";

#[test]
fn an_offset_commit() {
    let record = golden(
        "0001 0009 636c61737369632d67 0003 666f6f 00000001",
        "0004 0000000000000006 00000000 01 000001a2287f2908
         01 00 10 5658e938d87a4f4799024d83badd9dfc",
    );
    let expected = Record::OffsetCommit {
        group: "classic-g".into(),
        topic: "foo".into(),
        partition: 1,
        value: Some(OffsetCommitValue {
            offset: Offset(6),
            leader_epoch: LeaderEpoch(0),
            metadata: String::new(),
            commit_timestamp: TimestampMs(1_795_975_751_944),
            expire_timestamp: TimestampMs::NONE,
            topic_id: foo(),
        }),
    };
    assert_eq!(record, expected);
    golden("0001 0009 636c61737369632d67 0003 666f6f 00000001", "");
}

#[test]
fn older_offset_commits_are_read() {
    let key = bytes("0000 0001 67 0001 74 00000002");
    let read = |value: &str| match Record::decode(&key, Some(&bytes(value))).unwrap() {
        Some(Record::OffsetCommit {
            value: Some(value), ..
        }) => value,
        other => panic!("{other:?}"),
    };
    let v0 = read("0000 0000000000000005 0002 6d64 0000000000000064");
    assert_eq!(v0.metadata, "md");
    let v1 = read("0001 0000000000000005 0002 6d64 0000000000000064 00000000000000c8");
    assert_eq!(v1.expire_timestamp, TimestampMs(200));
    assert_eq!(
        read("0002 0000000000000005 0002 6d64 0000000000000064"),
        OffsetCommitValue {
            expire_timestamp: TimestampMs::NONE,
            ..v1.clone()
        }
    );
    let v3 = read("0003 0000000000000005 00000007 0002 6d64 0000000000000064");
    assert_eq!(v3.leader_epoch, LeaderEpoch(7));
    // A commit with its own retention is written as version 1.
    let mut writer = codec::Writer::version(1);
    writer.i64(5);
    assert_eq!(v1.encode()[..10], writer.finish()[..]);
}

#[test]
fn an_empty_classic_group() {
    let key = "0002 0009 636c61737369632d67";
    let new = golden(
        key,
        "0003 0000 00000000 ffff ffff 000001a2287f2861 00000000",
    );
    let Record::GroupMetadata {
        value: Some(value), ..
    } = new
    else {
        panic!("{new:?}")
    };
    assert_eq!((value.protocol, value.leader), (None, None));
    let left = "0003 0008 636f6e73756d6572 00000002 ffff ffff 000001a2287fd8d2 00000000";
    golden(key, left);
    golden(key, "");
}

#[test]
fn a_classic_group_with_a_member() {
    let member_id = "002b 696e73742d312d34653033666166652d333533392d346633652d613138322d396162
        376230353438306533";
    let record = golden(
        "0002 0009 636c61737369632d67",
        &format!(
            "0003 0008 636f6e73756d6572 00000001 0005 72616e6765 {member_id} 000001a2287f2875
             00000001 {member_id} 0006 696e73742d31 0003 636c69 000a 2f3132372e302e302e31
             000493e0 0000afc8
             00000019 0003 00000001 0003 666f6f ffffffff 00000000 ffffffff ffff
             0000001f 0003 00000001 0003 666f6f 00000003 00000000 00000001 00000002 ffffffff"
        ),
    );
    let Record::GroupMetadata {
        value: Some(value), ..
    } = record
    else {
        panic!("{record:?}")
    };
    let member = &value.members[0];
    assert_eq!(Some(&member.member_id), value.leader.as_ref());
    assert_eq!(member.group_instance_id.as_deref(), Some("inst-1"));
    assert_eq!(member.session_timeout_ms, 45_000);
    let subscription = Subscription::decode(&member.subscription).unwrap();
    assert_eq!(subscription.topics, ["foo"]);
    let assigned = [("foo".to_owned(), vec![0, 1, 2])].into();
    let assignment = crate::machine::group::protocol::encode_assignment(3, &assigned);
    assert_eq!(member.assignment, assignment);
}

#[test]
fn older_group_metadata_is_read() {
    let key = bytes("0002 0001 67");
    let member_v0 = "0001 6d 0001 63 0001 68 00000064 00000001 aa 00000000";
    let v0 = format!("0000 0001 74 00000003 ffff ffff 00000001 {member_v0}");
    let value = Record::decode(&key, Some(&bytes(&v0))).unwrap().unwrap();
    let Record::GroupMetadata {
        value: Some(value), ..
    } = value
    else {
        panic!()
    };
    assert_eq!(value.members[0].rebalance_timeout_ms, 100);
    assert_eq!(value.current_state_timestamp, TimestampMs::NONE);
    let member_v4 = "02 6d 00 02 63 02 68 00000064 00000065 02 aa 01 00";
    let v4 = format!("0004 02 74 00000003 00 00 0000000000000009 02 {member_v4} 00");
    let value = Record::decode(&key, Some(&bytes(&v4))).unwrap().unwrap();
    let Record::GroupMetadata {
        value: Some(value), ..
    } = value
    else {
        panic!()
    };
    assert_eq!(value.members[0].session_timeout_ms, 101);
    assert_eq!(value.current_state_timestamp, TimestampMs(9));
}

#[test]
fn a_consumer_group() {
    let record = golden(
        &format!("0005 {GROUP_KEY} {MEMBER_KEY}"),
        "0000 00 00 11 636f6e736f6c652d636f6e73756d6572 0b 2f3132372e302e302e31
         02 04 666f6f 01 000493e0 00 01 00 01 00",
    );
    // A nullable structure in a tagged field: Kafka writes "no classic member" out.
    let Record::ConsumerGroupMemberMetadata {
        value: Some(value), ..
    } = record
    else {
        panic!("{record:?}")
    };
    assert_eq!(value.subscribed_topic_names, ["foo"]);
    assert_eq!(value.subscribed_topic_regex.as_deref(), Some(""));
    golden(
        &format!("0003 {GROUP_KEY}"),
        "0000 00000002 01 00 08 623beac3b42ed541",
    );
    golden(&format!("0003 {GROUP_KEY}"), "0000 00000003 00");
    golden(
        &format!("0006 {GROUP_KEY}"),
        "0000 00000002 01 00 08 000001a2287f2e26",
    );
    golden(&format!("0006 {GROUP_KEY}"), "0000 00000003 00");
    golden(
        &format!("0007 {GROUP_KEY} {MEMBER_KEY}"),
        "0000 02 5658e938d87a4f4799024d83badd9dfc 04 00000000 00000001 00000002 00 00",
    );
    for record_type in ["0005", "0007", "0008"] {
        golden(&format!("{record_type} {GROUP_KEY} {MEMBER_KEY}"), "");
    }
}

#[test]
fn a_current_assignment() {
    let key = format!("0008 {GROUP_KEY} {MEMBER_KEY}");
    let record = golden(
        &key,
        "0000 00000002 00000000 00
         02 5658e938d87a4f4799024d83badd9dfc 04 00000000 00000001 00000002
         01 00 0d 04 00000002 00000002 00000002 01 00",
    );
    let Record::ConsumerGroupCurrentMemberAssignment {
        value: Some(value), ..
    } = record
    else {
        panic!("{record:?}")
    };
    assert_eq!(value.state, MemberState::Stable);
    assert_eq!(value.assigned[&foo()], [(0, 2), (1, 2), (2, 2)].into());
    golden(&key, "0000 00000001 00000000 00 01 01 00");
    let bad_state = bytes("0000 00000001 00000000 09 01 01 00");
    assert_eq!(
        Record::decode(&bytes(&key), Some(&bad_state)),
        Err(RecordError::UnknownMemberState(9))
    );
}

#[test]
fn a_classic_member_of_a_consumer_group() {
    let record = golden(
        "0005 0002 6d78 0016 656d784b744654535156574530487333494633474b51",
        "0000 00 00 04 636964 0b 2f3132372e302e302e31 02 04 666f6f 01 0000ea60 00
         01 00 1e 01 00002710 02 06 72616e6765 10 0000 00000001 0003 666f6f ffffffff 00 00",
    );
    let Record::ConsumerGroupMemberMetadata {
        value: Some(value), ..
    } = record
    else {
        panic!("{record:?}")
    };
    let classic = value.classic.unwrap();
    assert_eq!(classic.session_timeout_ms, 10_000);
    assert_eq!(classic.supported_protocols[0].0, "range");
}

#[test]
fn a_regular_expression() {
    let key = "0010 0006 753239343334 0003 662e2a";
    let record = golden(
        key,
        "0000 02 04 666f6f 0000000000000bfb 000001a228957e2f 00",
    );
    let expected = Record::ConsumerGroupRegularExpression {
        group: "u29434".into(),
        regex: "f.*".into(),
        value: Some(RegularExpressionValue {
            topics: vec!["foo".into()],
            version: 3_067,
            timestamp: TimestampMs(1_795_977_215_535),
        }),
    };
    assert_eq!(record, expected);
    golden(key, "");
    // Nothing matches.
    let key = "0010 0006 753239343334 0005 7a7a7a2e2a";
    golden(key, "0000 01 0000000000000bfc 000001a228957fcc 00");
}

#[test]
fn damaged_records_are_errors_and_foreign_ones_are_skipped() {
    let share_group = bytes("000b 0001 67");
    assert_eq!(Record::decode(&share_group, None), Ok(None));
    let key = bytes("0002 0001 67");
    let future = Record::decode(&key, Some(&bytes("0005")));
    let version = RecordError::UnknownVersion {
        record_type: 2,
        version: 5,
    };
    assert_eq!(future, Err(version));
    // A member count that the bytes cannot hold is refused before anything is allocated.
    let huge = bytes("0003 0000 00000000 ffff ffff 000001a2287f2861 7fffffff");
    assert_eq!(
        Record::decode(&key, Some(&huge)),
        Err(RecordError::Truncated {
            wanted: 0x7fff_ffff,
            left: 0
        })
    );
    let whole = bytes("0003 0001 74 00000000 ffff ffff 000001a2287f2861 00000000");
    for len in 0..whole.len() {
        assert!(Record::decode(&key, Some(&whole[..len])).is_err(), "{len}");
    }
}
