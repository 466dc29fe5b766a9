//! A scenario is a transcript: a command, `->`, what comes back. Numbers are Kafka's error codes.
//!
//! ```text
//! init ID [timeout=MS] [as PID/EPOCH]        PID/EPOCH or a code
//! add ID PID/EPOCH v3|v5 [PARTITION ...]     a code
//! verify ID PID/EPOCH PARTITION ...          PARTITION:code ...
//! end ID PID/EPOCH commit|abort v4|v5        PID/EPOCH (v5) or a code
//! markers ID                                 all are written; the state after
//! describe ID                                state timeout start PID/EPOCH partitions, or a code
//! list [state=NAME ...] [pid=N] [longer=MS] [id=NAME]    ID:PID:state ...
//! tick MS                                    how many ids the coordinator acts on
//! burn ID                                    take epochs until none is left
//! hold | release                             leave the next records under way | commit them
//! reload | version N                         another coordinator | the cluster's feature level
//! ```
//! An empty id is written as `''`.

use super::*;

fn code(error: ErrorCode) -> String {
    error.code().to_string()
}

fn show(producer: ProducerIdAndEpoch) -> String {
    format!("{}/{}", producer.producer_id, producer.producer_epoch)
}

fn parse_producer(text: &str) -> ProducerIdAndEpoch {
    let (id, epoch) = text.split_once('/').expect("PID/EPOCH");
    producer(id.parse().unwrap(), epoch.parse().unwrap())
}

fn parse_id(text: &str) -> TransactionalId {
    text.trim_matches('\'').into()
}

fn client_version(text: &str, of: fn(i16) -> TransactionVersion) -> TransactionVersion {
    of(text.strip_prefix('v').expect("vN").parse().unwrap())
}

fn init(coordinator: &mut Coordinator, words: &[&str]) -> String {
    let mut timeout_ms = 60_000;
    let mut expected = None;
    for word in &words[1..] {
        match word.split_once('=') {
            Some(("timeout", ms)) => timeout_ms = ms.parse().unwrap(),
            _ if *word == "as" => {}
            _ => expected = Some(parse_producer(word)),
        }
    }
    let reply = coordinator.run(&Command::InitProducerId(InitProducerId {
        transactional_id: parse_id(words[0]),
        transaction_timeout_ms: timeout_ms,
        expected,
    }));
    match reply {
        Reply::InitProducerId(Ok(producer)) => show(producer),
        Reply::InitProducerId(Err(error)) => code(error),
        other => panic!("{other:?}"),
    }
}

fn add(coordinator: &mut Coordinator, words: &[&str]) -> String {
    let reply = coordinator.run(&Command::AddPartitions(AddPartitions {
        transactional_id: parse_id(words[0]),
        producer: parse_producer(words[1]),
        client_transaction_version: client_version(words[2], TransactionVersion::of_add_partitions),
        partitions: partitions(words[3..].iter().copied()),
    }));
    match reply {
        Reply::AddPartitions(Ok(())) => code(ErrorCode::None),
        Reply::AddPartitions(Err(error)) => code(error),
        other => panic!("{other:?}"),
    }
}

fn verify(coordinator: &Coordinator, words: &[&str]) -> String {
    let errors = coordinator.machine.verify(&VerifyPartitions {
        transactional_id: parse_id(words[0]),
        producer: parse_producer(words[1]),
        partitions: partitions(words[2..].iter().copied()),
    });
    let shown: Vec<_> = errors
        .iter()
        .map(|(p, e)| format!("{p}:{}", e.code()))
        .collect();
    shown.join(" ")
}

fn end(coordinator: &mut Coordinator, words: &[&str]) -> String {
    let version = client_version(words[3], TransactionVersion::of_end_txn);
    let reply = coordinator.run(&Command::EndTxn(EndTxn {
        transactional_id: parse_id(words[0]),
        producer: parse_producer(words[1]),
        result: match words[2] {
            "commit" => TransactionResult::Commit,
            _ => TransactionResult::Abort,
        },
        client_transaction_version: version,
    }));
    match reply {
        Reply::EndTxn(Ok(producer)) if version.bumps_epoch() => show(producer),
        Reply::EndTxn(Ok(_)) => code(ErrorCode::None),
        Reply::EndTxn(Err(error)) => code(error),
        other => panic!("{other:?}"),
    }
}

fn describe(coordinator: &Coordinator, id: &str) -> String {
    let metadata = match coordinator.machine.describe(&parse_id(id)) {
        Ok(metadata) => metadata,
        Err(error) => return code(error),
    };
    let mut shown = vec![
        metadata.state.name().to_owned(),
        metadata.transaction_timeout_ms.to_string(),
        metadata.start_timestamp.to_string(),
        show(metadata.producer()),
    ];
    shown.extend(metadata.partitions.iter().map(|p| p.to_string()));
    shown.join(" ")
}

fn list(coordinator: &Coordinator, words: &[&str]) -> String {
    let mut filters = TransactionFilters::default();
    let mut name = String::new();
    for word in words {
        match word.split_once('=').expect("key=value") {
            ("state", state) => drop(filters.states.insert(state)),
            ("pid", id) => drop(filters.producer_ids.insert(ProducerId(id.parse().unwrap()))),
            ("longer", ms) => filters.duration_ms = Some(ms.parse().unwrap()),
            ("id", id) => name = id.to_owned(),
            other => panic!("{other:?}"),
        }
    }
    let matches = |id: &str| id == name;
    if !name.is_empty() {
        filters.transactional_id = Some(&matches);
    }
    let listed = coordinator.machine.list(coordinator.now, &filters);
    let shown: Vec<_> = listed
        .iter()
        .map(|l| {
            format!(
                "{}:{}:{}",
                l.transactional_id,
                l.producer_id,
                l.state.name()
            )
        })
        .collect();
    shown.join(" ")
}

/// Takes epochs, as a client that goes on after errors, until none is left to give.
fn burn(coordinator: &mut Coordinator, id: &str) -> String {
    let mut present = init(coordinator, &[id]);
    while !present.ends_with("/32766") {
        present = init(coordinator, &[id, "as", &present.clone()]);
    }
    present
}

fn step(coordinator: &mut Coordinator, command: &str) -> String {
    let words: Vec<&str> = command.split_whitespace().collect();
    match words[0] {
        "init" => init(coordinator, &words[1..]),
        "add" => add(coordinator, &words[1..]),
        "verify" => verify(coordinator, &words[1..]),
        "end" => end(coordinator, &words[1..]),
        "describe" => describe(coordinator, words[1]),
        "list" => list(coordinator, &words[1..]),
        "burn" => burn(coordinator, words[1]),
        "markers" => {
            coordinator.write_markers(words[1]);
            describe(coordinator, words[1])
                .split(' ')
                .next()
                .unwrap()
                .to_owned()
        }
        "tick" => {
            coordinator.now.0 += words[1].parse::<i64>().unwrap();
            coordinator.expire().to_string()
        }
        "hold" => {
            coordinator.hold = true;
            String::new()
        }
        "release" => {
            let held = std::mem::take(&mut coordinator.held);
            coordinator.commit(held);
            String::new()
        }
        "reload" => {
            coordinator.reload();
            String::new()
        }
        "version" => {
            let level = TransactionVersion::from_level(words[1].parse().unwrap()).unwrap();
            coordinator.machine.set_config(config(level));
            String::new()
        }
        other => panic!("unknown command {other}"),
    }
}

/// Runs a transcript and compares what comes back with what it says.
pub fn check(name: &str, version: TransactionVersion, transcript: &str) {
    let mut coordinator = Coordinator::new(version);
    let mut actual = String::new();
    let mut expected = String::new();
    for line in transcript.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (command, wanted) = line.split_once("->").unwrap_or((line, ""));
        let command = command.trim();
        coordinator.now.0 += 1;
        let got = step(&mut coordinator, command);
        actual += &format!("{command} -> {got}\n");
        expected += &format!("{command} -> {}\n", wanted.trim());
    }
    assert_eq!(actual, expected, "scenario {name}");
}
