//! Scenarios as text: `scenarios/*.txt` hold commands and the machine's full answer to each.
//!
//! A line that starts with `>` is a command, `verb key=value ...`; what follows up to the next
//! empty line is what the machine did: records (`+`), replies (`#n` answers the n-th command).
//! `u7` stands for the seventh random id. With KLAMM_UPDATE_SCENARIOS set the files are rewritten
//! instead of compared; the diff is the review.

#![allow(clippy::disallowed_methods)] // A test may read files.

use std::fmt::Write;
use std::path::Path;

use super::parse::{Args, parse, topic_id};
use super::show::{shorten, show_record, show_reply};
use crate::machine::group::command::*;
use crate::machine::group::records::Record;
use crate::machine::group::*;
use crate::types::{ProducerId, TimestampMs};

struct World {
    groups: Groups,
    topics: TopicMap,
    now: Now,
    token: u64,
    log: Vec<(Record, ProducerId)>,
    markers: Vec<(usize, EndTransaction)>,
    config: GroupConfig,
}

impl World {
    fn new() -> Self {
        let config = GroupConfig::default();
        let mut topics = TopicMap::default();
        for (name, partitions) in [("foo", 3), ("bar", 2)] {
            let topic = Topic {
                id: topic_id(name),
                name: name.into(),
                partitions,
            };
            topics.topics.insert(name.into(), topic);
        }
        World {
            groups: Groups::new(config.clone()),
            topics,
            now: Now {
                wall: TimestampMs(1_000_000),
                tick: Tick(0),
            },
            token: 0,
            log: Vec::new(),
            markers: Vec::new(),
            config,
        }
    }

    fn run(&mut self, line: &str) -> String {
        let mut words = line.split_whitespace();
        let verb = words.next().unwrap();
        let args = Args(
            words
                .map(|w| w.split_once('=').unwrap_or((w, "")))
                .collect(),
        );
        match verb {
            "advance" => return self.advance(args.number("ms", 0) as u64),
            "reload" => return self.reload(),
            "topic" => {
                let name = args.or("name", "foo");
                let topic = Topic {
                    id: topic_id(&name),
                    name: name.as_str().into(),
                    partitions: args.number("partitions", 1) as i32,
                };
                match topic.partitions {
                    0 => self.topics.topics.remove(name.as_str()),
                    _ => self.topics.topics.insert(topic.name.clone(), topic),
                };
                self.topics.version += 1;
                let changed = Command::TopicsChanged(vec![name.as_str().into()]);
                return self.command(changed);
            }
            "config" => {
                self.configure(&args);
                let config = Box::new(self.config.clone());
                return self.command(Command::SetConfig(config));
            }
            _ => {}
        }
        let command = parse(verb, &args, self.token + 1);
        self.command(command)
    }

    fn configure(&mut self, args: &Args<'_>) {
        for (key, value) in &args.0 {
            let config = &mut self.config;
            let number = || value.parse::<i64>().unwrap();
            match *key {
                "group.max.size" => config.group_max_size = number() as usize,
                "group.initial.rebalance.delay.ms" => {
                    config.group_initial_rebalance_delay_ms = number() as i32;
                }
                "offsets.retention.ms" => config.offsets_retention_ms = number(),
                "group.consumer.max.size" => config.consumer_max_size = number() as usize,
                "assignment.interval.ms" => {
                    config.consumer_assignment_interval_ms = number() as i32;
                }
                "migration" => {
                    config.consumer_migration_policy = match *value {
                        "disabled" => MigrationPolicy::Disabled,
                        "upgrade" => MigrationPolicy::Upgrade,
                        "downgrade" => MigrationPolicy::Downgrade,
                        _ => MigrationPolicy::Bidirectional,
                    };
                }
                other => panic!("config {other}"),
            }
        }
    }

    fn command(&mut self, command: Command) -> String {
        self.token += 1;
        let output = self
            .groups
            .handle(self.now, Token(self.token), command, &self.topics);
        self.show(output)
    }

    fn advance(&mut self, ms: u64) -> String {
        let end = Tick(self.now.tick.0 + ms);
        let mut text = String::new();
        while let Some(at) = self.groups.deadline().filter(|at| *at <= end) {
            let at = at.max(self.now.tick);
            self.now.wall.0 += (at.0 - self.now.tick.0) as i64;
            self.now.tick = at;
            let output = self.groups.expire(self.now, &self.topics);
            text += &self.show(output);
        }
        self.now.wall.0 += (end.0 - self.now.tick.0) as i64;
        self.now.tick = end;
        text
    }

    /// The coordinator moves: what is left is what is in the log, as bytes.
    fn reload(&mut self) -> String {
        self.groups = Groups::new(self.config.clone());
        let mut markers = self.markers.iter().peekable();
        for (i, (record, producer_id)) in self.log.iter().enumerate() {
            while let Some((_, end)) = markers.next_if(|(at, _)| *at <= i) {
                self.groups
                    .apply_end_transaction(end.producer_id, end.commit);
            }
            let encoded = record.encode();
            let decoded = Record::decode(&encoded.key, encoded.value.as_deref());
            self.groups.apply(&decoded.unwrap().unwrap(), *producer_id);
        }
        for (_, end) in markers {
            self.groups
                .apply_end_transaction(end.producer_id, end.commit);
        }
        let output = self.groups.on_loaded(self.now, &self.topics);
        self.show(output)
    }

    fn show(&mut self, output: Output) -> String {
        let mut text = String::new();
        let producer_id = output.producer.map_or(ProducerId::NONE, |(id, _)| id);
        for record in output.records {
            writeln!(text, "+ {}", show_record(&record)).unwrap();
            self.log.push((record, producer_id));
        }
        if let Some(end) = output.end_transaction {
            writeln!(
                text,
                "+ marker pid={} commit={}",
                end.producer_id, end.commit
            )
            .unwrap();
            self.markers.push((self.log.len(), end));
        }
        for (token, reply) in output.replies {
            match reply {
                Reply::Done => {}
                reply => writeln!(text, "#{} {}", token.0, show_reply(&reply)).unwrap(),
            }
        }
        shorten(&text, self.token)
    }
}

fn run_file(path: &Path) {
    let text = std::fs::read_to_string(path).unwrap();
    let mut world = World::new();
    let mut actual = String::new();
    for line in text.lines() {
        match line.strip_prefix("> ") {
            Some(command) => {
                writeln!(actual, "> {command}").unwrap();
                writeln!(actual, "{}", world.run(command)).unwrap();
            }
            None if line.starts_with("//") => writeln!(actual, "{line}").unwrap(),
            None => {}
        }
    }
    if std::env::var_os("KLAMM_UPDATE_SCENARIOS").is_some() {
        std::fs::write(path, &actual).unwrap();
    } else {
        assert_eq!(actual, text, "{}", path.display());
    }
}

#[test]
fn scenarios() {
    let mut files: Vec<_> = std::fs::read_dir("src/machine/group/tests/scenarios")
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        run_file(&file);
    }
}
