//! `kafka-metadata-quorum`: who leads the metadata quorum, how far its members are, and changes of
//! its members.

use kafka_protocol::messages::describe_quorum_request::{PartitionData, TopicData};
use kafka_protocol::messages::describe_quorum_response::{DescribeQuorumResponse, ReplicaState};
use kafka_protocol::messages::{DescribeQuorumRequest, RemoveRaftVoterRequest, TopicName};

use crate::types::{base64_uuid, parse_base64_uuid};

use super::admin::{Admin, AdminError, Answer, check, text};
use super::argparse::{Command, Given, option, switch};
use super::connect::{CONFIG, CONTROLLER, SERVER, admin, table};
use super::exit::{Done, Exit};
use super::io::Io;

const TOOL: Command = Command {
    name: "kafka-metadata-quorum",
    help: "Describes and changes the quorum of controllers.",
    arguments: &[CONFIG, SERVER, CONTROLLER],
    exclusive: &[(&["--bootstrap-server", "--bootstrap-controller"], true)],
    commands: &[
        Command {
            name: "describe",
            help: "Describe the quorum.",
            arguments: &[
                switch(&["--status"], "Leader, epoch, high watermark, lag."),
                switch(&["--replication"], "How far each member is."),
                switch(&["--human-readable"], "Times as ages."),
            ],
            exclusive: &[(&["--status", "--replication"], false)],
            commands: &[],
        },
        Command {
            name: "add-controller",
            help: "Add a controller to the quorum.",
            arguments: &[switch(&["--dry-run"], "Print what would be done.")],
            exclusive: &[],
            commands: &[],
        },
        Command {
            name: "remove-controller",
            help: "Remove a controller from the quorum.",
            arguments: &[
                option(&["--controller-id", "-i"], "CONTROLLER_ID", "Its id.").required(),
                option(
                    &["--controller-directory-id", "-d"],
                    "CONTROLLER_DIRECTORY_ID",
                    "The id of its directory.",
                )
                .required(),
                switch(&["--dry-run"], "Print what would be done."),
                switch(&["--unregister"], "Remove its registration as well."),
            ],
            exclusive: &[],
            commands: &[],
        },
    ],
};

pub async fn run(io: &mut Io, args: &[String]) -> Done {
    let given = TOOL.parse_or_exit(args)?;
    match given.command {
        Some("describe") => describe(io, &given).await,
        Some("remove-controller") => remove(io, &given).await,
        _ if !given.has("--command-config") => Err(Exit::error(
            "You must supply the configuration file of the controller you are adding when using \
             add-controller.",
        )),
        _ => Err(Exit::error("klamm: add-controller is not supported yet")),
    }
}

fn failed(error: AdminError) -> Exit {
    let text = error.exception();
    Exit::error(format!(
        "{text}\njava.util.concurrent.ExecutionException: {text}\n"
    ))
}

async fn quorum(admin: &Admin) -> Answer<DescribeQuorumResponse> {
    let partition = PartitionData::default().with_partition_index(0);
    let topic = TopicData::default()
        .with_topic_name(TopicName(text("__cluster_metadata")))
        .with_partitions(vec![partition]);
    let request = DescribeQuorumRequest::default().with_topics(vec![topic]);
    let answer = admin.any("describeMetadataQuorum", &request).await?;
    check(answer.error_code, answer.error_message.as_ref())?;
    let partitions = answer.topics.iter().flat_map(|topic| &topic.partitions);
    for partition in partitions {
        check(partition.error_code, partition.error_message.as_ref())?;
    }
    Ok(answer)
}

async fn describe(io: &mut Io, given: &Given) -> Done {
    if !given.has("--status") && !given.has("--replication") {
        let text = "One of --status or --replication must be specified with describe sub-command";
        return Err(Exit::error(text));
    }
    if given.has("--status") && given.has("--human-readable") {
        let text = "The option --human-readable is only supported along with --replication";
        return Err(Exit::error(text));
    }
    let admin = admin(given)?;
    let answer = quorum(&admin).await.map_err(failed)?;
    let mut partitions = answer.topics.iter().flat_map(|topic| &topic.partitions);
    let Some(partition) = partitions.next() else {
        return Err(Exit::error(
            "The answer names no partition of the metadata topic",
        ));
    };
    if given.has("--replication") {
        let now_ms = admin.client.now_ms();
        let leader = partition.leader_id.0;
        let ends = partition
            .current_voters
            .iter()
            .filter(|v| v.replica_id.0 == leader);
        let end = ends.map(|v| v.log_end_offset).next().unwrap_or(0);
        let age = given.has("--human-readable").then_some(now_ms);
        let mut rows = Vec::new();
        let voters = &partition.current_voters;
        let row = |state: &ReplicaState, status: &str| replication_row(state, end, age, status);
        rows.extend(
            voters
                .iter()
                .filter(|v| v.replica_id.0 == leader)
                .map(|v| row(v, "Leader")),
        );
        rows.extend(
            voters
                .iter()
                .filter(|v| v.replica_id.0 != leader)
                .map(|v| row(v, "Follower")),
        );
        rows.extend(partition.observers.iter().map(|o| row(o, "Observer")));
        let header = [
            "NodeId",
            "DirectoryId",
            "LogEndOffset",
            "Lag",
            "LastFetchTimestamp",
            "LastCaughtUpTimestamp",
            "Status",
        ];
        io.line(table(&header, &rows, "\t"));
        return Ok(());
    }
    let cluster_id = admin
        .describe_cluster(false)
        .await
        .map_err(failed)?
        .cluster_id;
    print_status(io, &cluster_id, &answer);
    Ok(())
}

fn replication_row(
    state: &ReplicaState,
    end: i64,
    age_at: Option<i64>,
    status: &str,
) -> Vec<String> {
    let time = |timestamp: i64| match age_at {
        _ if timestamp < 0 => timestamp.to_string(),
        Some(now_ms) => format!("{} ms ago", now_ms - timestamp),
        None => timestamp.to_string(),
    };
    vec![
        state.replica_id.0.to_string(),
        base64_uuid(state.replica_directory_id),
        state.log_end_offset.to_string(),
        (end - state.log_end_offset).to_string(),
        time(state.last_fetch_timestamp),
        time(state.last_caught_up_timestamp),
        status.to_owned(),
    ]
}

fn print_status(io: &mut Io, cluster_id: &str, answer: &DescribeQuorumResponse) {
    let Some(partition) = answer
        .topics
        .iter()
        .flat_map(|topic| &topic.partitions)
        .next()
    else {
        return;
    };
    let leader = partition.leader_id.0;
    let voters = &partition.current_voters;
    let of_leader = voters.iter().find(|voter| voter.replica_id.0 == leader);
    let end = of_leader.map_or(0, |voter| voter.log_end_offset);
    let caught_up = of_leader.map_or(-1, |voter| voter.last_caught_up_timestamp);
    let followers = || voters.iter().filter(|v| v.replica_id.0 != leader);
    let lag = followers()
        .map(|v| end - v.log_end_offset)
        .max()
        .unwrap_or(0);
    let lag_ms = followers()
        .map(|v| match v.last_caught_up_timestamp {
            -1 => -1,
            time => (caught_up - time).max(0),
        })
        .max()
        .unwrap_or(0);
    let show = |states: &[ReplicaState]| {
        let items: Vec<String> = states.iter().map(|s| node_json(s, answer)).collect();
        format!("[{}]", items.join(", "))
    };
    io.line(format!("ClusterId:              {cluster_id}"));
    io.line(format!("LeaderId:               {leader}"));
    io.line(format!(
        "LeaderEpoch:            {}",
        partition.leader_epoch
    ));
    io.line(format!(
        "HighWatermark:          {}",
        partition.high_watermark
    ));
    io.line(format!("MaxFollowerLag:         {lag}"));
    io.line(format!("MaxFollowerLagTimeMs:   {lag_ms}"));
    io.line(format!("CurrentVoters:          {}", show(voters)));
    io.line(format!(
        "CurrentObservers:       {}",
        show(&partition.observers)
    ));
}

fn node_json(state: &ReplicaState, answer: &DescribeQuorumResponse) -> String {
    let id = state.replica_id.0;
    let directory = match state.replica_directory_id.is_nil() {
        true => "null".to_owned(),
        false => format!("\"{}\"", base64_uuid(state.replica_directory_id)),
    };
    let node = answer.nodes.iter().find(|node| node.node_id.0 == id);
    let endpoints = node.map(|node| {
        let items = node.listeners.iter().map(|listener| {
            format!(
                "\"{}://{}:{}\"",
                listener.name.as_str(),
                listener.host.as_str(),
                listener.port
            )
        });
        format!(
            ", \"endpoints\": [{}]",
            items.collect::<Vec<_>>().join(", ")
        )
    });
    let endpoints = endpoints.unwrap_or_default();
    format!("{{\"id\": {id}, \"directoryId\": {directory}{endpoints}}}")
}

async fn remove(io: &mut Io, given: &Given) -> Done {
    let text_of = |name| given.one(name).unwrap_or_default();
    let id: i32 = text_of("--controller-id").parse().unwrap_or(-1);
    if id < 0 {
        return Err(Exit::error(format!(
            "Invalid negative --controller-id: {id}"
        )));
    }
    let directory = text_of("--controller-directory-id");
    let Some(uuid) = parse_base64_uuid(directory) else {
        return Err(Exit::error(format!(
            "Failed to parse --controller-directory-id: {directory}"
        )));
    };
    let what = format!("KRaft controller {id} with directory id {directory}");
    if given.has("--dry-run") {
        io.line(format!("DRY RUN of removing  {what}."));
        return Ok(());
    }
    let request = RemoveRaftVoterRequest::default()
        .with_cluster_id(None)
        .with_voter_id(id)
        .with_voter_directory_id(uuid);
    let admin = admin(given)?;
    let answer = admin
        .any("removeRaftVoter", &request)
        .await
        .map_err(failed)?;
    check(answer.error_code, answer.error_message.as_ref()).map_err(failed)?;
    io.line(format!("Removed {what}."));
    Ok(())
}
