//! What the group APIs share: who asks, and texts in the coordinator's form.

use kafka_protocol::protocol::StrBytes;

use super::context::Context;
use crate::machine::group::command::Client;

/// The client as DescribeGroups shows it.
pub fn client(context: &Context) -> Client {
    Client {
        client_id: context
            .client_id
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        client_host: format!("/{}", context.connection.peer.ip().to_canonical()),
    }
}

pub fn owned(text: Option<&StrBytes>) -> Option<String> {
    text.map(ToString::to_string)
}

pub fn wire(text: Option<&str>) -> Option<StrBytes> {
    text.map(super::view::text)
}
