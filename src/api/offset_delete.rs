//! OffsetDelete (key 47; KIP-496): a group forgets how far it has come in some partitions.

use kafka_protocol::messages::offset_delete_request::OffsetDeleteRequest;
use kafka_protocol::messages::offset_delete_response::{
    OffsetDeleteResponse, OffsetDeleteResponsePartition, OffsetDeleteResponseTopic,
};

use super::codec::Handled;
use super::context::Context;
use crate::machine::group::command::OffsetDelete;
use crate::types::{ErrorCode, TopicName};

pub fn handle(context: Context, request: OffsetDeleteRequest) -> Handled<OffsetDeleteResponse> {
    Handled::later(async move {
        let image = context.node.image();
        let mut known = Vec::new();
        let mut is_known = Vec::new();
        for topic in &request.topics {
            let name: TopicName = topic.name.0.as_str().into();
            for partition in &topic.partitions {
                let index = partition.partition_index;
                let exists = image.partition(&name, index).is_some();
                is_known.push(exists);
                if exists {
                    known.push((name.clone(), index));
                }
            }
        }
        let delete = OffsetDelete {
            group: request.group_id.0.as_str().into(),
            partitions: known,
        };
        let reply = context.node.groups.delete_offsets(delete).await;
        if reply.error != ErrorCode::None {
            return OffsetDeleteResponse::default().with_error_code(reply.error.code());
        }
        answer(request, is_known, reply.partitions)
    })
}

fn answer(
    request: OffsetDeleteRequest,
    is_known: Vec<bool>,
    deleted: Vec<ErrorCode>,
) -> OffsetDeleteResponse {
    let mut is_known = is_known.into_iter();
    let mut deleted = deleted.into_iter();
    let topics = request.topics.into_iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|partition| {
            let error = match is_known.next() {
                Some(true) => deleted.next().unwrap_or(ErrorCode::UnknownServerError),
                _ => ErrorCode::UnknownTopicOrPartition,
            };
            OffsetDeleteResponsePartition::default()
                .with_partition_index(partition.partition_index)
                .with_error_code(error.code())
        });
        let partitions = partitions.collect();
        OffsetDeleteResponseTopic::default()
            .with_name(topic.name)
            .with_partitions(partitions)
    });
    OffsetDeleteResponse::default().with_topics(topics.collect())
}
