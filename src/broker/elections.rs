//! What the active controller looks at from time to time: partitions without a leader that may have
//! an unclean one by now.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::api::Node;
use crate::host::tasks;

/// Looks every `unclean.leader.election.interval.ms`, while this node leads the quorum.
pub fn start_elections(node: &Arc<Node>, stopping: &watch::Receiver<bool>) {
    if !node.quorum.is_voter() {
        return;
    }
    let interval_ms = node
        .config()
        .broker
        .replication
        .unclean_leader_election_interval_ms;
    let interval = Duration::from_millis(interval_ms.max(1) as u64);
    let (node, mut stopping) = (node.clone(), stopping.clone());
    let work = async move {
        loop {
            tokio::select! {
                () = tokio::time::sleep(interval) => {}
                _ = stopping.wait_for(|stop| *stop) => return,
            }
            if node.quorum.is_leader() {
                node.elect_unclean_leaders().await;
            }
        }
    };
    drop(tasks::spawn(work));
}
