//! A broker's side of its registration and its heartbeats.

use std::time::Duration;

use kafka_protocol::messages::broker_heartbeat_request::BrokerHeartbeatRequest;
use kafka_protocol::messages::broker_registration_request::{
    BrokerRegistrationRequest, Feature, Listener,
};

use super::{Node, view};
use crate::metadata::BrokerEpoch;
use crate::metadata::planners::RegisterBroker;
use crate::peer::{ControllerChannel, PeerError};
use crate::types::ErrorCode;

/// Why the controller did not take it.
#[derive(Debug, thiserror::Error)]
pub enum LifecycleError {
    #[error(transparent)]
    Peer(#[from] PeerError),
    #[error("the controller answers {}", .0.name())]
    Refused(ErrorCode),
}

/// The answer to a heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beat {
    pub is_fenced: bool,
    pub should_shut_down: bool,
}

pub async fn register(
    channel: &ControllerChannel,
    register: &RegisterBroker,
    time: Duration,
) -> Result<BrokerEpoch, LifecycleError> {
    let listeners = register.end_points.iter().map(|end_point| {
        Listener::default()
            .with_name(view::text(&end_point.name))
            .with_host(view::text(&end_point.host))
            .with_port(end_point.port)
            .with_security_protocol(end_point.security_protocol as i16)
    });
    let features = register.features.iter().map(|feature| {
        Feature::default()
            .with_name(view::text(&feature.name))
            .with_min_supported_version(feature.min_supported_version)
            .with_max_supported_version(feature.max_supported_version)
    });
    let request = BrokerRegistrationRequest::default()
        .with_broker_id(register.broker_id.0.into())
        .with_cluster_id(view::text(&register.cluster_id))
        .with_incarnation_id(register.incarnation_id)
        .with_listeners(listeners.collect())
        .with_features(features.collect())
        .with_rack(register.rack.as_deref().map(view::text))
        .with_log_dirs(register.log_dirs.iter().map(|dir| dir.0).collect())
        .with_previous_broker_epoch(register.previous_broker_epoch.0);
    let answer = channel.call(&request, time).await?;
    check(answer.error_code)?;
    Ok(BrokerEpoch(answer.broker_epoch))
}

pub async fn heartbeat(
    node: &Node,
    channel: &ControllerChannel,
    epoch: BrokerEpoch,
    want_shut_down: bool,
    time: Duration,
) -> Result<Beat, LifecycleError> {
    let offline = node
        .partitions
        .offline_directories()
        .into_iter()
        .map(|dir| dir.0);
    let request = BrokerHeartbeatRequest::default()
        .with_broker_id(node.broker_id.0.into())
        .with_broker_epoch(epoch.0)
        .with_current_metadata_offset(node.partitions.applied().0)
        .with_want_shut_down(want_shut_down)
        .with_offline_log_dirs(offline.collect());
    let answer = channel.call(&request, time).await?;
    check(answer.error_code)?;
    Ok(Beat {
        is_fenced: answer.is_fenced,
        should_shut_down: answer.should_shut_down,
    })
}

fn check(code: i16) -> Result<(), LifecycleError> {
    ErrorCode::check(code).map_err(LifecycleError::Refused)
}
