//! The promises of `conform`, on every API and version: what passes, the crate decodes; what is
//! plain comes back as it is; what Kafka reads leniently is made plain; the rest is refused.

use bytes::Bytes;
use kafka_protocol::messages::*;
use kafka_protocol::protocol::{Decodable, Encodable, Message, VersionRange};
use uuid::Uuid;

use super::RequestHeader;
use super::*;

/// xorshift64*: the tests must not depend on anything but their seed.
struct Random {
    state: u64,
    /// Whether structs get their tagged fields.
    tagged: bool,
}

impl Random {
    fn new(seed: u64) -> Self {
        let state = 0x9e37_79b9_7f4a_7c15 ^ seed;
        Random {
            state,
            tagged: true,
        }
    }

    fn next(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

fn random_value(kind: &Kind, random: &mut Random) -> Value {
    let null = random.below(4) == 0;
    match kind {
        Kind::Boolean => Value::Boolean(random.below(2) == 1),
        Kind::Int8 => Value::Integer(i64::from(random.next() as i8)),
        Kind::Int16 => Value::Integer(i64::from(random.next() as i16)),
        Kind::Uint16 => Value::Integer(i64::from(random.next() as u16)),
        Kind::Int32 => Value::Integer(i64::from(random.next() as i32)),
        Kind::Int64 => Value::Integer(random.next() as i64),
        Kind::Float64 => Value::Float(random.below(1000) as f64 / 8.0),
        Kind::Uuid => Value::Uuid(Uuid::from_u64_pair(random.next(), random.next())),
        Kind::Text(length) if null && length.nullable => Value::Null,
        Kind::Text(_) => Value::Text("é".repeat(random.below(70))),
        Kind::Bytes(length) | Kind::Records(length) if null && length.nullable => Value::Null,
        Kind::Bytes(_) | Kind::Records(_) => {
            Value::Bytes(vec![random.next() as u8; random.below(200)].into())
        }
        Kind::Array(length, _) if null && length.nullable => Value::Null,
        Kind::Array(_, element) => {
            let count = random.below(4);
            Value::Array((0..count).map(|_| random_value(element, random)).collect())
        }
        Kind::Struct { nullable, .. } if null && *nullable => Value::Null,
        Kind::Struct { layout, .. } => random_struct(layout, random),
    }
}

fn random_struct(layout: &Struct, random: &mut Random) -> Value {
    let tagged = match random.tagged {
        true => layout.tagged.as_deref().unwrap_or_default(),
        false => &[],
    };
    let fields = layout.fields.iter().chain(tagged.iter().map(|t| &t.field));
    Value::Struct(
        fields
            .map(|f| (f.name.into(), random_value(&f.kind, random)))
            .collect(),
    )
}

fn random_request(api: &Api, version: i16, random: &mut Random) -> Bytes {
    let body = random_struct(api.request(version).unwrap(), random);
    encode_request(api.key, version, 7, Some("client"), &body).unwrap()
}

fn every_request() -> impl Iterator<Item = (&'static Api, i16)> {
    apis()
        .iter()
        .flat_map(|api| api.versions.clone().map(move |version| (api, version)))
}

macro_rules! messages {
    ($($name:ident $request:ident $response:ident,)*) => {
        /// Has the crate decode a body; gives what it encodes of that again.
        fn crate_reads(key: ApiKey, version: i16, body: Bytes) -> Result<Vec<u8>, String> {
            match key { $(ApiKey::$name => reads::<$request>(version, body),)* }
        }

        fn crate_reads_response(key: ApiKey, version: i16, body: Bytes) -> Result<Vec<u8>, String> {
            match key { $(ApiKey::$name => reads::<$response>(version, body),)* }
        }

        /// The versions of which the crate has both messages. (`ApiKey::valid_versions` claims
        /// more: OffsetCommit and OffsetFetch v10.)
        fn versions_in_crate(key: ApiKey) -> VersionRange {
            match key { $(ApiKey::$name => $request::VERSIONS.intersect(&$response::VERSIONS),)* }
        }
    };
}

messages! {
    Produce ProduceRequest ProduceResponse,
    Fetch FetchRequest FetchResponse,
    ListOffsets ListOffsetsRequest ListOffsetsResponse,
    Metadata MetadataRequest MetadataResponse,
    OffsetCommit OffsetCommitRequest OffsetCommitResponse,
    OffsetFetch OffsetFetchRequest OffsetFetchResponse,
    FindCoordinator FindCoordinatorRequest FindCoordinatorResponse,
    JoinGroup JoinGroupRequest JoinGroupResponse,
    Heartbeat HeartbeatRequest HeartbeatResponse,
    LeaveGroup LeaveGroupRequest LeaveGroupResponse,
    SyncGroup SyncGroupRequest SyncGroupResponse,
    DescribeGroups DescribeGroupsRequest DescribeGroupsResponse,
    ListGroups ListGroupsRequest ListGroupsResponse,
    SaslHandshake SaslHandshakeRequest SaslHandshakeResponse,
    ApiVersions ApiVersionsRequest ApiVersionsResponse,
    CreateTopics CreateTopicsRequest CreateTopicsResponse,
    DeleteTopics DeleteTopicsRequest DeleteTopicsResponse,
    DeleteRecords DeleteRecordsRequest DeleteRecordsResponse,
    InitProducerId InitProducerIdRequest InitProducerIdResponse,
    OffsetForLeaderEpoch OffsetForLeaderEpochRequest OffsetForLeaderEpochResponse,
    AddPartitionsToTxn AddPartitionsToTxnRequest AddPartitionsToTxnResponse,
    AddOffsetsToTxn AddOffsetsToTxnRequest AddOffsetsToTxnResponse,
    EndTxn EndTxnRequest EndTxnResponse,
    WriteTxnMarkers WriteTxnMarkersRequest WriteTxnMarkersResponse,
    TxnOffsetCommit TxnOffsetCommitRequest TxnOffsetCommitResponse,
    DescribeAcls DescribeAclsRequest DescribeAclsResponse,
    CreateAcls CreateAclsRequest CreateAclsResponse,
    DeleteAcls DeleteAclsRequest DeleteAclsResponse,
    DescribeConfigs DescribeConfigsRequest DescribeConfigsResponse,
    AlterConfigs AlterConfigsRequest AlterConfigsResponse,
    AlterReplicaLogDirs AlterReplicaLogDirsRequest AlterReplicaLogDirsResponse,
    DescribeLogDirs DescribeLogDirsRequest DescribeLogDirsResponse,
    SaslAuthenticate SaslAuthenticateRequest SaslAuthenticateResponse,
    CreatePartitions CreatePartitionsRequest CreatePartitionsResponse,
    CreateDelegationToken CreateDelegationTokenRequest CreateDelegationTokenResponse,
    RenewDelegationToken RenewDelegationTokenRequest RenewDelegationTokenResponse,
    ExpireDelegationToken ExpireDelegationTokenRequest ExpireDelegationTokenResponse,
    DescribeDelegationToken DescribeDelegationTokenRequest DescribeDelegationTokenResponse,
    DeleteGroups DeleteGroupsRequest DeleteGroupsResponse,
    ElectLeaders ElectLeadersRequest ElectLeadersResponse,
    IncrementalAlterConfigs IncrementalAlterConfigsRequest IncrementalAlterConfigsResponse,
    AlterPartitionReassignments
        AlterPartitionReassignmentsRequest
        AlterPartitionReassignmentsResponse,
    ListPartitionReassignments ListPartitionReassignmentsRequest ListPartitionReassignmentsResponse,
    OffsetDelete OffsetDeleteRequest OffsetDeleteResponse,
    DescribeClientQuotas DescribeClientQuotasRequest DescribeClientQuotasResponse,
    AlterClientQuotas AlterClientQuotasRequest AlterClientQuotasResponse,
    DescribeUserScramCredentials
        DescribeUserScramCredentialsRequest
        DescribeUserScramCredentialsResponse,
    AlterUserScramCredentials AlterUserScramCredentialsRequest AlterUserScramCredentialsResponse,
    Vote VoteRequest VoteResponse,
    BeginQuorumEpoch BeginQuorumEpochRequest BeginQuorumEpochResponse,
    EndQuorumEpoch EndQuorumEpochRequest EndQuorumEpochResponse,
    DescribeQuorum DescribeQuorumRequest DescribeQuorumResponse,
    AlterPartition AlterPartitionRequest AlterPartitionResponse,
    UpdateFeatures UpdateFeaturesRequest UpdateFeaturesResponse,
    Envelope EnvelopeRequest EnvelopeResponse,
    FetchSnapshot FetchSnapshotRequest FetchSnapshotResponse,
    DescribeCluster DescribeClusterRequest DescribeClusterResponse,
    DescribeProducers DescribeProducersRequest DescribeProducersResponse,
    BrokerRegistration BrokerRegistrationRequest BrokerRegistrationResponse,
    BrokerHeartbeat BrokerHeartbeatRequest BrokerHeartbeatResponse,
    UnregisterBroker UnregisterBrokerRequest UnregisterBrokerResponse,
    DescribeTransactions DescribeTransactionsRequest DescribeTransactionsResponse,
    ListTransactions ListTransactionsRequest ListTransactionsResponse,
    AllocateProducerIds AllocateProducerIdsRequest AllocateProducerIdsResponse,
    ConsumerGroupHeartbeat ConsumerGroupHeartbeatRequest ConsumerGroupHeartbeatResponse,
    ConsumerGroupDescribe ConsumerGroupDescribeRequest ConsumerGroupDescribeResponse,
    ControllerRegistration ControllerRegistrationRequest ControllerRegistrationResponse,
    GetTelemetrySubscriptions GetTelemetrySubscriptionsRequest GetTelemetrySubscriptionsResponse,
    PushTelemetry PushTelemetryRequest PushTelemetryResponse,
    AssignReplicasToDirs AssignReplicasToDirsRequest AssignReplicasToDirsResponse,
    ListConfigResources ListConfigResourcesRequest ListConfigResourcesResponse,
    DescribeTopicPartitions DescribeTopicPartitionsRequest DescribeTopicPartitionsResponse,
    ShareGroupHeartbeat ShareGroupHeartbeatRequest ShareGroupHeartbeatResponse,
    ShareGroupDescribe ShareGroupDescribeRequest ShareGroupDescribeResponse,
    ShareFetch ShareFetchRequest ShareFetchResponse,
    ShareAcknowledge ShareAcknowledgeRequest ShareAcknowledgeResponse,
    AddRaftVoter AddRaftVoterRequest AddRaftVoterResponse,
    RemoveRaftVoter RemoveRaftVoterRequest RemoveRaftVoterResponse,
    UpdateRaftVoter UpdateRaftVoterRequest UpdateRaftVoterResponse,
    InitializeShareGroupState InitializeShareGroupStateRequest InitializeShareGroupStateResponse,
    ReadShareGroupState ReadShareGroupStateRequest ReadShareGroupStateResponse,
    WriteShareGroupState WriteShareGroupStateRequest WriteShareGroupStateResponse,
    DeleteShareGroupState DeleteShareGroupStateRequest DeleteShareGroupStateResponse,
    ReadShareGroupStateSummary ReadShareGroupStateSummaryRequest ReadShareGroupStateSummaryResponse,
    DescribeShareGroupOffsets DescribeShareGroupOffsetsRequest DescribeShareGroupOffsetsResponse,
    AlterShareGroupOffsets AlterShareGroupOffsetsRequest AlterShareGroupOffsetsResponse,
    DeleteShareGroupOffsets DeleteShareGroupOffsetsRequest DeleteShareGroupOffsetsResponse,
}

fn reads<R: Decodable + Encodable>(version: i16, mut body: Bytes) -> Result<Vec<u8>, String> {
    let request = R::decode(&mut body, version).map_err(|e| e.to_string())?;
    if !body.is_empty() {
        return Err(format!("the crate leaves {} bytes", body.len()));
    }
    let mut again = Vec::new();
    request
        .encode(&mut again, version)
        .map_err(|e| e.to_string())?;
    Ok(again)
}

/// Has the crate decode a whole frame that passed `conform`.
fn crate_reads_frame(frame: &Bytes) -> Result<Vec<u8>, String> {
    let (header, body_start) = RequestHeader::read(frame).map_err(|e| e.to_string())?;
    let Some(version) = codec_version(header.api_key, header.api_version) else {
        return Ok(Vec::new());
    };
    let key = ApiKey::try_from(header.api_key).unwrap();
    let header_version = key.request_header_version(version);
    let read = kafka_protocol::messages::RequestHeader::decode(&mut frame.clone(), header_version);
    read.map_err(|e| e.to_string())?;
    crate_reads(key, version, frame.slice(body_start..))
}

fn is_same(a: &Bytes, b: &Bytes) -> bool {
    a.as_ptr() == b.as_ptr() && a.len() == b.len()
}

#[test]
fn plain_requests_of_every_version_pass_untouched_and_the_crate_reads_them() {
    let mut random = Random::new(1);
    for (api, version) in every_request() {
        for round in 0..20 {
            random.tagged = round % 2 == 1;
            let frame = random_request(api, version, &mut random);
            let name = format!("{} v{version}", api.name);
            let passed = conform(&frame).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert!(is_same(&passed, &frame), "{name}");
            let again = crate_reads_frame(&frame).unwrap_or_else(|e| panic!("{name}: {e}"));
            let (_, body_start) = RequestHeader::read(&frame).unwrap();
            if !random.tagged && codec_version(api.key, version).is_some() {
                assert_eq!(again, frame[body_start..], "{name}");
            }
        }
    }
}

#[test]
fn the_crate_has_the_versions_that_codec_version_names() {
    for (api, version) in every_request() {
        let in_crate = ApiKey::try_from(api.key).map(versions_in_crate);
        let has = in_crate.is_ok_and(|v| v.min <= version && version <= v.max);
        let same = codec_version(api.key, version) == Some(version);
        assert_eq!(has, same, "{} v{version}", api.name);
    }
}

#[test]
fn the_crate_reads_responses_of_every_version() {
    let mut random = Random::new(5);
    for (api, version) in every_request() {
        let Some(codec) = codec_version(api.key, version) else {
            continue;
        };
        for round in 0..20 {
            random.tagged = round % 2 == 1;
            let answer = random_struct(api.response(version).unwrap(), &mut random);
            let frame = encode_response(api.key, version, 9, &answer).unwrap();
            let body = frame.slice(response_header_bytes(api.key, version)..);
            let key = ApiKey::try_from(api.key).unwrap();
            let again = crate_reads_response(key, codec, body.clone());
            let again = again.unwrap_or_else(|e| panic!("{} v{version}: {e}", api.name));
            assert!(random.tagged || again == body, "{} v{version}", api.name);
        }
    }
}

/// A tagged field.
const NOT_COUNTED: &str = "topic_config_error_code";

/// The error codes in the fields of `tree`, in their order.
fn codes_in(tree: &Value, found: &mut Vec<i16>) {
    match tree {
        Value::Struct(fields) => {
            for (name, value) in fields {
                match value {
                    Value::Integer(_) if name == NOT_COUNTED => {}
                    Value::Integer(code) if name.ends_with("error_code") => {
                        found.push(*code as i16);
                    }
                    _ => codes_in(value, found),
                }
            }
        }
        Value::Array(elements) => elements.iter().for_each(|e| codes_in(e, found)),
        _ => {}
    }
}

#[test]
fn error_codes_of_every_answer_are_found() {
    let mut random = Random::new(11);
    let mut in_all = 0;
    for (api, version) in every_request() {
        for round in 0..5 {
            random.tagged = round % 2 == 1;
            let answer = random_struct(api.response(version).unwrap(), &mut random);
            let frame = encode_response(api.key, version, 9, &answer).unwrap();
            let (mut expected, mut found) = (Vec::new(), Vec::new());
            codes_in(&answer, &mut expected);
            error_codes(api.key, version, &frame, &mut |code| found.push(code));
            assert_eq!(found, expected, "{} v{version}", api.name);
            in_all += found.len();
            // Nothing is read beyond an end that is not where it should be.
            for cut in 0..frame.len() {
                let mut fewer = Vec::new();
                error_codes(api.key, version, &frame[..cut], &mut |code| {
                    fewer.push(code)
                });
                assert!(expected.starts_with(&fewer));
            }
        }
    }
    assert!(in_all > 1000, "{in_all}");
}

#[test]
fn trees_of_every_version_come_back() {
    let mut random = Random::new(2);
    for (api, version) in every_request() {
        random.tagged = true;
        let body = random_struct(api.request(version).unwrap(), &mut random);
        let frame = encode_request(api.key, version, 7, None, &body).unwrap();
        assert_eq!(
            decode_request(&frame).unwrap().1,
            body,
            "{} v{version}",
            api.name
        );
        let answer = random_struct(api.response(version).unwrap(), &mut random);
        let frame = encode_response(api.key, version, 9, &answer).unwrap();
        let (correlation_id, read) = decode_response(api.key, version, &frame).unwrap();
        assert_eq!(
            (correlation_id, &read),
            (9, &answer),
            "{} v{version}",
            api.name
        );
        let json = serde_json::to_string(&body.to_json()).unwrap();
        let from_json = Value::from_json(&serde_json::from_str(&json).unwrap());
        let again = encode_request(api.key, version, 7, None, &from_json).unwrap();
        let frame = encode_request(api.key, version, 7, None, &body).unwrap();
        assert_eq!(again, frame, "{} v{version} through JSON", api.name);
    }
}

#[test]
fn a_request_cut_anywhere_is_refused() {
    let mut random = Random::new(3);
    for (api, version) in every_request() {
        random.tagged = true;
        let frame = random_request(api, version, &mut random);
        for length in 0..frame.len() {
            let cut = frame.slice(..length);
            assert!(
                conform(&cut).is_err(),
                "{} v{version} at {length}",
                api.name
            );
        }
    }
}

/// Whatever the bytes: what passes is decoded, and passes again untouched.
#[test]
fn what_passes_the_crate_reads() {
    let mut random = Random::new(4);
    let (mut passed, mut refused) = (0, 0);
    for (api, version) in every_request() {
        for _ in 0..200 {
            random.tagged = true;
            let mut bytes = random_request(api, version, &mut random).to_vec();
            for _ in 0..=random.below(3) {
                let at = 4 + random.below(bytes.len() - 4);
                bytes[at] = match random.below(3) {
                    0 => 0xff,
                    1 => bytes[at].wrapping_add(1),
                    _ => random.next() as u8,
                };
            }
            let frame = Bytes::from(bytes);
            match conform(&frame) {
                Err(_) => refused += 1,
                Ok(plain) => {
                    passed += 1;
                    let read = crate_reads_frame(&plain);
                    assert!(read.is_ok(), "{} v{version}: {read:?} {frame:x?}", api.name);
                    assert!(is_same(&conform(&plain).unwrap(), &plain));
                }
            }
        }
    }
    assert!(
        passed > 1000 && refused > 1000,
        "{passed} passed, {refused} refused"
    );
}

/// Metadata v1 and v9, Metadata's `topics` being the first field of the body.
fn metadata(version: i16, client_id: &[u8], rest: &[u8]) -> Bytes {
    let mut frame = vec![0, 3, 0, version as u8, 0, 0, 0, 1];
    frame.extend_from_slice(client_id);
    frame.extend_from_slice(rest);
    frame.into()
}

fn body_of(frame: &Bytes) -> Value {
    decode_request(frame).unwrap().1
}

#[test]
fn any_negative_length_is_null() {
    let frame = metadata(1, &[0xff, 0xfe], &[0xff, 0xff, 0xff, 0xfe]);
    let plain = conform(&frame).unwrap();
    assert_eq!(plain, metadata(1, &[0xff, 0xff], &[0xff; 4]));
}

#[test]
fn text_that_is_not_utf8_is_replaced() {
    let frame = metadata(1, &[0, 1, 0xff], &[0, 0, 0, 1, 0, 2, b'a', 0x80]);
    let plain = conform(&frame).unwrap();
    let (header, _) = RequestHeader::read(&plain).unwrap();
    assert_eq!(header.client_id.as_deref(), Some("\u{fffd}"));
    let topics = body_of(&plain).get("topics").unwrap().clone();
    assert_eq!(
        topics.elements()[0].get("name").unwrap().as_text(),
        Some("a\u{fffd}")
    );
}

#[test]
fn bytes_after_the_body_are_cut_off() {
    let frame = metadata(1, &[0xff, 0xff], &[0, 0, 0, 0, 1, 2, 3]);
    assert!(is_same(
        &conform(&frame).unwrap(),
        &frame.slice(..frame.len() - 3)
    ));
}

#[test]
fn unknown_tagged_fields_are_dropped() {
    // No header tags; no topics, no creation, neither operations; tag 9 twice, then tag 5.
    let rest = [0, 1, 0, 0, 0, 3, 9, 1, 1, 9, 1, 2, 5, 0];
    let plain = conform(&metadata(9, &[0xff, 0xff], &rest)).unwrap();
    assert_eq!(plain, metadata(9, &[0xff, 0xff], &[0, 1, 0, 0, 0, 0]));
    let rest = [1, 3, 1, 1, 1, 0, 0, 0, 0];
    let plain = conform(&metadata(9, &[0xff, 0xff], &rest)).unwrap();
    assert_eq!(plain, metadata(9, &[0xff, 0xff], &[0, 1, 0, 0, 0, 0]));
}

fn fetch_with_tags(tags: &[u8]) -> Bytes {
    let body = Value::Struct(Vec::new());
    let frame = encode_request(1, 12, 1, None, &body).unwrap();
    [&frame[..frame.len() - 1], tags].concat().into()
}

/// Kafka does not look at the stated size of a field it knows, and takes the last of two.
#[test]
fn known_tagged_fields_are_read_whatever_their_stated_size() {
    let once = fetch_with_tags(&[1, 0, 2, 2, b'b']);
    assert!(is_same(&conform(&once).unwrap(), &once));
    for stated in [0, 1, 3, 0x7f] {
        let frame = fetch_with_tags(&[1, 0, stated, 2, b'b']);
        assert!(is_same(&conform(&frame).unwrap(), &frame));
        assert_eq!(body_of(&frame), body_of(&once));
        assert!(crate_reads_frame(&frame).is_ok());
    }
    let twice = fetch_with_tags(&[2, 0, 2, 2, b'a', 0, 2, 2, b'b']);
    assert!(is_same(&conform(&twice).unwrap(), &twice));
    // Written anew because of another tag: once, with its true size.
    let with_unknown = fetch_with_tags(&[3, 0, 9, 2, b'a', 7, 1, 7, 0, 2, 2, b'b']);
    assert_eq!(conform(&with_unknown).unwrap(), once);
    let cut = conform(&fetch_with_tags(&[1, 0, 2, 3, b'b'])).unwrap_err();
    assert_eq!(cut.field, "cluster_id");
    assert_eq!(cut.reason, Reason::CutShort { wanted: 2, left: 1 });
    // A tag that only a newer version knows: the crate would refuse it.
    let newer = [1, 1, 13, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0];
    assert_eq!(
        conform(&fetch_with_tags(&newer)).unwrap(),
        fetch_with_tags(&[0])
    );
}

#[test]
fn a_count_of_tagged_fields_beyond_the_frame_is_refused() {
    let frame = metadata(
        9,
        &[0xff, 0xff],
        &[0, 1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f],
    );
    assert!(conform(&frame).is_err());
}

#[test]
fn a_longer_varint_than_needed_passes_and_one_of_six_bytes_does_not() {
    let padded = metadata(9, &[0xff, 0xff], &[0, 0x81, 0x80, 0, 0, 0, 0, 0]);
    assert!(is_same(&conform(&padded).unwrap(), &padded));
    assert_eq!(crate_reads_frame(&padded).map(|_| ()), Ok(()));
    let long = metadata(
        9,
        &[0xff, 0xff],
        &[0, 0x81, 0x80, 0x80, 0x80, 0x80, 0, 0, 0, 0, 0],
    );
    let refused = conform(&long).unwrap_err();
    assert_eq!(
        (refused.field.as_str(), refused.reason),
        ("topics", Reason::VarintTooLong)
    );
}

#[test]
fn lengths_beyond_the_frame_are_refused_where_they_stand() {
    let frame = metadata(1, &[0xff, 0xff], &[0x7f, 0xff, 0xff, 0xff, 0, 0]);
    let refused = conform(&frame).unwrap_err();
    let reason = Reason::TooManyElements {
        count: 0x7fff_ffff,
        left: 2,
    };
    assert_eq!((refused.position, refused.reason.clone()), (10, reason));
    assert_eq!(
        refused.to_string(),
        "topics at byte 10: 2147483647 elements cannot be in 2 bytes"
    );
    let frame = metadata(1, &[0xff, 0xff], &[0, 0, 0, 2, 0, 1, b'a', 0, 9, b'b']);
    let refused = conform(&frame).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "topics[1].name at byte 19: 9 bytes are wanted, 1 are left"
    );
}

#[test]
fn null_where_there_is_none_is_refused() {
    let null_topic = metadata(1, &[0xff, 0xff], &[0, 0, 0, 1, 0xff, 0xff]);
    let refused = conform(&null_topic).unwrap_err();
    assert_eq!(refused.reason, Reason::UnexpectedNull);
    assert_eq!(refused.field, "topics[0].name");
    let null_array = metadata(0, &[0xff, 0xff], &[0xff; 4]);
    assert_eq!(
        conform(&null_array).unwrap_err().reason,
        Reason::UnexpectedNull
    );
}

#[test]
fn compact_text_above_32767_bytes_is_refused() {
    let name = |bytes: usize| {
        let mut rest = vec![0, 2];
        value_encode::put_varint(&mut rest, bytes as u32 + 1);
        rest.resize(rest.len() + bytes, b'a');
        rest.extend_from_slice(&[0, 0, 0, 0, 0]);
        metadata(9, &[0xff, 0xff], &rest)
    };
    assert!(conform(&name(32767)).is_ok());
    let refused = conform(&name(32768)).unwrap_err();
    assert_eq!(
        refused.reason,
        Reason::TextTooLong {
            bytes: 32768,
            max: 32767
        }
    );
}

#[test]
fn elements_are_limited_over_all_arrays_together() {
    // Empty names take two bytes each.
    let mut rest = (ELEMENTS_MAX as u32 + 1).to_be_bytes().to_vec();
    rest.resize(rest.len() + 2 * (ELEMENTS_MAX + 1), 0);
    let refused = conform(&metadata(1, &[0xff, 0xff], &rest)).unwrap_err();
    assert_eq!(refused.reason, Reason::ElementsLimit { max: ELEMENTS_MAX });
}

/// The bound that conform.rs states holds for the crate's own structs.
#[test]
fn decoded_elements_are_at_most_256_bytes() {
    macro_rules! sizes {
        ($($element:path,)*) => { [$((stringify!($element), size_of::<$element>()),)*] };
    }
    let sizes = sizes![
        produce_request::TopicProduceData,
        produce_request::PartitionProduceData,
        fetch_request::FetchTopic,
        fetch_request::FetchPartition,
        create_topics_request::CreatableTopic,
        metadata_request::MetadataRequestTopic,
        offset_commit_request::OffsetCommitRequestPartition,
        offset_fetch_request::OffsetFetchRequestGroup,
        add_partitions_to_txn_request::AddPartitionsToTxnTransaction,
        create_acls_request::AclCreation,
        txn_offset_commit_request::TxnOffsetCommitRequestPartition,
        alter_user_scram_credentials_request::ScramCredentialUpsertion,
        leave_group_request::MemberIdentity,
        broker_registration_request::Listener,
        share_fetch_request::FetchPartition,
    ];
    for (name, bytes) in sizes {
        assert!(bytes <= 256, "{name} takes {bytes} bytes");
    }
}

#[test]
fn unknown_apis_and_versions_are_refused_but_for_api_versions() {
    for key in [4_i16, 95, -1, 1000] {
        let frame = [&key.to_be_bytes()[..], &[0; 20]].concat().into();
        assert_eq!(conform(&frame).unwrap_err().reason, Reason::UnknownApi(key));
    }
    let frame = metadata(14, &[0xff, 0xff], &[0; 20]);
    let reason = Reason::UnknownVersion {
        api: "Metadata",
        version: 14,
    };
    assert_eq!(conform(&frame).unwrap_err().reason, reason);
    let asked = Bytes::from_static(&[0, 18, 0, 99, 0, 0, 0, 1, 0xff, 0xff, 0, 1, 2, 3]);
    assert_eq!(conform(&asked).unwrap(), asked.slice(..11));
}

#[test]
fn response_headers_are_written_by_version() {
    let written = |key, version| {
        let mut out = Vec::new();
        write_response_header(&mut out, key, version, 258);
        assert_eq!(out.len(), response_header_bytes(key, version));
        out
    };
    assert_eq!(written(3, 8), [0, 0, 1, 2]);
    assert_eq!(written(3, 9), [0, 0, 1, 2, 0]);
    assert_eq!(written(API_VERSIONS, 4), [0, 0, 1, 2]);
}

#[test]
fn numbers_outside_of_their_field_are_not_written() {
    let encode = |name: &str, value: i64| {
        let body = Value::Struct(vec![(name.to_owned().into(), Value::Integer(value))]);
        encode_request(0, 3, 1, None, &body)
    };
    assert!(encode("acks", 32767).is_ok() && encode("acks", -32768).is_ok());
    assert!(encode("acks", 32768).is_err() && encode("acks", -32769).is_err());
    assert!(encode("timeout_ms", 1 << 31).is_err());
    let unknown = encode("ack", 1).unwrap_err();
    assert_eq!(unknown.to_string(), "there is no field ack");
}
