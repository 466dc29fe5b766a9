//! BrokerRegistration (key 62): a broker that starts says who it is and gets its epoch.

use std::time::Duration;

use kafka_protocol::messages::broker_registration_request::BrokerRegistrationRequest;
use kafka_protocol::messages::broker_registration_response::BrokerRegistrationResponse;

use super::codec::Handled;
use super::context::{ConnectionKind, Context};
use super::error::of_quorum;
use super::rules;
use crate::metadata::planners::{RegisterBroker, plan_register_broker};
use crate::metadata::{BrokerEndpoint, BrokerEpoch, BrokerFeature, DirectoryId, SecurityProtocol};
use crate::types::{BrokerId, ErrorCode};

pub fn handle(
    context: Context,
    request: BrokerRegistrationRequest,
) -> Handled<BrokerRegistrationResponse> {
    let refused = |error: ErrorCode| {
        BrokerRegistrationResponse::default()
            .with_error_code(error.code())
            .with_broker_epoch(BrokerEpoch::NONE.0)
    };
    let broker = BrokerId(request.broker_id.0);
    if broker.0 < 0 || request.listeners.is_empty() {
        return Handled::Ready(refused(ErrorCode::InvalidRegistration));
    }
    if request.is_migrating_zk_broker {
        return Handled::Ready(refused(ErrorCode::BrokerIdNotRegistered));
    }
    let Some(register) = read(&request) else {
        return Handled::Ready(refused(ErrorCode::InvalidRegistration));
    };
    Handled::later(async move {
        let node = context.node.clone();
        if is_taken(&context, broker, &register) {
            return refused(ErrorCode::DuplicateBrokerRegistration);
        }
        let config = node.config();
        let planned = node.submit(move |image| {
            let rules = rules::of_image(&config, image);
            plan_register_broker(image, register, &rules)
        });
        match planned.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(broker = broker.0, "not registered: {error}");
                return refused(error.code);
            }
            Err(error) => return refused(of_quorum(&error)),
        }
        let image = node.image();
        let epoch = image
            .broker(broker)
            .map_or(BrokerEpoch::NONE, |known| known.broker_epoch);
        let connection = context.connection.of_broker(broker);
        let now = node.clock.monotonic();
        node.sessions.lock().heard(broker, epoch, connection, now);
        BrokerRegistrationResponse::default().with_broker_epoch(epoch.0)
    })
}

/// Whether a broker of this id, another incarnation, was heard lately and may be heard again.
fn is_taken(context: &Context, broker: BrokerId, register: &RegisterBroker) -> bool {
    let node = &context.node;
    let image = node.image();
    let known = image.broker(broker);
    let other =
        known.is_some_and(|known| !known.fenced && known.incarnation_id != register.incarnation_id);
    let timeout_ms = node.config().broker.quorum.broker_session_timeout_ms.max(1);
    let timeout = Duration::from_millis(timeout_ms as u64);
    let now = node.clock.monotonic();
    // This controller's own broker is not heard on a connection.
    let is_here = broker == node.broker_id && context.connection.kind != ConnectionKind::Local;
    other && (is_here || node.sessions.lock().is_live(broker, now, timeout))
}

/// `None`: it says what no broker can be.
fn read(request: &BrokerRegistrationRequest) -> Option<RegisterBroker> {
    let mut end_points = Vec::with_capacity(request.listeners.len());
    for listener in &request.listeners {
        if listener.host.is_empty() {
            return None;
        }
        end_points.push(BrokerEndpoint {
            name: listener.name.as_str().into(),
            host: listener.host.as_str().into(),
            port: listener.port,
            security_protocol: match listener.security_protocol {
                0 => SecurityProtocol::Plaintext,
                1 => SecurityProtocol::Ssl,
                2 => SecurityProtocol::SaslPlaintext,
                3 => SecurityProtocol::SaslSsl,
                _ => return None,
            },
        });
    }
    let features = request.features.iter().map(|feature| BrokerFeature {
        name: feature.name.as_str().into(),
        min_supported_version: feature.min_supported_version,
        max_supported_version: feature.max_supported_version,
    });
    Some(RegisterBroker {
        broker_id: BrokerId(request.broker_id.0),
        cluster_id: request.cluster_id.as_str().into(),
        incarnation_id: request.incarnation_id,
        end_points,
        features: features.collect(),
        rack: request.rack.as_ref().map(|rack| rack.as_str().into()),
        log_dirs: request.log_dirs.iter().map(|id| DirectoryId(*id)).collect(),
        previous_broker_epoch: BrokerEpoch(request.previous_broker_epoch),
    })
}
