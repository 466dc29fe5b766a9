//! DescribeTransactions (key 65): the state of transactional ids that this broker coordinates.

use kafka_protocol::messages::describe_transactions_request::DescribeTransactionsRequest;
use kafka_protocol::messages::describe_transactions_response::{
    DescribeTransactionsResponse, TopicData, TransactionState,
};

use super::codec::{Handled, Outcome};
use super::context::Context;
use super::room::Room;
use super::{txn_request, view};
use crate::machine::transaction::TransactionMetadata;

pub fn handle(
    context: Context,
    request: DescribeTransactionsRequest,
) -> Handled<DescribeTransactionsResponse> {
    Handled::Later(Box::pin(async move {
        let mut room = Room::of(&context);
        let mut states = Vec::with_capacity(request.transactional_ids.len());
        for id in request.transactional_ids {
            let described = txn_request::transactional_id(&id);
            let state = match context.node.transactions.describe(described).await {
                Ok(metadata) => state(&metadata),
                Err(error) => TransactionState::default().with_error_code(error.code()),
            };
            match room.put(state.with_transactional_id(id)) {
                Ok(state) => states.push(state),
                Err(reason) => return Outcome::Close(reason),
            }
        }
        Outcome::Answer(DescribeTransactionsResponse::default().with_transaction_states(states))
    }))
}

fn state(metadata: &TransactionMetadata) -> TransactionState {
    let mut topics: Vec<TopicData> = Vec::new();
    // They are in order, so those of a topic come together.
    for at in &metadata.partitions {
        match topics.last_mut() {
            Some(last) if *last.topic.0 == *at.topic => last.partitions.push(at.partition),
            _ => topics.push(
                TopicData::default()
                    .with_topic(view::text(&at.topic).into())
                    .with_partitions(vec![at.partition]),
            ),
        }
    }
    TransactionState::default()
        .with_transaction_state(view::text(metadata.state.name()))
        .with_transaction_timeout_ms(metadata.transaction_timeout_ms)
        .with_transaction_start_time_ms(metadata.start_timestamp.0)
        .with_producer_id(metadata.producer_id.0.into())
        .with_producer_epoch(metadata.producer_epoch.0)
        .with_topics(topics)
}
