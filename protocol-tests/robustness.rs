//! What clients may do to a broker: spoilt frames, a thousand connections, sockets closed by half,
//! answers that nobody reads, large requests that are announced and do not come, requests that take
//! long, requests for gigabytes. Afterwards, and meanwhile on another connection, the broker answers,
//! and its memory stays bounded.
//!
//! Each test has a broker of its own, because its memory is measured.

use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use bytes::Bytes;
use klamm::wire;

use crate::broker::Broker;
use crate::case::Case;
use crate::connection::{Connection, Received, api_key};
use crate::{directory, request, run};

const MIB: u64 = 1 << 20;

/// Another client is served within this time, whatever the others do.
const SERVED_WITHIN: Duration = Duration::from_secs(15);

/// `socket.request.max.bytes`: the largest frame that is waited for.
const LARGEST_FRAME: u32 = 104_857_600;

fn check_serves(broker: &Broker) {
    let begun = Instant::now();
    let mut connection = Connection::open(broker.address);
    connection.answer_limit(SERVED_WITHIN);
    let body = request::plain("DescribeCluster", 0, "{}");
    let answer = connection.ask("DescribeCluster", 0, &body);
    let elapsed = begun.elapsed();
    assert!(answer.is_ok(), "no answer after {elapsed:?}: {answer:?}");
}

fn check_memory(broker: &Broker, before: u64, growth_max: u64) {
    let now = broker.resident_bytes();
    let (grown, growth_max) = (now.saturating_sub(before) / MIB, growth_max / MIB);
    assert!(
        grown <= growth_max,
        "grew by {grown} MiB, {growth_max} are allowed"
    );
}

fn encode(api: &str, version: i16, body: &str) -> Bytes {
    let body = request::plain(api, version, body);
    let key = api_key(api).unwrap();
    wire::encode_request(key, version, 1, Some("robustness"), &body).unwrap()
}

/// The same numbers in every run.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

/// A frame with one to four things wrong.
fn spoil(frame: &[u8], draw: &mut Draw) -> Vec<u8> {
    const NUMBERS: [u32; 8] = [0, 1, 0x7f, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, 0xffff_ffff];
    let mut frame = frame.to_vec();
    for _ in 0..=draw.below(4) {
        let at = draw.below(frame.len());
        match draw.below(6) {
            0 => frame.truncate(at),
            1 => frame.insert(at, draw.next() as u8),
            2 if at < frame.len() => frame[at] = draw.next() as u8,
            3 if at + 4 <= frame.len() => {
                let number = NUMBERS[draw.below(NUMBERS.len())];
                frame[at..at + 4].copy_from_slice(&number.to_be_bytes());
            }
            4 => {
                let copied = frame[at..].to_vec();
                frame.extend(copied);
            }
            _ => frame.extend((0..draw.below(40)).map(|i| (i * 37) as u8)),
        }
    }
    frame
}

/// Two frames on a connection of their own; nothing is waited for but the first answer or the end.
fn send_spoilt(broker: &Broker, frames: &[Bytes], draw: &mut Draw) {
    const ANSWER_LIMIT: Duration = Duration::from_millis(20);
    let mut connection = Connection::open(broker.address);
    connection.answer_limit(ANSWER_LIMIT);
    for _ in 0..2 {
        let mut frame = spoil(&frames[draw.below(frames.len())], draw);
        // Topics of thousands of partitions are made when they are asked for.
        if frame.len() > 2 && frame[..2] == [0, 19] {
            frame[1] = 3;
        }
        match draw.below(20) {
            0 => connection.send_raw(&frame),
            _ => connection.send_frame(&frame),
        }
    }
    if draw.below(4) == 0 {
        connection.close_write();
    }
    connection.receive();
}

#[test]
fn spoilt_frames_harm_nobody() {
    const ROUNDS: usize = 3000;
    let broker = Broker::start();
    let cases = Case::read_all(&directory("cases"));
    let frames: Vec<Bytes> = cases
        .iter()
        .flat_map(|case| run::frames(&broker, case))
        .collect();
    assert!(frames.len() > 1000, "{} frames", frames.len());
    let mut draw = Draw(0x6b6c_616d_6d01);
    let before = broker.resident_bytes();
    for round in 0..ROUNDS {
        send_spoilt(&broker, &frames, &mut draw);
        if round % 100 == 0 {
            check_serves(&broker);
        }
    }
    check_serves(&broker);
    check_memory(&broker, before, 128 * MIB);
}

#[test]
fn a_thousand_connections_take_little() {
    let broker = Broker::start();
    let before = broker.resident_bytes();
    let ask = encode("ApiVersions", 0, "{}");
    let mut connections: Vec<Connection> = Vec::new();
    for number in 0..1000 {
        let mut connection = Connection::open(broker.address);
        connection.send_frame(&ask);
        assert!(
            matches!(connection.receive(), Received::Frame(_)),
            "connection {number}"
        );
        // Half of them in the middle of a small frame.
        if number % 2 == 0 {
            connection.send_raw(&[0, 0, 4, 0, 0, 3]);
        }
        connections.push(connection);
    }
    check_serves(&broker);
    check_memory(&broker, before, 48 * MIB);
    drop(connections);
    check_serves(&broker);
}

#[test]
fn sockets_closed_by_half_are_answered_and_ended() {
    let broker = Broker::start();
    let fetch = r#"{"max_wait_ms": 300, "min_bytes": 1, "topics": []}"#;
    let fetch = encode("Fetch", 12, fetch);
    let metadata = encode("Metadata", 1, r#"{"topics": []}"#);
    let mut connections: Vec<Connection> = Vec::new();
    for _ in 0..200 {
        let mut connection = Connection::open(broker.address);
        connection.send_frame(&fetch);
        connection.send_frame(&metadata);
        // The beginning of another frame is no request.
        connection.send_raw(&[0, 0, 1, 0, 0, 3]);
        connection.close_write();
        connections.push(connection);
    }
    check_serves(&broker);
    for connection in &mut connections {
        assert!(matches!(connection.receive(), Received::Frame(_)));
        assert!(matches!(connection.receive(), Received::Frame(_)));
        assert_eq!(connection.receive(), Received::Closed);
    }
}

/// A topic with eight batches of a million bytes.
fn large_topic(broker: &Broker) {
    let mut connection = Connection::open(broker.address);
    let create = request::plain("CreateTopics", 4, r#"{"topics": [{"name": "large"}]}"#);
    connection.ask("CreateTopics", 4, &create).unwrap();
    let body = r#"{"topic_data": [{"name": "large", "partition_data": [{"index": 0, "records":
        {"batch": {"records": [{"value": {"repeat": "x", "times": 1000000}}]}}}]}]}"#;
    let body = request::body_of("Produce", 9, body, 1_600_000_000_000).unwrap();
    for _ in 0..8 {
        let answer = connection.ask("Produce", 9, &body).unwrap();
        let lines = answer.lines();
        let error = lines
            .iter()
            .find(|(path, _)| path.ends_with("].error_code"));
        assert_eq!(error.map(|(_, code)| code.as_str()), Some("0"), "{answer}");
    }
}

#[test]
fn answers_that_nobody_reads_hold_back_their_client_only() {
    let mut broker = Broker::start();
    large_topic(&broker);
    let before = broker.resident_bytes();
    let fetch = r#"{"topics": [{"topic": "large", "partitions": [
        {"partition": 0, "partition_max_bytes": 50000000}]}]}"#;
    let fetch = encode("Fetch", 11, fetch);
    let mut slow = Vec::new();
    for _ in 0..50 {
        let mut stream = TcpStream::connect(broker.address).unwrap();
        stream.set_nonblocking(true).unwrap();
        let mut pipelined = Vec::new();
        for _ in 0..1000 {
            pipelined.extend((fetch.len() as u32).to_be_bytes());
            pipelined.extend(&fetch[..]);
        }
        // The broker stops reading at some point: what does not go out now never does.
        let _ = stream.write(&pipelined);
        slow.push(stream);
    }
    for _ in 0..20 {
        check_serves(&broker);
    }
    let mut reader = Connection::open(broker.address);
    reader.send_frame(&fetch);
    assert!(matches!(reader.receive(), Received::Frame(frame) if frame.len() > 8_000_000));
    check_memory(&broker, before, 64 * MIB);
    for stream in slow.drain(..25) {
        let _ = stream.shutdown(Shutdown::Both);
    }
    check_serves(&broker);
    assert!(
        broker.ends_within(Duration::from_secs(10)),
        "it waits for who does not read"
    );
}

#[test]
fn finished_answers_behind_one_that_waits_are_bounded() {
    let broker = Broker::start();
    large_topic(&broker);
    let before = broker.resident_bytes();
    let waits = r#"{"max_wait_ms": 600000, "min_bytes": 1, "topics": [{"topic": "large",
        "partitions": [{"partition": 0, "fetch_offset": 8}]}]}"#;
    let waits = encode("Fetch", 11, waits);
    // Twenty thousand partitions that are not there: an answer of about a megabyte each.
    let partitions: Vec<String> = (100..20_100)
        .map(|n| format!("{{\"partition\": {n}}}"))
        .collect();
    let large = format!(
        "{{\"topics\": [{{\"topic\": \"large\", \"partitions\": [{}]}}]}}",
        partitions.join(",")
    );
    let large = encode("Fetch", 11, &large);
    let mut waiting = Vec::new();
    for _ in 0..4 {
        let mut connection = Connection::open(broker.address);
        connection.send_frame(&waits);
        let sender = connection.sender();
        let large = large.clone();
        // It is stopped by the broker, and ends with the connection.
        let sending = std::thread::spawn(move || {
            let mut sender = sender;
            let mut sent = 0;
            while sent < 60 && send_frame(&mut sender, &large).is_ok() {
                sent += 1;
            }
            sent
        });
        waiting.push((connection, sending));
    }
    for _ in 0..20 {
        check_serves(&broker);
    }
    let deadline = Instant::now() + Duration::from_secs(3);
    while Instant::now() < deadline {
        check_memory(&broker, before, 96 * MIB);
        check_serves(&broker);
    }
    for (connection, sending) in waiting {
        connection.close();
        assert!(sending.join().unwrap() < 60, "all was read");
    }
    check_serves(&broker);
}

fn send_frame(stream: &mut TcpStream, frame: &[u8]) -> std::io::Result<()> {
    stream.write_all(&(frame.len() as u32).to_be_bytes())?;
    stream.write_all(frame)
}

#[test]
fn what_is_announced_and_not_sent_takes_nothing_from_others() {
    let broker = Broker::start();
    let before = broker.resident_bytes();
    let mut announced = Vec::new();
    for number in 0..300u32 {
        let mut connection = Connection::open(broker.address);
        connection.send_raw(&LARGEST_FRAME.to_be_bytes());
        // Some go a little way.
        connection.send_raw(&vec![0; (number % 7) as usize * 10_000]);
        announced.push(connection);
    }
    // Requests that are large enough to need a part of the common memory.
    large_topic(&broker);
    check_serves(&broker);
    check_memory(&broker, before, 96 * MIB);
}

#[test]
fn large_requests_are_decoded_a_few_at_a_time() {
    let broker = Broker::start();
    let before = broker.resident_bytes();
    // The offsets of a group, for very many topics with the shortest of names.
    let topics = vec![r#"{"name": "a", "partition_indexes": [0]}"#; 80_000].join(", ");
    let body = format!(r#"{{"group_id": "g", "topics": [{topics}]}}"#);
    let frame = encode("OffsetFetch", 1, &body);
    std::thread::scope(|scope| {
        for _ in 0..30 {
            scope.spawn(|| {
                let mut connection = Connection::open(broker.address);
                connection.send_raw(&(frame.len() as u32).to_be_bytes());
                connection.send_raw(&frame);
                connection.answer_limit(Duration::from_secs(120));
                assert!(matches!(connection.receive(), Received::Frame(_)));
            });
        }
    });
    check_serves(&broker);
    let grown = (broker.resident_bytes_max() - before) / MIB;
    assert!(grown <= 256, "grew by {grown} MiB");
}

#[test]
fn large_requests_that_stop_half_way_keep_nobody_waiting() {
    let broker = Broker::start();
    let before = broker.resident_bytes();
    let mut stopped = Vec::new();
    for _ in 0..4 {
        let mut connection = Connection::open(broker.address);
        connection.send_raw(&LARGEST_FRAME.to_be_bytes());
        connection.send_raw(&vec![0; 4 << 20]);
        stopped.push(connection);
    }
    // A medium request, and one that needs the memory which the others have announced.
    for bytes in [200_000, 5_000_000] {
        let mut connection = Connection::open(broker.address);
        connection.answer_limit(SERVED_WITHIN);
        let body = format!(
            "{{\"topic_data\": [{{\"name\": \"missing\", \"partition_data\": [{{\"index\": 0,
            \"records\": {{\"batch\": {{\"records\": [{{\"value\": {{\"repeat\": \"x\",
            \"times\": {bytes}}}}}]}}}}}}]}}]}}"
        );
        let body = request::body_of("Produce", 9, &body, 1_600_000_000_000).unwrap();
        let answer = connection.ask("Produce", 9, &body);
        assert!(answer.is_ok(), "no answer to {bytes} bytes: {answer:?}");
    }
    check_memory(&broker, before, 96 * MIB);
}

/// Sends `frame` on more connections than the broker has workers, and asks on another one until all
/// are answered. Nobody may wait for them.
fn check_others_do_not_wait(broker: &Broker, name: &str, frame: &[u8]) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let begun = Instant::now();
    let send = |_| {
        let (mut long, frame) = (Connection::open(broker.address), frame.to_vec());
        long.answer_limit(Duration::from_secs(120));
        std::thread::spawn(move || {
            long.send_frame(&frame);
            long.receive()
        })
    };
    let answered: Vec<_> = (0..2 * cores).map(send).collect();
    let ask = request::plain("ApiVersions", 0, "{}");
    let mut other = Connection::open(broker.address);
    let mut longest = Duration::ZERO;
    while answered.iter().any(|answered| !answered.is_finished()) {
        let asked = Instant::now();
        other.ask("ApiVersions", 0, &ask).unwrap();
        longest = longest.max(asked.elapsed());
    }
    let total = begun.elapsed();
    for answered in answered {
        let answer = answered.join().unwrap();
        assert!(matches!(answer, Received::Frame(_)), "{name}: {answer:?}");
    }
    assert!(
        longest < total / 3,
        "{name} took {total:?}, and another request waited {longest:?}"
    );
}

#[test]
fn a_request_that_takes_long_keeps_nobody_waiting() {
    let broker = Broker::start();
    let topics = |topic: fn(usize) -> String, count: usize| {
        let topics: Vec<String> = (0..count).map(topic).collect();
        topics.join(",")
    };
    // An API whose work is long, and one whose work is short unless it is asked for much.
    let new = topics(|n| format!("{{\"name\": \"t{n}\"}}"), 40_000);
    let create = format!("{{\"topics\": [{new}], \"validate_only\": true}}");
    let create = encode("CreateTopics", 4, &create);
    check_others_do_not_wait(&broker, "CreateTopics", &create);
    let asked = topics(
        |n| format!("{{\"name\": \"t{n}\", \"partitions\": [{{\"partition_index\": 0}}]}}"),
        100_000,
    );
    let list = encode("ListOffsets", 4, &format!("{{\"topics\": [{asked}]}}"));
    check_others_do_not_wait(&broker, "ListOffsets", &list);
}

#[test]
fn an_answer_has_a_limit_however_often_a_resource_is_named() {
    let broker = Broker::start();
    let before = broker.resident_bytes();
    for (version, count) in [(1, 30_000), (4, 30_000)] {
        let resource = r#"{"resource_type": 4, "resource_name": "1"}"#;
        let resources = vec![resource; count].join(",");
        let body = format!("{{\"resources\": [{resources}]}}");
        let mut connection = Connection::open(broker.address);
        connection.answer_limit(SERVED_WITHIN);
        connection.send_frame(&encode("DescribeConfigs", version, &body));
        let Received::Frame(answer) = connection.receive() else {
            panic!("no answer");
        };
        assert!(answer.len() > 60 << 20 && answer.len() < 100 << 20);
        let refused = b"The answer has no room for this resource";
        assert!(answer.windows(refused.len()).any(|bytes| bytes == refused));
        check_memory(&broker, before, 96 * MIB);
    }
}
