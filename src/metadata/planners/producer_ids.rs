//! AllocateProducerIds: brokers take producer ids by the block.

use crate::metadata::{BrokerEpoch, MetadataImage, Plan, PlanError, ProducerIdsRecord};
use crate::types::{BrokerId, ErrorCode, ProducerId};

use super::brokers::check_broker_epoch;

/// How many ids a block has.
pub const PRODUCER_ID_BLOCK: i64 = 1000;

/// The ids `first .. first + count` are the broker's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducerIdBlock {
    pub first: ProducerId,
    pub count: i64,
}

pub fn plan_allocate_producer_ids(
    image: &MetadataImage,
    broker_id: BrokerId,
    broker_epoch: BrokerEpoch,
) -> Plan<Result<ProducerIdBlock, PlanError>> {
    if let Err(error) = check_broker_epoch(image, broker_id, broker_epoch) {
        return Plan::answer(Err(error));
    }
    let first = image.next_producer_id();
    let Some(next) = first.0.checked_add(PRODUCER_ID_BLOCK) else {
        return Plan::answer(Err(PlanError::new(
            ErrorCode::UnknownServerError,
            "Exhausted all producerIds as the next block's end producerId has exceeded the int64 \
             type limit",
        )));
    };
    let record = ProducerIdsRecord {
        broker_id,
        broker_epoch,
        next_producer_id: ProducerId(next),
    };
    Plan {
        records: vec![record.into()],
        answer: Ok(ProducerIdBlock {
            first,
            count: PRODUCER_ID_BLOCK,
        }),
    }
}
