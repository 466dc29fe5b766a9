//! A node is asked over HTTP what it does while a client uses it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kafka_protocol::messages::fetch_request::{FetchPartition, FetchRequest, FetchTopic};
use kafka_protocol::messages::init_producer_id_request::InitProducerIdRequest;
use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::produce_request::{
    PartitionProduceData, ProduceRequest, TopicProduceData,
};
use kafka_protocol::messages::{GroupId, TopicName as WireName, TransactionalId};
use kafka_protocol::protocol::StrBytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::monitor::{Monitor, Phase, Served, serve};
use super::{Broker, Ready, StartError};
use crate::config::{NodeConfig, Sources, argument_properties};
use crate::metadata::planners::NewTopic;
use crate::metrics::{METRICS, MetricKind};
use crate::peer::{Address, Client, ClientConfig, CoordinatorKind};
use crate::record::BatchBuilder;
use crate::types::TimestampMs;

const LONG: Duration = Duration::from_secs(120);

fn config(dir: &Path, more: &[&str]) -> NodeConfig {
    let pairs = [
        "listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://localhost:9093".to_owned(),
        format!("log.dirs={}", dir.display()),
        "klamm.metrics.listener=127.0.0.1:0".to_owned(),
        "offsets.topic.num.partitions=1".to_owned(),
        "transaction.state.log.num.partitions=1".to_owned(),
    ];
    let pairs = pairs.iter().map(String::as_str);
    let sources = Sources {
        arguments: argument_properties(pairs.chain(more.iter().copied())).unwrap(),
        ..Sources::default()
    };
    NodeConfig::load(sources).unwrap().0
}

async fn start(dir: &Path) -> (Broker, Ready) {
    let started = timeout(LONG, Broker::start(config(dir, &[]))).await;
    started.expect("it starts in time").unwrap()
}

/// What comes back for `request`, until the other side closes.
async fn answer(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    read_all(&mut stream).await
}

async fn read_all(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    // One that has not sent all may be reset.
    let _ = timeout(LONG, stream.read_to_end(&mut answer))
        .await
        .expect("it is answered or closed");
    String::from_utf8(answer).unwrap()
}

/// Status and body.
async fn get(address: SocketAddr, path: &str) -> (u16, String) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: klamm\r\n\r\n");
    let answer = answer(address, &request).await;
    let (head, body) = answer.split_once("\r\n\r\n").expect("an HTTP answer");
    let status = head.split(' ').nth(1).unwrap();
    (status.parse().unwrap(), body.to_owned())
}

/// Samples by name and labels, as they stand there.
async fn scrape(address: SocketAddr) -> BTreeMap<String, f64> {
    let (status, text) = get(address, "/metrics").await;
    assert_eq!(status, 200);
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    let samples = samples.map(|line| {
        let (name, value) = line.rsplit_once(' ').unwrap();
        (name.to_owned(), value.parse().unwrap())
    });
    samples.collect()
}

fn grown(before: &BTreeMap<String, f64>, after: &BTreeMap<String, f64>, name: &str) -> f64 {
    let value = |at: &BTreeMap<String, f64>| at.get(name).copied().unwrap_or(0.0);
    value(after) - value(before)
}

fn client(ready: &Ready) -> Client {
    let (_, address) = &ready.bound[0];
    let bootstrap = Address::new("127.0.0.1", address.port());
    Client::new(ClientConfig::new(vec![bootstrap], "test"))
}

fn wire_name(topic: &str) -> WireName {
    WireName(StrBytes::from_string(topic.to_owned()))
}

fn produce(topic: &str, records: usize) -> (ProduceRequest, usize) {
    let mut builder = BatchBuilder::new();
    for _ in 0..records {
        builder.append(TimestampMs(1_700_000_000_000), None, Some(b"value"));
    }
    let batch = builder.build().unwrap().to_bytes();
    let bytes = batch.len();
    let data = PartitionProduceData::default().with_records(Some(batch));
    let topic = TopicProduceData::default()
        .with_name(wire_name(topic))
        .with_partition_data(vec![data]);
    let request = ProduceRequest::default()
        .with_acks(-1)
        .with_timeout_ms(30_000)
        .with_topic_data(vec![topic]);
    (request, bytes)
}

fn fetch(topic: &str) -> FetchRequest {
    let partition = FetchPartition::default()
        .with_partition_max_bytes(1 << 20)
        .with_current_leader_epoch(-1);
    let topic = FetchTopic::default()
        .with_topic(wire_name(topic))
        .with_partitions(vec![partition]);
    FetchRequest::default()
        .with_max_bytes(1 << 20)
        .with_topics(vec![topic])
}

/// Sends what a producer and a consumer send, by topic name.
async fn use_topic(ready: &Ready, topic: &str, records: usize) -> usize {
    let connection = client(ready).any().await.unwrap();
    let (request, bytes) = produce(topic, records);
    let pending = connection.send_at_most(&request, 12, LONG).unwrap();
    pending.answer().await.unwrap();
    let pending = connection.send_at_most(&fetch(topic), 12, LONG).unwrap();
    pending.answer().await.unwrap();
    bytes
}

/// Makes a group and a transactional id.
async fn use_coordinators(client: &Client) {
    let group = GroupId(StrBytes::from_static_str("g"));
    let commit = OffsetCommitRequest::default()
        .with_group_id(group)
        .with_generation_id_or_member_epoch(-1)
        .with_topics(vec![
            OffsetCommitRequestTopic::default()
                .with_name(wire_name("t"))
                .with_partitions(vec![OffsetCommitRequestPartition::default()]),
        ]);
    let at = client.coordinator(CoordinatorKind::Group, "g").await;
    let at = at.unwrap();
    // The coordinator may be loading.
    loop {
        let pending = at.send_at_most(&commit, 8, LONG).unwrap();
        let answer = pending.answer().await.unwrap();
        if answer.topics[0].partitions[0].error_code == 0 {
            break;
        }
    }
    let id = TransactionalId(StrBytes::from_static_str("x"));
    let init = InitProducerIdRequest::default()
        .with_transactional_id(Some(id))
        .with_transaction_timeout_ms(60_000);
    let at = client.coordinator(CoordinatorKind::Transaction, "x").await;
    let at = at.unwrap();
    while at.call(&init, LONG).await.unwrap().error_code != 0 {}
}

async fn create(broker: &Broker, name: &str) {
    let topic = NewTopic {
        name: name.to_owned(),
        num_partitions: 1,
        replication_factor: 1,
        ..NewTopic::default()
    };
    let created = broker.node.create_topics(vec![topic], false).await.unwrap();
    for (_, result) in created {
        result.unwrap();
    }
    let offset = broker.node.image().offset();
    broker.node.partitions.wait_applied(offset).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_metric_is_in_a_scrape_and_moves_with_what_a_client_does() {
    let dir = tempfile::tempdir().unwrap();
    let (broker, ready) = start(dir.path()).await;
    let address = ready.metrics.unwrap();
    assert_eq!(get(address, "/health").await, (200, "ok\n".to_owned()));
    create(&broker, "t").await;
    let before = scrape(address).await;
    let bytes = use_topic(&ready, "t", 3).await as f64;
    use_topic(&ready, "nobody-has-this", 1).await;
    let after = scrape(address).await;
    let grown = |name: &str| grown(&before, &after, name);
    for (name, by) in [
        (r#"klamm_requests_total{api="Produce"}"#, 2.0),
        (r#"klamm_requests_total{api="Fetch"}"#, 2.0),
        (
            r#"klamm_request_duration_seconds_count{api="Produce"}"#,
            2.0,
        ),
        (
            r#"klamm_request_duration_seconds_bucket{api="Fetch",le="+Inf"}"#,
            2.0,
        ),
        (
            r#"klamm_request_errors_total{api="Produce",error="UNKNOWN_TOPIC_OR_PARTITION"}"#,
            1.0,
        ),
        (
            r#"klamm_request_errors_total{api="Fetch",error="UNKNOWN_TOPIC_OR_PARTITION"}"#,
            1.0,
        ),
        (r#"klamm_topic_appended_records_total{topic="t"}"#, 3.0),
        (r#"klamm_topic_appended_bytes_total{topic="t"}"#, bytes),
        (r#"klamm_topic_fetched_bytes_total{topic="t"}"#, bytes),
        ("klamm_appended_records_total", 3.0),
        ("klamm_appended_bytes_total", bytes),
        ("klamm_fetched_bytes_total", bytes),
        (
            r#"klamm_connections_accepted_total{listener="PLAINTEXT"}"#,
            2.0,
        ),
    ] {
        assert_eq!(grown(name), by, "{name}");
    }
    let received = grown(r#"klamm_received_bytes_total{listener="PLAINTEXT"}"#);
    let sent = grown(r#"klamm_sent_bytes_total{listener="PLAINTEXT"}"#);
    assert!(received > bytes && sent > bytes, "{received} {sent}");
    assert_eq!(after["klamm_broker_state"], 3.0);
    assert_eq!(after["klamm_active_controller"], 1.0);
    assert_eq!(after["klamm_partitions"], 1.0);
    assert_eq!(after["klamm_leader_partitions"], 1.0);
    assert_eq!(after["klamm_cluster_topics"], 1.0);
    assert_eq!(after["klamm_active_brokers"], 1.0);
    let size = format!(
        r#"klamm_log_size_bytes{{directory="{}"}}"#,
        dir.path().display()
    );
    assert_eq!(after[&size], bytes);
    assert_eq!(after[r#"klamm_topic_log_size_bytes{topic="t"}"#], bytes);

    use_coordinators(&client(&ready)).await;
    let samples = scrape(address).await;
    assert_eq!(
        samples[r#"klamm_groups{protocol="classic",state="Empty"}"#],
        1.0
    );
    assert_eq!(samples[r#"klamm_transactions{state="Empty"}"#], 1.0);
    assert_eq!(samples["klamm_eldest_transaction_seconds"], 0.0);
    for coordinators in ["klamm_group_coordinators", "klamm_transaction_coordinators"] {
        let active = format!(r#"{coordinators}{{state="active"}}"#);
        assert_eq!(samples[&active], 1.0, "{coordinators}");
    }

    let (_, text) = get(address, "/metrics").await;
    let mut lines = text.lines().peekable();
    for row in METRICS {
        let help = format!("# HELP {} {}", row.name, row.help);
        assert_eq!(lines.next(), Some(&*help));
        let kind = format!("# TYPE {} {}", row.name, row.kind.name());
        assert_eq!(lines.next(), Some(&*kind));
        let mut samples = 0;
        while let Some(line) = lines.next_if(|line| !line.starts_with('#')) {
            let name = line.split(['{', ' ']).next().unwrap();
            let suffix = name.strip_prefix(row.name).expect(line);
            let is_of_histogram = ["_bucket", "_sum", "_count"].contains(&suffix);
            assert_eq!(row.kind == MetricKind::Histogram, is_of_histogram, "{line}");
            for label in row.labels {
                assert!(line.contains(&format!("{label}=\"")), "{line}");
            }
            samples += 1;
        }
        assert!(samples > 0, "{} has no sample", row.name);
    }
    assert_eq!(lines.next(), None);
    broker.stop().await;
    assert!(TcpStream::connect(address).await.is_err(), "it has ended");
}

/// The endpoint without a node.
async fn endpoint(dir: &Path) -> (Arc<Monitor>, Served) {
    let monitor = Arc::new(Monitor::default());
    let served = serve(&config(dir, &[]), &monitor).await.unwrap().unwrap();
    (monitor, served)
}

#[tokio::test]
async fn health_is_for_a_node_that_serves() {
    let dir = tempfile::tempdir().unwrap();
    let (monitor, served) = endpoint(dir.path()).await;
    for (phase, state, reason) in [
        (Phase::Opening, 1.0, "starting: the log directories"),
        (
            Phase::Forming,
            1.0,
            "starting: waiting for the metadata quorum",
        ),
        (Phase::Recovering, 2.0, "starting: 0 logs"),
        (
            Phase::Registering,
            1.0,
            "starting: waiting for the controllers",
        ),
        (Phase::HandingOver, 6.0, "stopping: what this broker leads"),
        (Phase::Stopping, 7.0, "stopping"),
    ] {
        monitor.enter(phase);
        let (status, body) = get(served.address, "/health").await;
        assert_eq!(status, 503, "{phase:?}");
        assert!(body.starts_with(reason), "{body}");
        let samples = scrape(served.address).await;
        assert_eq!(samples["klamm_broker_state"], state);
        assert!(samples["process_resident_memory_bytes"] > 0.0);
    }
    monitor.enter(Phase::Running);
    assert_eq!(get(served.address, "/health").await.0, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_waits_for_others_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let [a, b, ..] = crate::host::random::seed().to_le_bytes();
    // Nobody else has these addresses, so their ports are free.
    let [own, other] = [1, 2].map(|host| format!("127.{}.{b}.{host}", a.max(1)));
    let more = [
        format!("listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://{own}:9093"),
        format!("controller.quorum.voters=1@{own}:9093,2@{other}:9093"),
        format!("klamm.metrics.listener={own}:9404"),
    ];
    let more: Vec<&str> = more.iter().map(String::as_str).collect();
    let config = config(dir.path(), &more);
    let address: SocketAddr = format!("{own}:9404").parse().unwrap();
    let asked = async {
        while TcpStream::connect(address).await.is_err() {
            tokio::task::yield_now().await;
        }
        loop {
            let (status, reason) = get(address, "/health").await;
            assert_eq!(status, 503);
            if reason == "starting: waiting for the metadata quorum\n" {
                return;
            }
        }
    };
    tokio::select! {
        started = Broker::start(config) => panic!("it started: {}", started.is_ok()),
        asked = timeout(LONG, asked) => asked.expect("it says so in time"),
    }
}

#[tokio::test]
async fn a_port_that_is_taken_stops_the_start_and_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let (_monitor, served) = endpoint(dir.path()).await;
    let taken = format!("klamm.metrics.listener={}", served.address);
    let error = Broker::start(config(dir.path(), &[&taken])).await;
    let error = error.err().expect("the port is taken");
    assert!(matches!(error, StartError::Bind { .. }));
    let text = error.to_string();
    assert!(
        text.contains("klamm.metrics.listener=http://127.0.0.1:"),
        "{text}"
    );
    assert!(text.contains("another process has this port"), "{text}");
    let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().collect();
    assert!(left.is_empty(), "nothing was written: {left:?}");
}

#[tokio::test]
async fn what_is_no_get_of_a_known_path_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (_monitor, served) = endpoint(dir.path()).await;
    let long = format!("GET /health HTTP/1.1\r\nx: {}\r\n\r\n", "a".repeat(20_000));
    let many = format!("GET /health HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(500));
    for (request, status) in [
        ("GET /other HTTP/1.1\r\nHost: a\r\n\r\n", "404"),
        ("GET /metrics/ HTTP/1.1\r\nHost: a\r\n\r\n", "404"),
        (
            "POST /metrics HTTP/1.1\r\nContent-Length: 9999999999\r\n\r\n",
            "405",
        ),
        ("DELETE /health HTTP/1.0\r\n\r\n", "405"),
        ("GET /health\r\n\r\n", "400"),
        ("\0\0\0\x10\0\x12\0\0\0\0\0\x01\0\x02ab\0\0\0\0", "400"),
        ("GET /health HTTP/9.9\r\n\r\n", "400"),
        (&long, "431"),
        (&many, "431"),
    ] {
        let answer = answer(served.address, request).await;
        let first = answer.lines().next().unwrap_or_default();
        let short: String = request.chars().take(30).collect();
        assert_eq!(first.split(' ').nth(1), Some(status), "{short:?}: {first}");
    }
    let head = answer(served.address, "HEAD /metrics HTTP/1.0\r\n\r\n").await;
    assert!(
        head.ends_with("\r\n\r\n") && head.contains("version=0.0.4"),
        "{head}"
    );
    let whole = "GET http://klamm:9404/health?x=1 HTTP/1.1\r\nHost: klamm\r\n\r\n";
    assert!(
        answer(served.address, whole)
            .await
            .starts_with("HTTP/1.1 503")
    );
}

#[tokio::test(start_paused = true)]
async fn who_does_not_finish_a_request_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let (_monitor, served) = endpoint(dir.path()).await;
    for begun in ["", "GET /hea", "GET /health HTTP/1.1\r\nHost:"] {
        let started = tokio::time::Instant::now();
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        stream.write_all(begun.as_bytes()).await.unwrap();
        assert_eq!(read_all(&mut stream).await, "", "{begun}");
        assert_eq!(started.elapsed().as_secs(), 10);
    }
}

#[tokio::test]
async fn two_hundred_connections_do_not_keep_a_health_check_out() {
    let dir = tempfile::tempdir().unwrap();
    let (_monitor, served) = endpoint(dir.path()).await;
    let mut idle = Vec::new();
    for _ in 0..200 {
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        stream
            .write_all(b"GET /metrics HTTP/1.1\r\n")
            .await
            .unwrap();
        idle.push(stream);
    }
    assert_eq!(get(served.address, "/health").await.0, 503);
    // The eldest had to go; only the newest are still waited for.
    for stream in &mut idle[..168] {
        assert_eq!(read_all(stream).await, "");
    }
    let newest = idle.last_mut().unwrap();
    newest.write_all(b"Host: klamm\r\n\r\n").await.unwrap();
    assert!(read_all(newest).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_too_many_topics_none_is_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path(), &["klamm.metrics.topics.max=2"]);
    let (broker, ready) = Broker::start(config).await.unwrap();
    for (name, known) in [("a", 1), ("b", 2), ("c", 0)] {
        create(&broker, name).await;
        let samples = scrape(ready.metrics.unwrap()).await;
        let of_topics = samples.keys().filter(|name| name.contains("topic=\""));
        assert_eq!(of_topics.count(), known * 4, "with {name}");
    }
    broker.stop().await;
}

#[tokio::test]
async fn a_counted_connection_is_uncounted_when_it_ends() {
    let traffic = crate::server::Traffic::of("A".into());
    let open = [traffic.enter(), traffic.enter()];
    assert_eq!(traffic.open(), 2);
    drop(open);
    assert_eq!((traffic.open(), traffic.accepted.get()), (0, 2));
}
