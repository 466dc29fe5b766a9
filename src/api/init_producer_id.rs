//! InitProducerId (key 22): an id for an idempotent producer. Transactional ids come with their
//! coordinator.

use kafka_protocol::messages::init_producer_id_request::InitProducerIdRequest;
use kafka_protocol::messages::init_producer_id_response::InitProducerIdResponse;

use super::codec::Handled;
use super::context::Context;
use super::error;
use crate::types::{ErrorCode, ProducerEpoch, ProducerId};

pub fn handle(
    context: Context,
    request: InitProducerIdRequest,
) -> Handled<InitProducerIdResponse> {
    if let Err(error) = check(&request) {
        return Handled::Ready(failed(error));
    }
    Handled::later(async move {
        match context.node.producer_ids.next(&context.node).await {
            Ok(producer_id) => InitProducerIdResponse::default()
                .with_producer_id(producer_id.0.into())
                .with_producer_epoch(0),
            Err(no_id) => failed(error::of_producer_id(&no_id)),
        }
    })
}

fn check(request: &InitProducerIdRequest) -> Result<(), ErrorCode> {
    let has_id = request.producer_id.0 != ProducerId::NONE.0;
    let has_epoch = request.producer_epoch != ProducerEpoch::NONE.0;
    match &request.transactional_id {
        _ if has_id != has_epoch => Err(ErrorCode::InvalidRequest),
        None => Ok(()),
        Some(id) if id.0.is_empty() => Err(ErrorCode::InvalidRequest),
        // No broker is its coordinator yet.
        Some(_) => Err(ErrorCode::CoordinatorNotAvailable),
    }
}

fn failed(error: ErrorCode) -> InitProducerIdResponse {
    InitProducerIdResponse::default()
        .with_error_code(error.code())
        .with_producer_id(ProducerId::NONE.0.into())
        .with_producer_epoch(ProducerEpoch::NONE.0)
}
