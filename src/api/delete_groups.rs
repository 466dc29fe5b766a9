//! DeleteGroups (key 42).

use std::collections::BTreeSet;

use kafka_protocol::messages::GroupId;
use kafka_protocol::messages::delete_groups_request::DeleteGroupsRequest;
use kafka_protocol::messages::delete_groups_response::{
    DeletableGroupResult, DeleteGroupsResponse,
};

use super::codec::Handled;
use super::context::Context;
use super::value::{elements, structure};
use super::view;
use crate::machine::group::GroupId as GroupName;
use crate::wire::Value;

pub fn handle(context: Context, request: DeleteGroupsRequest) -> Handled<DeleteGroupsResponse> {
    Handled::later(async move {
        let groups = once(request.groups_names.iter().map(|group| group.0.as_str()));
        let deleted = context.node.groups.delete_groups(groups).await.into_iter();
        let results = deleted.map(|(group, error)| {
            DeletableGroupResult::default()
                .with_group_id(GroupId(view::text(&group)))
                .with_error_code(error.code())
        });
        DeleteGroupsResponse::default().with_results(results.collect())
    })
}

/// v3 has a field for a message. Kafka's group coordinator leaves it null.
pub fn handle_values(context: Context, request: Value) -> Handled<Value> {
    Handled::later(async move {
        let groups = elements(&request, "groups_names").iter();
        let groups = once(groups.filter_map(Value::as_text));
        let deleted = context.node.groups.delete_groups(groups).await.into_iter();
        let results = deleted.map(|(group, error)| {
            structure([
                ("group_id", Value::Text(group.to_string())),
                ("error_code", Value::Integer(error.code().into())),
                ("error_message", Value::Null),
            ])
        });
        structure([("results", Value::Array(results.collect()))])
    })
}

/// A group that is named twice is deleted, and answered, once.
fn once<'a>(names: impl Iterator<Item = &'a str>) -> Vec<GroupName> {
    let mut seen = BTreeSet::new();
    names
        .filter(|name| seen.insert(*name))
        .map(Into::into)
        .collect()
}
