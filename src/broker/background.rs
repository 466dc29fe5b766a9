//! What runs beside the requests: following the metadata, flushing, retention, checkpoints.
//!
//! Each task ends when the node stops. Work on the disk runs on threads kept for it, never on those
//! that serve connections.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use super::elections::count_elections;
use super::moves;
use super::transactions::transaction_config;
use crate::api::{CONSUMER_OFFSETS, Node, TRANSACTION_STATE};
use crate::config::NodeConfig;
use crate::coordinator::group::group_config;
use crate::host::tasks;
use crate::log::{Cleaner, CleanerLimits, Log, LogError};
use crate::metadata::{ConfigResource, ConfigResourceType, MetadataImage};
use crate::partition::{Partitions, overrides_of};
use crate::quorum::{Change, Subscription};
use crate::types::{BrokerId, TopicId, TopicName};

/// How often files whose time has come are looked for.
const DELETION_INTERVAL: Duration = Duration::from_secs(1);

/// How often at most recovery points are written because a log began a new segment.
const RECOVERY_POINTS_INTERVAL: Duration = Duration::from_secs(1);

/// How often it is looked whether more cleaners are wanted.
const CLEANERS_INTERVAL: Duration = Duration::from_secs(1);

/// Everything that was started here.
pub struct Background {
    tasks: Vec<JoinHandle<()>>,
    pub cleaner: Arc<Cleaner>,
}

impl Background {
    pub fn start(
        node: &Arc<Node>,
        image: Arc<MetadataImage>,
        changes: Subscription,
        rolled: mpsc::UnboundedReceiver<Arc<Log>>,
        stopping: &watch::Receiver<bool>,
        has_crashed: bool,
    ) -> Background {
        let log = node.config().broker.log.clone();
        let after = |delay: Duration, interval: Duration, work: fn(&Node)| {
            let (node, stopping) = (node.clone(), stopping.clone());
            tasks::spawn(repeat(node, delay, interval, work, stopping))
        };
        let every = |interval: Duration, work: fn(&Node)| after(interval, interval, work);
        let initial_delay = Duration::from_millis(log.log_initial_task_delay_ms.max(0) as u64);
        let ms = |interval_ms: i64| Duration::from_millis(interval_ms.max(1) as u64);
        let replication = node.config().broker.replication.clone();
        let watermarks_ms = replication.replica_high_watermark_checkpoint_interval_ms;
        // Both kinds of checkpoint are written together, as often as the shorter interval says.
        let checkpoint_ms = log
            .log_flush_offset_checkpoint_interval_ms
            .min(log.log_flush_start_offset_checkpoint_interval_ms);
        // What was recovered would be read again by the next recovery.
        let checkpoint_delay = match has_crashed {
            true => Duration::ZERO,
            false => initial_delay,
        };
        let cleaner = Arc::new(Cleaner::default());
        let expiration_ms = i64::from(log.producer_id_expiration_check_interval_ms);
        let mut tasks = vec![
            tasks::spawn(until(
                stopping.clone(),
                follow(node.clone(), image, changes),
            )),
            tasks::spawn(until(stopping.clone(), flush_rolled(node.clone(), rolled))),
            tasks::spawn(until(
                stopping.clone(),
                node.partitions.clone().flush_in_time(),
            )),
            tasks::spawn(clean_all(node.clone(), cleaner.clone(), stopping.clone())),
            after(
                initial_delay,
                ms(log.log_retention_check_interval_ms),
                apply_retention,
            ),
            after(checkpoint_delay, ms(i64::from(checkpoint_ms)), checkpoint),
            every(ms(watermarks_ms), |node| {
                write_high_watermarks(&node.partitions)
            }),
            every(ms(replication.replica_lag_time_max_ms / 2), |node| {
                node.partitions.check_lag()
            }),
            every(ms(expiration_ms), expire_producers),
            every(DELETION_INTERVAL, |node| {
                node.partitions.run_deletions(node.clock.now_ms())
            }),
        ];
        tasks.extend(moves::start(node, stopping));
        Background { tasks, cleaner }
    }

    /// Waits until all of it has ended; the node must be stopping.
    pub async fn ended(self) {
        for task in self.tasks {
            if let Err(error) = task.await {
                tracing::error!("background work failed: {error}");
            }
        }
    }
}

/// Does `work`, at most until the node stops.
pub(super) async fn until(mut stopping: watch::Receiver<bool>, work: impl Future<Output = ()>) {
    tokio::select! {
        () = work => {}
        _ = stopping.wait_for(|stop| *stop) => {}
    }
}

async fn repeat(
    node: Arc<Node>,
    mut delay: Duration,
    interval: Duration,
    work: fn(&Node),
    mut stopping: watch::Receiver<bool>,
) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            _ = stopping.wait_for(|stop| *stop) => return,
        }
        delay = interval;
        let node = node.clone();
        if let Err(error) = tasks::spawn_blocking(move || work(&node)).await {
            tracing::error!("background work failed: {error}");
        }
    }
}

/// Applies every change of the metadata to this broker, in order; `image` was applied already.
async fn follow(node: Arc<Node>, image: Arc<MetadataImage>, mut changes: Subscription) {
    let mut before = image;
    while let Some(change) = changes.next().await {
        let (node, after) = (node.clone(), change.image.clone());
        // One change at a time: the next one builds on it.
        let applied = tasks::spawn_blocking(move || apply(&node, &before, &change));
        if let Err(error) = applied.await {
            tracing::error!("a change of the metadata was not applied: {error}");
        }
        before = after;
    }
}

fn apply(node: &Node, before: &MetadataImage, change: &Change) {
    let Change { image, delta } = change;
    let is_of = |wanted: ConfigResourceType| {
        move |resource: &ConfigResource| resource.resource_type == wanted
    };
    let of_broker = delta.configs.iter().any(is_of(ConfigResourceType::Broker));
    if delta.everything || of_broker {
        let config = with_dynamic(&node.config(), image, node.broker_id);
        node.config.store(Arc::new(config));
    }
    if let Some(topic) = image.topic(CONSUMER_OFFSETS) {
        node.groups
            .set_partition_count(topic.partitions.len() as i32);
    }
    if let Some(topic) = image.topic(TRANSACTION_STATE) {
        node.transactions
            .set_partition_count(topic.partitions.len() as i32);
    }
    node.partitions.apply(&node.config(), image, delta);
    count_elections(node, before, change);
    if delta.everything || of_broker || delta.configs.iter().any(is_of(ConfigResourceType::Group)) {
        node.groups
            .on_config_changed(&group_config(&node.config(), image));
    }
    if delta.everything || of_broker || delta.features {
        node.transactions
            .on_config_changed(transaction_config(&node.config(), image));
    }
    tell_groups_of_topics(node, before, change);
}

/// Groups give their members the partitions of new topics, and forget the offsets of deleted ones.
fn tell_groups_of_topics(node: &Node, before: &MetadataImage, change: &Change) {
    let Change { image, delta } = change;
    let known = |id: &TopicId| image.topic_by_id(*id).map(|topic| topic.name.clone());
    let mut changed: Vec<TopicName> = delta.topics.keys().filter_map(known).collect();
    let removed = delta
        .removed_topics
        .keys()
        .filter_map(|id| before.topic_by_id(*id));
    let mut deleted = Vec::new();
    for topic in removed {
        changed.push(topic.name.clone());
        let partitions = topic.partitions.iter();
        deleted.extend(partitions.map(|(index, _)| (topic.name.clone(), index)));
    }
    if !deleted.is_empty() {
        node.groups.on_partitions_deleted(deleted);
    }
    if !changed.is_empty() {
        node.groups.on_topics_changed(changed);
    }
}

/// The configuration under the dynamic values that the cluster holds for this broker.
pub fn with_dynamic(config: &NodeConfig, image: &MetadataImage, broker_id: BrokerId) -> NodeConfig {
    let this_broker = ConfigResource {
        resource_type: ConfigResourceType::Broker,
        resource_name: broker_id.to_string().into(),
    };
    let all = overrides_of(image, &ConfigResource::all_brokers());
    let (config, warnings) = config.with_dynamic(all, overrides_of(image, &this_broker));
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    config
}

/// Flushes logs that began a new segment: what lies in the old one is then safe from a power cut,
/// and a recovery need not read it. For that the recovery points have to be on disk, too; they are
/// written once in a while, as they are those of all logs.
async fn flush_rolled(node: Arc<Node>, mut rolled: mpsc::UnboundedReceiver<Arc<Log>>) {
    while let Some(first) = rolled.recv().await {
        let mut logs = vec![first];
        while let Ok(log) = rolled.try_recv() {
            logs.push(log);
        }
        let node = node.clone();
        let flushed = tasks::spawn_blocking(move || {
            for log in logs {
                match log.checkpoint() {
                    // Deleted meanwhile, or moved.
                    Ok(()) | Err(LogError::Closed { .. }) => {}
                    Err(error) => {
                        let topic_partition = log.topic_partition();
                        tracing::error!(%topic_partition, "flush failed: {error}");
                    }
                }
            }
            write_recovery_points(&node);
        });
        if let Err(error) = flushed.await {
            tracing::error!("flushing failed: {error}");
        }
        tokio::time::sleep(RECOVERY_POINTS_INTERVAL).await;
    }
}

fn write_recovery_points(node: &Node) {
    for dir in node.partitions.working_dirs() {
        if let Err(error) = dir.write_recovery_points() {
            tracing::error!(dir = %dir.path().display(), "checkpoint failed: {error}");
        }
    }
}

/// Runs `log.cleaner.threads` tasks that compact; their number may be altered at any time.
async fn clean_all(node: Arc<Node>, cleaner: Arc<Cleaner>, mut stopping: watch::Receiver<bool>) {
    let mut running: Vec<JoinHandle<()>> = Vec::new();
    loop {
        let wanted = cleaner_threads(&node);
        running.retain(|task| !task.is_finished());
        for place in running.len()..wanted {
            let work = clean(node.clone(), cleaner.clone(), place, stopping.clone());
            running.push(tasks::spawn(work));
        }
        tokio::select! {
            () = tokio::time::sleep(CLEANERS_INTERVAL) => {}
            _ = stopping.wait_for(|stop| *stop) => break,
        }
    }
    for task in running {
        if let Err(error) = task.await {
            tracing::error!("compaction failed: {error}");
        }
    }
}

fn cleaner_threads(node: &Node) -> usize {
    node.config().broker.cleaner.log_cleaner_threads.max(0) as usize
}

/// Compacts for as long as there is something to compact, then rests. Nothing ends it but the stop
/// of the node, or that fewer are wanted: a log that fails is left to later by [`Cleaner`], a panic
/// is one more failure.
async fn clean(
    node: Arc<Node>,
    cleaner: Arc<Cleaner>,
    place: usize,
    mut stopping: watch::Receiver<bool>,
) {
    while place < cleaner_threads(&node) {
        let (for_work, to_clean, stop) = (node.clone(), cleaner.clone(), stopping.clone());
        let cleaned = tasks::spawn_blocking(move || clean_next(&for_work, &to_clean, &stop)).await;
        if let Err(error) = &cleaned {
            tracing::error!("compaction failed: {error}");
        }
        let rest = match cleaned {
            Ok(true) => Duration::ZERO,
            _ => {
                let backoff_ms = node.config().broker.cleaner.log_cleaner_backoff_ms;
                Duration::from_millis(backoff_ms.max(100) as u64)
            }
        };
        tokio::select! {
            () = tokio::time::sleep(rest) => {}
            _ = stopping.wait_for(|stop| *stop) => return,
        }
    }
}

/// `false`: there was nothing to do.
fn clean_next(node: &Node, cleaner: &Cleaner, stopping: &watch::Receiver<bool>) -> bool {
    let config = &node.config().broker.cleaner;
    let started = node.clock.monotonic();
    let done_bytes = AtomicU64::new(0);
    let pace = |bytes: u64| {
        let done_bytes = done_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let due_s = done_bytes as f64 / config.log_cleaner_io_max_bytes_per_second.max(1.0);
        let due = Duration::try_from_secs_f64(due_s).unwrap_or(Duration::MAX);
        let ahead = due.saturating_sub(node.clock.monotonic() - started);
        if ahead > Duration::ZERO {
            let rest = tokio::time::sleep(ahead);
            let mut stopping = stopping.clone();
            Handle::current().block_on(async move {
                tokio::select! {
                    () = rest => {}
                    _ = stopping.wait_for(|stop| *stop) => {}
                }
            });
        }
        !*stopping.borrow()
    };
    let threads = config.log_cleaner_threads.max(1) as u64;
    let limits = CleanerLimits {
        now: node.clock.now_ms(),
        map_bytes_max: config.log_cleaner_dedupe_buffer_size.max(0) as u64 / threads,
        pace: &pace,
    };
    let partitions = node.partitions.all();
    let logs = partitions
        .iter()
        .map(|partition| (Arc::clone(&partition.log()), partition.high_watermark()));
    let Some((log, result)) = cleaner.clean_next(logs, &limits) else {
        return false;
    };
    let of_log = partitions.iter().find(|p| Arc::ptr_eq(&p.log(), &log));
    if let (Some(partition), Ok(cleaned)) = (of_log, result) {
        for deletion in cleaned.deletions {
            node.partitions.delete_later(partition.log_dir(), deletion);
        }
    }
    true
}

fn apply_retention(node: &Node) {
    let now = node.clock.now_ms();
    for partition in node.partitions.all() {
        let log_dir = partition.log_dir();
        match partition
            .log()
            .apply_retention(now, partition.high_watermark())
        {
            Ok(Some(deletion)) => {
                node.partitions.delete_later(log_dir, deletion);
            }
            Ok(None) | Err(LogError::Closed { .. }) => {}
            Err(error) => {
                let topic_partition = &partition.topic_partition;
                tracing::error!(%topic_partition, "retention failed: {error}");
            }
        }
    }
}

/// Flushes what was appended and writes the checkpoints, so that a crash leaves little to recover.
fn checkpoint(node: &Node) {
    write_high_watermarks(&node.partitions);
    for dir in node.partitions.working_dirs() {
        if let Err(error) = dir.checkpoint(0) {
            tracing::error!(dir = %dir.path().display(), "checkpoint failed: {error}");
        }
    }
}

pub fn write_high_watermarks(partitions: &Partitions) {
    for dir in partitions.working_dirs() {
        if let Err(error) = partitions.write_high_watermarks(dir) {
            tracing::error!(dir = %dir.path().display(), "checkpoint failed: {error}");
        }
    }
}

fn expire_producers(node: &Node) {
    let now = node.clock.now_ms();
    for partition in node.partitions.all() {
        partition.log().expire_producers(now);
    }
}
