//! The calls that commands make, with answers in the commands' own words.
//!
//! 1. An error code in an answer becomes [`AdminError::Answer`], with the broker's message or, if
//!    it sends none, with the text of Kafka's client.
//! 2. Codes that say "another broker" or "not yet" are tried again as long as the client allows.

mod cluster;
mod configs;
mod error;
mod group_detail;
mod groups;
mod log_dirs;
mod offsets;
mod topics;

use std::time::Duration;

use kafka_protocol::protocol::{Request, StrBytes};

use crate::peer::{Client, CoordinatorKind, PeerError};
use crate::types::ErrorCode;

pub use cluster::Reassignment;
pub use configs::{AlterOp, ConfigValue, Resource, ResourceKind, source_name};
pub use error::AdminError;
pub use group_detail::{GroupDetail, MemberDetail};

pub use log_dirs::{LogDir, LogDirReplica};
pub use offsets::OffsetSpec;
pub use topics::{NewTopic, PartitionDetail, TopicDetail, TopicListing};

pub type Answer<T> = Result<T, AdminError>;

pub struct Admin {
    pub client: Client,
    /// Whether the addresses are those of controllers (`--bootstrap-controller`): they answer for
    /// themselves and know no other nodes by metadata.
    pub is_controller: bool,
}

/// A text as the messages carry it.
pub fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

/// The code of an answer; `Ok` for "none".
pub fn check(code: i16, message: Option<&StrBytes>) -> Answer<()> {
    ErrorCode::check(code).map_err(|error| AdminError::answer(error, message.map(|m| m.as_str())))
}

impl Admin {
    pub fn new(client: Client) -> Admin {
        Admin {
            client,
            is_controller: false,
        }
    }

    /// Sends to any broker. `call` is what Kafka's client names the call in its messages.
    pub async fn any<Q: Request>(&self, call: &'static str, request: &Q) -> Answer<Q::Response> {
        let answer = self.client.call_any(request).await;
        answer.map_err(|source| AdminError::peer(call, source))
    }

    pub async fn broker<Q: Request>(
        &self,
        call: &'static str,
        id: i32,
        request: &Q,
    ) -> Answer<Q::Response> {
        if self.is_controller {
            return self.any(call, request).await;
        }
        let answer = self.client.call_broker(id, request).await;
        answer.map_err(|source| AdminError::peer(call, source))
    }

    /// Sends to a group's coordinator, and again when `code` of the answer says that it is not (or
    /// not yet) the coordinator.
    pub async fn coordinator<Q: Request>(
        &self,
        call: &'static str,
        group: &str,
        request: &Q,
        code: impl Fn(&Q::Response) -> i16,
    ) -> Answer<Q::Response> {
        self.coordinator_at_most(i16::MAX, call, group, request, code)
            .await
    }

    /// As [`Admin::coordinator`], in a version of at most `version_max`.
    pub async fn coordinator_at_most<Q: Request>(
        &self,
        version_max: i16,
        call: &'static str,
        group: &str,
        request: &Q,
        code: impl Fn(&Q::Response) -> i16,
    ) -> Answer<Q::Response> {
        let request_timeout = self.client.config().request_timeout;
        let attempt = async || {
            let connection = self
                .client
                .coordinator(CoordinatorKind::Group, group)
                .await?;
            let sent = connection.send_at_most(request, version_max, request_timeout)?;
            moved(group, sent.answer().await?, &code)
        };
        let answer = self.client.retry(attempt).await;
        answer.map_err(|source| AdminError::peer(call, source))
    }

    /// As [`Admin::coordinator`], with a time-out of its own.
    pub async fn coordinator_within<Q: Request>(
        &self,
        request_timeout: Duration,
        call: &'static str,
        group: &str,
        request: &Q,
        code: impl Fn(&Q::Response) -> i16,
    ) -> Answer<Q::Response> {
        let attempt = async || {
            let connection = self
                .client
                .coordinator(CoordinatorKind::Group, group)
                .await?;
            let answer = connection.call(request, request_timeout).await?;
            moved(group, answer, &code)
        };
        let answer = self.client.retry(attempt).await;
        answer.map_err(|source| AdminError::peer(call, source))
    }
}

/// An answer that says "not the coordinator" is an error of the way.
fn moved<R>(group: &str, answer: R, code: &impl Fn(&R) -> i16) -> Result<R, PeerError> {
    match ErrorCode::from_code(code(&answer)) {
        Some(
            error @ (ErrorCode::NotCoordinator
            | ErrorCode::CoordinatorNotAvailable
            | ErrorCode::CoordinatorLoadInProgress),
        ) => {
            let key = group.to_owned();
            Err(PeerError::NoCoordinator { key, error })
        }
        _ => Ok(answer),
    }
}
