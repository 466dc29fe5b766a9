//! Connections to a broker that the test plays, byte by byte.

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::{DescribeClusterRequest, MetadataRequest};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::{Address, Connection, PeerError};
use crate::host::tasks;
use crate::wire::{self, Value};

const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(50);

/// A request as the broker sees it: the key, the version and the correlation id.
async fn read_request(stream: &mut TcpStream) -> Option<(i16, i16, i32)> {
    let length = stream.read_i32().await.ok()?;
    let mut frame = vec![0; length as usize];
    stream.read_exact(&mut frame).await.ok()?;
    let (header, _) = wire::RequestHeader::read(&Bytes::from(frame)).unwrap();
    Some((header.api_key, header.api_version, header.correlation_id))
}

async fn send(stream: &mut TcpStream, body: &[u8]) {
    let mut frame = BytesMut::new();
    frame.put_i32(body.len() as i32);
    frame.put_slice(body);
    stream.write_all(&frame).await.unwrap();
}

/// ApiVersions v4 with every API at every version.
fn versions_answer(correlation_id: i32) -> Vec<u8> {
    let row = |api: &wire::Api| {
        Value::Struct(vec![
            ("api_key".into(), Value::Integer(api.key.into())),
            (
                "min_version".into(),
                Value::Integer((*api.versions.start()).into()),
            ),
            (
                "max_version".into(),
                Value::Integer((*api.versions.end()).into()),
            ),
        ])
    };
    let known = wire::apis().iter().filter(|api| !api.versions.is_empty());
    let body = Value::Struct(vec![
        ("error_code".into(), Value::Integer(0)),
        ("api_keys".into(), Value::Array(known.map(row).collect())),
        ("throttle_time_ms".into(), Value::Integer(0)),
    ]);
    wire::encode_response(wire::API_VERSIONS, 4, correlation_id, &body)
        .unwrap()
        .to_vec()
}

/// Dials a broker that shakes hands and then does as `serve` says.
async fn dial<F>(serve: impl FnOnce(TcpStream) -> F + Send + 'static) -> Connection
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = Address::new("127.0.0.1", listener.local_addr().unwrap().port());
    tasks::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let (key, _, id) = read_request(&mut stream).await.unwrap();
        assert_eq!(key, wire::API_VERSIONS);
        send(&mut stream, &versions_answer(id)).await;
        serve(stream).await;
    });
    Connection::dial(&address, "test", LONG).await.unwrap()
}

/// DescribeCluster with this cluster id and no brokers.
fn cluster_answer(version: i16, correlation_id: i32, cluster_id: &str) -> Vec<u8> {
    let mut fields = vec![
        ("throttle_time_ms", Value::Integer(0)),
        ("error_code", Value::Integer(0)),
        ("error_message", Value::Null),
        ("endpoint_type", Value::Integer(1)),
        ("cluster_id", Value::Text(cluster_id.to_owned())),
        ("controller_id", Value::Integer(1)),
        ("brokers", Value::Array(Vec::new())),
        ("cluster_authorized_operations", Value::Integer(0)),
    ];
    if version == 0 {
        fields.remove(3);
    }
    let fields = fields
        .into_iter()
        .map(|(name, value)| (name.into(), value))
        .collect();
    let body = Value::Struct(fields);
    wire::encode_response(60, version, correlation_id, &body)
        .unwrap()
        .to_vec()
}

#[tokio::test]
async fn pipelined_requests_get_their_own_answers() {
    let connection = dial(async |mut stream| {
        let first = read_request(&mut stream).await.unwrap();
        let second = read_request(&mut stream).await.unwrap();
        send(&mut stream, &cluster_answer(first.1, first.2, "one")).await;
        send(&mut stream, &cluster_answer(second.1, second.2, "two")).await;
        // Open until the other side closes.
        let _ = read_request(&mut stream).await;
    })
    .await;
    let request = DescribeClusterRequest::default();
    let first = connection.send(&request, LONG).unwrap();
    let second = connection.send(&request, LONG).unwrap();
    assert_eq!(second.answer().await.unwrap().cluster_id.as_str(), "two");
    assert_eq!(first.answer().await.unwrap().cluster_id.as_str(), "one");
}

#[tokio::test]
async fn an_unanswered_request_ends_the_connection() {
    let connection = dial(
        async |mut stream| {
            while read_request(&mut stream).await.is_some() {}
        },
    )
    .await;
    let error = connection
        .call(&DescribeClusterRequest::default(), SHORT)
        .await
        .unwrap_err();
    assert!(matches!(error, PeerError::Timeout { .. }), "{error}");
    assert!(connection.is_closed());
    let error = connection
        .call(&DescribeClusterRequest::default(), LONG)
        .await
        .unwrap_err();
    assert!(matches!(error, PeerError::Gone { .. }), "{error}");
}

#[tokio::test]
async fn a_closed_connection_fails_what_waits() {
    let connection = dial(async |mut stream| {
        read_request(&mut stream).await.unwrap();
    })
    .await;
    let error = connection
        .call(&DescribeClusterRequest::default(), LONG)
        .await
        .unwrap_err();
    assert!(matches!(error, PeerError::Gone { .. }), "{error}");
}

#[tokio::test]
async fn a_foreign_correlation_id_is_refused() {
    let connection = dial(async |mut stream| {
        let (_, version, id) = read_request(&mut stream).await.unwrap();
        send(&mut stream, &cluster_answer(version, id + 1, "x")).await;
        let _ = read_request(&mut stream).await;
    })
    .await;
    let error = connection
        .call(&DescribeClusterRequest::default(), LONG)
        .await
        .unwrap_err();
    assert!(matches!(error, PeerError::OutOfOrder { .. }), "{error}");
    assert!(connection.is_closed());
}

#[tokio::test]
async fn hostile_lengths_are_refused() {
    // The frame itself.
    let connection = dial(async |mut stream| {
        read_request(&mut stream).await.unwrap();
        stream.write_i32(i32::MAX).await.unwrap();
        let _ = read_request(&mut stream).await;
    })
    .await;
    let error = connection
        .call(&DescribeClusterRequest::default(), LONG)
        .await
        .unwrap_err();
    assert!(matches!(error, PeerError::TooLong { .. }), "{error}");
    // An array of two billion brokers in a frame of a few bytes.
    let connection = dial(async |mut stream| {
        let (_, _, id) = read_request(&mut stream).await.unwrap();
        let mut body = BytesMut::new();
        body.put_i32(id);
        body.put_u8(0);
        body.put_i32(0);
        body.put_slice(&[0xff, 0xff, 0xff, 0xff, 0x07]);
        send(&mut stream, &body).await;
        let _ = read_request(&mut stream).await;
    })
    .await;
    let request = MetadataRequest::default().with_topics(None);
    let error = connection.call(&request, LONG).await.unwrap_err();
    assert!(matches!(error, PeerError::Malformed { .. }), "{error}");
}

#[tokio::test]
async fn an_old_broker_is_asked_again_in_version_0() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = Address::new("127.0.0.1", listener.local_addr().unwrap().port());
    tasks::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let (_, version, id) = read_request(&mut stream).await.unwrap();
        assert_eq!(version, 4);
        // UNSUPPORTED_VERSION in the form of version 0, with the range of ApiVersions.
        let mut body = BytesMut::new();
        body.put_i32(id);
        body.put_i16(35);
        body.put_i32(0);
        send(&mut stream, &body).await;
        let (_, version, id) = read_request(&mut stream).await.unwrap();
        assert_eq!(version, 0);
        let mut body = BytesMut::new();
        body.put_i32(id);
        body.put_i16(0);
        body.put_i32(1);
        body.put_slice(&[0, 3, 0, 1, 0, 5]);
        send(&mut stream, &body).await;
        let _ = read_request(&mut stream).await;
    });
    let connection = Connection::dial(&address, "test", LONG).await.unwrap();
    assert_eq!(connection.versions().pick(3, i16::MAX), Some(5));
}

#[tokio::test]
async fn nobody_listens() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = Address::new("127.0.0.1", listener.local_addr().unwrap().port());
    drop(listener);
    let error = Connection::dial(&address, "test", LONG)
        .await
        .err()
        .unwrap();
    assert!(
        matches!(error, PeerError::Connect { .. }) && error.is_retriable(),
        "{error}"
    );
}
