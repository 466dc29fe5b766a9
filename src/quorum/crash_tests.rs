//! What was acknowledged survives `kill -9`: a child process submits, the test kills it.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::tests::{put, sled};
use super::*;
use crate::host::random;

const CHILD_DIR: &str = "KLAMM_TEST_CRASH_DIR";
const SUBMITTERS: u64 = 4;

/// Not a test by itself: what the child process runs. It tells the keys it finds, then sets new
/// ones and tells each that was acknowledged, until it is killed.
#[test]
fn child() {
    let Some(dir) = std::env::var_os(CHILD_DIR) else {
        return;
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let store = sled(Path::new(&dir));
        // Small enough that some crashes fall into snapshots and purges.
        let config = QuorumConfig {
            snapshot_entries: 15,
            ..QuorumConfig::single(BrokerId(1), None)
        };
        let quorum = Quorum::start(config, store, Arc::new(NoTransport))
            .await
            .unwrap();
        let image = quorum.image();
        let keys = image.configs(&crate::metadata::ConfigResource::topic("t"));
        for key in keys.into_iter().flat_map(|configs| configs.keys()) {
            eprintln!("found {key}");
        }
        eprintln!("ready");
        let first = keys.map_or(0, |configs| configs.len() as u64);
        let submitters = (0..SUBMITTERS).map(|submitter| {
            let quorum = quorum.clone();
            tasks::spawn(async move {
                for n in (first * 10 + submitter..).step_by(SUBMITTERS as usize) {
                    // Some are longer than one part.
                    put(
                        &quorum,
                        &format!("k{n}"),
                        &"v".repeat((n % 7000) as usize + 1),
                    )
                    .await
                    .unwrap();
                    // In one write: a kill must not leave the half of a key.
                    let line = format!("acked k{n}\n");
                    eprint!("{line}");
                }
            })
        });
        for submitter in submitters.collect::<Vec<_>>() {
            submitter.await.unwrap();
        }
    });
}

struct Run {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStderr>>,
}

impl Run {
    fn start(dir: &Path) -> Run {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "quorum::crash_tests::child", "--nocapture"])
            .env(CHILD_DIR, dir)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        Run { child, lines }
    }

    /// The keys of the lines `word <key>`, until `enough` or until the child is gone.
    fn keys(
        &mut self,
        word: &str,
        mut enough: impl FnMut(&str, usize) -> bool,
    ) -> BTreeSet<String> {
        let mut keys = BTreeSet::new();
        for line in self.lines.by_ref() {
            let line = line.unwrap();
            if let Some(key) = line.strip_prefix(word) {
                keys.insert(key.trim().to_owned());
            } else {
                assert!(line == "ready" || line.is_empty(), "the child says: {line}");
            }
            if enough(&line, keys.len()) {
                break;
            }
        }
        keys
    }
}

#[test]
fn what_was_acknowledged_survives_kill_minus_nine() {
    let dir = tempfile::tempdir().unwrap();
    let mut acked = BTreeSet::new();
    for round in 0..=20 {
        let mut run = Run::start(dir.path());
        let found = run.keys("found", |line, _| line == "ready");
        let lost: Vec<_> = acked.difference(&found).collect();
        assert!(lost.is_empty(), "round {round}: lost {lost:?}");
        let wanted = (random::seed() % 60) as usize;
        acked.extend(run.keys("acked", |_, count| count > wanted));
        run.child.kill().unwrap();
        // What it still said before it died was acknowledged too.
        acked.extend(run.keys("acked", |_, _| false));
        run.child.wait().unwrap();
    }
    assert!(acked.len() > 100, "{} acknowledged", acked.len());
}
