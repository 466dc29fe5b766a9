//! Klamm against Apache Kafka, answer by answer: every case of `cases/` is sent to a broker over a
//! plain socket, and what comes back is held against what Kafka 4.4 answered (`recorded/`).
//!
//! ```text
//! cargo test --test protocol                               starts target/debug/klamm and tests it
//! KLAMM_ADDRESS=host:port cargo test --test protocol       tests a broker that runs already
//! KLAMM_RECORD=host:port cargo test --test protocol        writes recorded/ anew from a Kafka
//! KLAMM_CASES=fetch/ ...                                   only the cases whose name has this
//! ```
//!
//! protocol-tests/README.md says how a case is written. With `KLAMM_ADDRESS` set to a Kafka the
//! run checks the recordings themselves (differences.txt does not count then: `KLAMM_IS_KAFKA=1`).

#![allow(clippy::disallowed_methods)] // A test may read files and clocks.

mod batch;
mod broker;
mod case;
mod compare;
mod connection;
mod placeholders;
mod recording;
mod request;
mod robustness;
mod run;
mod sweep;
mod variables;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use broker::Broker;
use case::Case;
use compare::Differences;
use recording::Recording;

/// Cases run side by side; each waits for its broker most of the time.
const THREADS: usize = 8;

fn directory(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("protocol-tests")
        .join(name)
}

fn cases() -> Vec<Case> {
    let wanted = std::env::var("KLAMM_CASES").unwrap_or_default();
    let mut cases = Case::read_all(&directory("cases"));
    cases.retain(|case| case.name.contains(&wanted));
    assert!(!cases.is_empty(), "no case has {wanted:?} in its name");
    cases
}

/// Runs the cases side by side; the answers of each, or why it could not be run.
fn run_all(broker: &Broker, cases: &[Case]) -> BTreeMap<String, Result<Recording, String>> {
    let results = Mutex::new(BTreeMap::new());
    let next = Mutex::new(cases.iter());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let Some(case) = next.lock().unwrap().next() else {
                        return;
                    };
                    let result = run::case(broker, case);
                    results.lock().unwrap().insert(case.name.clone(), result);
                }
            });
        }
    });
    results.into_inner().unwrap()
}

fn record(address: &str) {
    let broker = Broker::at(address);
    let mut failed = Vec::new();
    for (name, result) in run_all(&broker, &cases()) {
        match result {
            Ok(recording) => recording.write(&directory("recorded"), &name),
            Err(error) => failed.push(format!("{name}: {error}")),
        }
    }
    assert!(failed.is_empty(), "not recorded:\n{}", failed.join("\n"));
}

#[test]
fn answers_are_those_of_kafka() {
    if let Ok(address) = std::env::var("KLAMM_RECORD") {
        return record(&address);
    }
    let broker = match std::env::var("KLAMM_ADDRESS") {
        Ok(address) => Broker::at(&address),
        Err(_) => Broker::start(),
    };
    let listed = match std::env::var("KLAMM_IS_KAFKA") {
        Ok(_) => Differences::default(),
        Err(_) => Differences::read(&directory("differences.txt")),
    };
    let cases = cases();
    let mut results = run_all(&broker, &cases);
    if std::env::var("KLAMM_IS_KAFKA").is_ok() {
        ask_again(&broker.address.to_string(), &cases, &listed, &mut results);
    }
    let mut report = compare::Report::new(&listed);
    for (name, result) in &results {
        report.add_result(name, result);
    }
    report.finish();
}

/// Some answers of a Kafka depend on its own threads (how far its coordinator has read the
/// metadata, which requests it verifies together), so a case that differs is run again, alone, and
/// only what differs every time counts. Klamm gets no second chance.
fn ask_again(
    address: &str,
    cases: &[Case],
    listed: &Differences,
    results: &mut BTreeMap<String, Result<Recording, String>>,
) {
    for _ in 0..3 {
        // A run of its own, with names of its own.
        let broker = Broker::at(address);
        for case in cases {
            let mut report = compare::Report::new(listed);
            report.add_result(&case.name, &results[&case.name]);
            if let Some(first) = report.first_failure() {
                println!("asked again: {first}");
                results.insert(case.name.clone(), run::case(&broker, case));
            }
        }
    }
}

/// Every API and version that a single node serves is in some case's `versions`.
#[test]
fn every_version_is_covered() {
    const SERVED: &[(&str, i16, i16)] = &[
        ("Produce", 3, 13),
        ("Fetch", 4, 18),
        ("ListOffsets", 1, 11),
        ("Metadata", 0, 13),
        ("OffsetForLeaderEpoch", 2, 4),
        ("CreateTopics", 2, 7),
        ("DeleteTopics", 1, 6),
        ("CreatePartitions", 0, 3),
        ("DeleteRecords", 0, 2),
        ("DescribeConfigs", 1, 4),
        ("AlterConfigs", 0, 2),
        ("IncrementalAlterConfigs", 0, 1),
        ("DescribeCluster", 0, 2),
        ("DescribeTopicPartitions", 0, 0),
        ("DescribeLogDirs", 1, 5),
        ("InitProducerId", 0, 5),
        ("ListConfigResources", 0, 1),
        ("ApiVersions", 0, 5),
        ("SaslHandshake", 0, 1),
        ("SaslAuthenticate", 0, 2),
    ];
    let cases = Case::read_all(&directory("cases"));
    let ranges = || cases.iter().filter_map(|case| case.versions.as_ref());
    for (api, low, high) in SERVED {
        for version in *low..=*high {
            let covered = ranges().any(|(a, range)| a == api && range.contains(&version));
            assert!(covered, "{api} v{version} is in no case");
        }
    }
}

/// Needs no broker: the frames of the sweeps are closed or answered as `wire::conform` refuses or
/// passes them.
#[test]
fn conform_refuses_what_kafka_closes() {
    let mut compared = 0;
    for case in Case::read_all(&directory("cases")) {
        let conform = run::conform_sweeps(&case).unwrap();
        let recorded = Recording::read(&directory("recorded"), &case.name).unwrap();
        for (label, versions) in conform.steps {
            let (_, recorded) = recorded.steps.iter().find(|(l, _)| *l == label).unwrap();
            for (version, mut outcomes) in versions {
                let answers = "answers".to_owned();
                outcomes.push((sweep::AFTERWARDS.to_owned(), answers));
                assert_eq!(
                    outcomes, recorded[&version],
                    "{} {label} {version:?}",
                    case.name
                );
                compared += 1;
            }
        }
    }
    assert!(compared > 100, "{compared} sweeps");
}
