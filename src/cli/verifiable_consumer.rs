//! `kafka-verifiable-consumer`: a member of a group that prints what happens to it as JSON lines.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;

use super::admin::{Admin, AdminError};
use super::argparse::{Command, option, switch};
use super::consume::{Consumer, ConsumerConfig, Incoming, Kept, Membership};
use super::exit::{Done, Exit};
use super::io::Io;
use super::passed_over::ClientKind;
use super::settings::Settings;

const TOOL: Command = Command {
    name: "verifiable-consumer",
    help: "Reads a topic as a member of a group and prints events as JSON.",
    arguments: &[
        option(&["--topic"], "TOPIC", "The topic to read.").required(),
        option(
            &["--group-protocol"],
            "GROUP-PROTOCOL",
            "How members of the group come to their partitions.",
        )
        .one_of(&["classic", "consumer", "CLASSIC", "CONSUMER"]),
        option(
            &["--group-remote-assignor"],
            "GROUP-REMOTE-ASSIGNOR",
            "The assignor of the coordinator, with consumer.",
        ),
        option(&["--group-id"], "GROUP-ID", "The group.").required(),
        option(
            &["--bootstrap-server"],
            "HOST1:PORT1[,HOST2:PORT2[...]]",
            "REQUIRED: Brokers.",
        )
        .required(),
        option(
            &["--group-instance-id"],
            "GROUP-INSTANCE-ID",
            "The id of a static member.",
        ),
        option(&["--max-messages"], "MAX-MESSAGES", "How many; -1: no end."),
        option(
            &["--session-timeout"],
            "TIMEOUT-MS",
            "The session time-out.",
        ),
        switch(&["--verbose"], "Print every record."),
        switch(&["--enable-autocommit"], "Commit offsets by time."),
        option(
            &["--close-timeout"],
            "CLOSE-TIMEOUT-MS",
            "Accepted; no effect.",
        ),
        option(
            &["--reset-policy"],
            "RESET-POLICY",
            "earliest, latest or none.",
        ),
        option(
            &["--assignment-strategy"],
            "ASSIGNMENT-STRATEGY",
            "Only range is known.",
        ),
        option(&["--consumer.config"], "CONFIG-FILE", "(DEPRECATED)"),
        option(
            &["--command-config"],
            "CONFIG-FILE",
            "A file of consumer configurations.",
        ),
    ],
    exclusive: &[],
    commands: &[],
};

pub async fn run(io: &mut Io, args: &[String]) -> Done {
    let given = TOOL.parse_or_exit(args)?;
    let mut settings = Settings::default();
    for name in ["--consumer.config", "--command-config"] {
        if let Some(file) = given.one(name) {
            settings.add_file(file)?;
        }
    }
    let servers = given.one("--bootstrap-server").unwrap_or_default();
    settings.set("bootstrap.servers", servers);
    settings.set(
        "auto.offset.reset",
        given.one("--reset-policy").unwrap_or("earliest"),
    );
    let commits = if given.has("--enable-autocommit") {
        "true"
    } else {
        "false"
    };
    settings.set("enable.auto.commit", commits);
    let protocol = given.one("--group-protocol").unwrap_or("classic");
    // The group says it where it gives the partitions.
    if let Some(timeout) = given.one("--session-timeout")
        && protocol.eq_ignore_ascii_case("classic")
    {
        settings.set("session.timeout.ms", timeout);
    }
    if let Some(id) = given.one("--group-instance-id") {
        settings.set("group.instance.id", id);
    }
    settings.set("group.protocol", protocol);
    if let Some(assignor) = given.one("--group-remote-assignor") {
        settings.set("group.remote.assignor", assignor);
    }
    let config = ConsumerConfig::read(&settings)?;
    let client = settings.client(ClientKind::Consumer, "consumer-1")?;
    let topics = vec![given.one("--topic").unwrap_or_default().to_owned()];
    let mut session = Session {
        commits_itself: config.auto_commit.is_none(),
        consumer: Consumer::new(Admin::new(client), config),
        member: Membership::new(given.one("--group-id").unwrap_or_default(), topics),
        left: given
            .one("--max-messages")
            .and_then(|m| m.parse().ok())
            .unwrap_or(-1),
        is_verbose: given.has("--verbose"),
    };
    session.event(io, "startup_complete", "");
    let (ended, is_stopped) = tokio::select! {
        ended = session.read(io) => (ended, false),
        _ = tokio::signal::ctrl_c() => (Ok(()), true),
    };
    if is_stopped {
        session.event(io, "shutdown_requested", "");
    }
    let partitions = session.partitions_json();
    let left = session.consumer.leave(&mut session.member).await;
    let partitions = format!(",\"partitions\":{partitions}");
    session.event(io, "partitions_revoked", &partitions);
    session.event(io, "shutdown_complete", "");
    if !is_stopped {
        // Kafka's tool says this from its exit, whatever led there.
        session.event(io, "shutdown_requested", "");
    }
    ended
        .and(left)
        .map_err(|error| Exit::error(error.exception()))
}

struct Session {
    consumer: Consumer,
    member: Membership,
    commits_itself: bool,
    /// Below 0: no end.
    left: i64,
    is_verbose: bool,
}

impl Session {
    async fn read(&mut self, io: &mut Io) -> Result<(), AdminError> {
        while self.left != 0 {
            let before = self.partitions_json();
            if self.consumer.keep_membership(&mut self.member).await? == Kept::Rebalanced {
                if before != "[]" {
                    self.event(
                        io,
                        "partitions_revoked",
                        &format!(",\"partitions\":{before}"),
                    );
                }
                let partitions = self.partitions_json();
                self.event(
                    io,
                    "partitions_assigned",
                    &format!(",\"partitions\":{partitions}"),
                );
            }
            let mut records = Vec::new();
            if let Some(first) = self.consumer.next(Duration::from_millis(500)).await? {
                records.push(first);
            }
            while self.consumer.has_ready() && self.left != records.len() as i64 {
                match self.consumer.next(Duration::ZERO).await? {
                    Some(record) => records.push(record),
                    None => break,
                }
            }
            if !records.is_empty() {
                self.show(io, &records);
                if self.commits_itself {
                    self.commit(io).await;
                }
                if self.left > 0 {
                    self.left -= records.len() as i64;
                }
            }
            io.flush();
        }
        Ok(())
    }

    fn show(&self, io: &mut Io, records: &[Incoming]) {
        let mut counts: BTreeMap<(&str, i32), (u64, i64, i64)> = BTreeMap::new();
        for record in records {
            let row = counts.entry((&record.topic, record.partition)).or_insert((
                0,
                record.offset,
                record.offset,
            ));
            *row = (row.0 + 1, row.1, record.offset);
            if self.is_verbose {
                let text = |field: &Option<bytes::Bytes>| {
                    json!(
                        field
                            .as_ref()
                            .map(|f| String::from_utf8_lossy(f).into_owned())
                    )
                };
                let fields = format!(
                    ",\"key\":{},\"value\":{},\"topic\":{},\"partition\":{},\"offset\":{}",
                    text(&record.key),
                    text(&record.value),
                    json!(record.topic),
                    record.partition,
                    record.offset
                );
                self.event(io, "record_data", &fields);
            }
        }
        let rows = counts.into_iter().map(|((topic, partition), (count, min, max))| {
            format!(
                "{{\"topic\":{},\"partition\":{partition},\"count\":{count},\"minOffset\":{min},\
                 \"maxOffset\":{max}}}",
                json!(topic)
            )
        });
        let rows: Vec<String> = rows.collect();
        let fields = format!(
            ",\"count\":{},\"partitions\":[{}]",
            records.len(),
            rows.join(",")
        );
        self.event(io, "records_consumed", &fields);
    }

    async fn commit(&mut self, io: &mut Io) {
        let rows = self
            .consumer
            .positions()
            .into_iter()
            .map(|((topic, partition), offset, _)| {
                let topic = json!(topic);
                format!("{{\"topic\":{topic},\"partition\":{partition},\"offset\":{offset}}}")
            });
        let rows: Vec<String> = rows.collect();
        let committed = self.consumer.commit(&mut self.member).await;
        let fields = format!(",\"offsets\":[{}]", rows.join(","));
        let end = match committed {
            Ok(()) => ",\"success\":true".to_owned(),
            Err(error) => format!(",\"success\":false,\"error\":{}", json!(error.message())),
        };
        self.event(io, "offsets_committed", &(fields + &end));
    }

    fn partitions_json(&self) -> String {
        let rows = self
            .consumer
            .partitions()
            .into_iter()
            .map(|(topic, partition)| {
                format!("{{\"topic\":{},\"partition\":{partition}}}", json!(topic))
            });
        format!("[{}]", rows.collect::<Vec<_>>().join(","))
    }

    fn event(&self, io: &mut Io, name: &str, fields: &str) {
        let now_ms = self.consumer.admin.client.now_ms();
        io.line(format!(
            "{{\"timestamp\":{now_ms},\"name\":\"{name}\"{fields}}}"
        ));
        io.flush();
    }
}
