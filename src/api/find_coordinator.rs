//! FindCoordinator (key 10): which broker coordinates a group or a transactional id.

use kafka_protocol::messages::find_coordinator_request::FindCoordinatorRequest;
use kafka_protocol::messages::find_coordinator_response::{Coordinator, FindCoordinatorResponse};
use kafka_protocol::protocol::StrBytes;

use super::codec::Handled;
use super::context::Context;
use super::internal_topics::{self, InternalTopic};
use super::{told, view};
use crate::types::{BrokerId, ErrorCode};

/// From this version on several keys may be asked for (KIP-699).
const VERSION_BATCHED: i16 = 4;
/// From this version on an answer has a message, and a key a type.
const VERSION_MESSAGE: i16 = 1;
const KEY_GROUP: i8 = 0;
const KEY_TRANSACTION: i8 = 1;
const KEY_SHARE: i8 = 2;

pub fn handle(
    context: Context,
    request: FindCoordinatorRequest,
) -> Handled<FindCoordinatorResponse> {
    Handled::later(async move {
        let key_type = request.key_type;
        if context.api_version >= VERSION_BATCHED {
            let mut coordinators = Vec::with_capacity(request.coordinator_keys.len());
            for key in request.coordinator_keys {
                let found = find(&context, key_type, &key).await;
                coordinators.push(answer(key_type, found).with_key(key));
            }
            return FindCoordinatorResponse::default().with_coordinators(coordinators);
        }
        let found = find(&context, key_type, &request.key).await;
        let error_message = match &found {
            _ if context.api_version < VERSION_MESSAGE => None,
            Ok(_) => Some(view::text(ErrorCode::None.name())),
            Err(error) => Some(view::text(error.name())),
        };
        let found = answer(key_type, found);
        FindCoordinatorResponse::default()
            .with_error_code(found.error_code)
            .with_error_message(error_message)
            .with_node_id(found.node_id)
            .with_host(found.host)
            .with_port(found.port)
    })
}

struct Found {
    broker_id: BrokerId,
    host: StrBytes,
    port: i32,
}

async fn find(context: &Context, key_type: i8, key: &str) -> Result<Found, ErrorCode> {
    let node = &context.node;
    let (topic, partition) = match key_type {
        KEY_GROUP => (
            InternalTopic::ConsumerOffsets,
            node.groups.partition_for(key),
        ),
        KEY_TRANSACTION => {
            let partition = node.transactions.partition_for(key);
            (InternalTopic::TransactionState, partition)
        }
        _ => return Err(ErrorCode::InvalidRequest),
    };
    if let Err(error) = internal_topics::ensure(node, topic).await {
        tracing::warn!(topic = topic.name(), "{error}");
        return Err(ErrorCode::CoordinatorNotAvailable);
    }
    let image = node.image();
    let leader = image
        .partition(topic.name(), partition)
        .map(|partition| partition.leader);
    let broker = leader
        .and_then(|leader| image.broker(leader))
        .filter(|broker| !broker.fenced);
    let address = broker.and_then(|broker| told::address(node, &context.connection, broker));
    match (broker, address) {
        (Some(broker), Some((host, port))) => Ok(Found {
            broker_id: broker.broker_id,
            host,
            port,
        }),
        _ => Err(ErrorCode::CoordinatorNotAvailable),
    }
}

fn answer(key_type: i8, found: Result<Found, ErrorCode>) -> Coordinator {
    match found {
        Ok(found) => Coordinator::default()
            .with_node_id(found.broker_id.0.into())
            .with_host(found.host)
            .with_port(found.port)
            .with_error_message(Some(view::text(""))),
        Err(error) => Coordinator::default()
            .with_node_id(BrokerId::NONE.0.into())
            .with_port(-1)
            .with_error_code(error.code())
            // Kafka says nothing of share partitions that it cannot find.
            .with_error_message(Some(view::text(match key_type {
                KEY_SHARE => "",
                _ => error.name(),
            }))),
    }
}
