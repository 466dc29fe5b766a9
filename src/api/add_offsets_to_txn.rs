//! AddOffsetsToTxn (key 25): the partition that holds a group becomes part of a transaction.

use kafka_protocol::messages::add_offsets_to_txn_request::AddOffsetsToTxnRequest;
use kafka_protocol::messages::add_offsets_to_txn_response::AddOffsetsToTxnResponse;

use super::codec::Handled;
use super::context::Context;
use super::internal_topics::CONSUMER_OFFSETS;
use super::txn_request;
use crate::machine::transaction::{
    AddPartitions, TransactionApi, TransactionVersion, error_in_version,
};
use crate::types::{ErrorCode, TopicPartition};

pub fn handle(
    context: Context,
    request: AddOffsetsToTxnRequest,
) -> Handled<AddOffsetsToTxnResponse> {
    Handled::later(async move {
        let partition = context.node.groups.partition_for(&request.group_id.0);
        let at = TopicPartition {
            topic: CONSUMER_OFFSETS.into(),
            partition,
        };
        let add = AddPartitions {
            transactional_id: txn_request::transactional_id(&request.transactional_id),
            producer: txn_request::producer(request.producer_id, request.producer_epoch),
            partitions: [at].into(),
            client_transaction_version: TransactionVersion::V0,
        };
        let added = context.node.transactions.add_partitions(add).await;
        let error = added.err().unwrap_or(ErrorCode::None);
        let api = TransactionApi::AddOffsetsToTxn;
        let error = error_in_version(api, context.api_version, error);
        AddOffsetsToTxnResponse::default().with_error_code(error.code())
    })
}
