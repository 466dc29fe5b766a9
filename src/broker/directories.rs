//! What this broker tells the controller of its log directories: where its replicas are, and which
//! directories have failed.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::api::{ControllerDirectories, Node};
use crate::host::tasks;

use super::background::until;

/// How long after a failure it is tried again.
const RETRY: Duration = Duration::from_millis(500);

/// Starts telling. `has_heartbeats`: those say what has failed.
pub fn start(
    node: &Arc<Node>,
    has_heartbeats: bool,
    working: &watch::Receiver<usize>,
    stopping: &watch::Receiver<bool>,
) {
    let directories = ControllerDirectories {
        broker_id: node.broker_id,
        channel: node.channel.clone(),
    };
    let of_replicas = node.clone();
    drop(tasks::spawn(until(stopping.clone(), async move {
        of_replicas.partitions.run_assignments(&directories).await;
    })));
    if !has_heartbeats {
        let failed = tell_failed(node.clone(), working.clone());
        drop(tasks::spawn(until(stopping.clone(), failed)));
    }
}

/// Of a node that is alone.
async fn tell_failed(node: Arc<Node>, mut working: watch::Receiver<usize>) {
    loop {
        working.mark_unchanged();
        let offline = node.partitions.offline_directories();
        let epoch = node.partitions.surroundings().broker_epoch();
        let is_told = match node.image().broker(node.broker_id) {
            Some(known) if known.log_dirs.iter().any(|dir| offline.contains(dir)) => {
                let told = node.directories_offline(node.broker_id, epoch, offline);
                told.await.is_ok()
            }
            _ => true,
        };
        if !is_told {
            tokio::time::sleep(RETRY).await;
        } else if working.changed().await.is_err() {
            return;
        }
    }
}
