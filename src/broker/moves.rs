//! The threads that move replicas between the directories of this broker.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::api::Node;
use crate::host::tasks;

/// Without a move it is only waited for one.
const IDLE: Duration = Duration::from_secs(3600);

/// Starts `num.replica.alter.log.dirs.threads` of them, as many as there are directories if nothing
/// is set; none with a single directory.
pub fn start(node: &Arc<Node>, stopping: &watch::Receiver<bool>) -> Vec<JoinHandle<()>> {
    let dirs = node.partitions.log_dirs().len();
    if dirs < 2 {
        return Vec::new();
    }
    let threads = node.config().broker.log.num_replica_alter_log_dirs_threads;
    let threads = threads.map_or(dirs, |threads| threads.max(1) as usize);
    let start = |_| tasks::spawn(work(node.clone(), stopping.clone()));
    (0..threads).map(start).collect()
}

async fn work(node: Arc<Node>, mut stopping: watch::Receiver<bool>) {
    let mut begun = node.partitions.moves_begun();
    loop {
        begun.mark_unchanged();
        let to_work = node.clone();
        let worked = tasks::spawn_blocking(move || to_work.partitions.move_on()).await;
        let rest = worked.unwrap_or_else(|error| {
            tracing::error!("moving a replica failed: {error}");
            Some(Duration::ZERO)
        });
        tokio::select! {
            () = tokio::time::sleep(rest.unwrap_or(IDLE)) => {}
            _ = begun.changed() => {}
            _ = stopping.wait_for(|stop| *stop) => return,
        }
    }
}
