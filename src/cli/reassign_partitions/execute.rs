//! `--execute` starts what a file asks for, `--cancel` stops it.

use std::collections::BTreeMap;

use kafka_protocol::messages::alter_partition_reassignments_request::{
    ReassignablePartition, ReassignableTopic,
};
use kafka_protocol::messages::{AlterPartitionReassignmentsRequest, BrokerId, TopicName};

use super::plan::{Name, Plan, Wanted, in_java_order, read_wanted, show};
use super::stop::Stop;
use super::{current_json, describe, log_dirs, not_found, throttles, timeout};
use crate::cli::admin::{Admin, check, text as wire_text};
use crate::cli::exceptions;
use crate::cli::io::Io;
use crate::cli::options::Options;
use crate::types::ErrorCode;

const OTHERS_ARE_UNDER_WAY: &str = "Cannot execute because there is an existing partition \
    assignment.  Use --additional to override this and create a new partition assignment in \
    addition to the existing one. The --additional flag can also be used to change the throttle \
    by resubmitting the current reassignment.";

fn s(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

fn names(plan: &Plan) -> String {
    let names: Vec<String> = plan.keys().map(show).collect();
    names.join(",")
}

pub async fn execute(io: &mut Io, admin: &Admin, options: &Options) -> Result<(), Stop> {
    let rate = |name: &str| {
        let rate = options.number::<i64>(name);
        rate.map(|rate| rate.filter(|rate| *rate >= 0))
    };
    let (rate, dirs_rate) = (rate("throttle")?, rate("replica-alter-log-dirs-throttle")?);
    let timeout = timeout(options)?;
    let (plan, moves) = read_wanted(options).and_then(Wanted::into_plan)?;
    let running = admin.list_reassignments(None).await?;
    if !running.is_empty() && !options.has("additional") {
        return Err(Stop::Said(OTHERS_ARE_UNDER_WAY.to_owned()));
    }
    let before = check_plan(admin, &plan).await?;
    io.line("Current partition replica assignment\n");
    io.line(current_json(admin, &before).await?);
    io.line("\nSave this to use as the --reassignment-json-file option during rollback");
    if rate.is_some() || dirs_rate.is_some() {
        io.line(
            "Warning: You must run --verify periodically, until the reassignment completes, to \
             ensure the throttle is removed.",
        );
    }
    if let Some(rate) = rate {
        throttles::between_brokers(admin, &running, (&plan, &before), rate).await?;
        io.line(format!(
            "The inter-broker throttle limit was set to {rate} B/s"
        ));
    }
    if let Some(rate) = dirs_rate {
        throttles::between_dirs(admin, &moves, rate).await?;
        io.line(format!(
            "The replica-alter-dir throttle limit was set to {rate} B/s"
        ));
    }
    let may_change_factor = !options.has("disallow-replication-factor-change");
    let refused = alter(admin, &plan, true, may_change_factor).await?;
    if !refused.is_empty() {
        let refused = refused.join("\n");
        return Err(Stop::Said(format!(
            "Error reassigning partition(s):\n{refused}"
        )));
    }
    io.line(format!(
        "Successfully started partition reassignment{} for {}",
        s(plan.len()),
        names(&plan)
    ));
    log_dirs::execute(io, admin, &moves, timeout).await
}

/// Brokers and partitions have to be there. Where the partitions are now.
async fn check_plan(admin: &Admin, plan: &Plan) -> Result<Plan, Stop> {
    let cluster = admin.describe_cluster(false).await?;
    let mut ids = plan.values().flatten();
    if let Some(id) = ids.find(|id| !cluster.brokers.contains_key(id)) {
        return Err(Stop::failed(format!("Unknown broker id {id}")));
    }
    let topics = plan.keys().map(|(topic, _)| topic.clone());
    let mut before = describe(admin, topics.collect()).await?;
    before.retain(|name, _| plan.contains_key(name));
    let missing = plan.keys().filter(|name| !before.contains_key(*name));
    let missing = in_java_order(missing.cloned());
    match missing.is_empty() {
        true => Ok(before),
        false => {
            let names = missing.join(", ");
            Err(not_found(&format!("Unable to find partition: {names}")))
        }
    }
}

/// Starts (or, without replicas, stops) the reassignment of every partition of a plan. What was
/// refused, and why.
async fn alter(
    admin: &Admin,
    plan: &Plan,
    starts: bool,
    may_change_factor: bool,
) -> Result<Vec<String>, Stop> {
    let mut topics: BTreeMap<&str, Vec<ReassignablePartition>> = BTreeMap::new();
    for ((topic, partition), replicas) in plan {
        let ids = replicas.iter().copied().map(BrokerId).collect();
        let row = ReassignablePartition::default()
            .with_partition_index(*partition)
            .with_replicas(starts.then_some(ids));
        topics.entry(topic).or_default().push(row);
    }
    let row = |(topic, partitions): (&str, Vec<ReassignablePartition>)| {
        ReassignableTopic::default()
            .with_name(TopicName(wire_text(topic)))
            .with_partitions(partitions)
    };
    let request = AlterPartitionReassignmentsRequest::default()
        .with_timeout_ms(60_000)
        .with_allow_replication_factor_change(may_change_factor)
        .with_topics(topics.into_iter().map(row).collect());
    let answer = admin.any("alterPartitionReassignments", &request).await?;
    check(answer.error_code, answer.error_message.as_ref())?;
    let mut refused: BTreeMap<Name, String> = BTreeMap::new();
    for topic in &answer.responses {
        for row in &topic.partitions {
            let error = ErrorCode::from_code(row.error_code);
            let error = error.unwrap_or(ErrorCode::UnknownServerError);
            if error != ErrorCode::None {
                let message = row.error_message.as_deref();
                let name = (topic.name.0.to_string(), row.partition_index);
                refused.insert(name, exceptions::message_or(error, message));
            }
        }
    }
    let line = |(name, message): (Name, String)| format!("{}: {message}", show(&name));
    Ok(refused.into_iter().map(line).collect())
}

pub async fn cancel(io: &mut Io, admin: &Admin, options: &Options) -> Result<(), Stop> {
    let timeout = timeout(options)?;
    let wanted = read_wanted(options)?;
    let running = admin.list_reassignments(None).await?;
    let active = wanted.rows.iter().filter(|(name, _)| {
        let now = running.get(name);
        now.is_some_and(|now| !now.adding.is_empty() || !now.removing.is_empty())
    });
    let active: Plan = active.cloned().collect();
    if active.is_empty() {
        io.line("None of the specified partition reassignments are active.");
    } else {
        let refused = alter(admin, &active, false, true).await?;
        if !refused.is_empty() {
            return Err(Stop::Said(format!(
                "Error cancelling partition reassignment{} for:\n{}",
                s(refused.len()),
                refused.join("\n")
            )));
        }
        io.line(format!(
            "Successfully cancelled partition reassignment{} for: {}",
            s(active.len()),
            names(&active)
        ));
    }
    log_dirs::cancel(io, admin, &wanted.moves, timeout).await?;
    if !options.has("preserve-throttles") {
        throttles::clear(io, admin, &wanted).await?;
    }
    Ok(())
}
