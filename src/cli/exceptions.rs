//! The exceptions that Kafka's tools name when a broker answers with an error code.
//!
//! Scripts look for these names and texts, so they are kept to the letter. A text is only needed
//! where the broker sends none of its own; for codes without a row here the code's name is shown.

use crate::types::ErrorCode;

/// The class of the exception for a code, without its package.
pub fn class(error: ErrorCode) -> String {
    let odd = ODD_CLASSES.iter().find(|(code, _)| *code == error);
    match odd {
        Some((_, class)) => (*class).to_owned(),
        None => {
            let name = format!("{error:?}");
            match name.ends_with("Exception") {
                true => name,
                false => format!("{name}Exception"),
            }
        }
    }
}

/// With its package, as in stack traces.
pub fn full_class(error: ErrorCode) -> String {
    format!("org.apache.kafka.common.errors.{}", class(error))
}

/// What the exception says when the broker sent no message.
pub fn message(error: ErrorCode) -> &'static str {
    let known = MESSAGES.iter().find(|(code, _)| *code == error);
    known.map_or(error.name(), |(_, message)| message)
}

/// What the broker says, or else the default text.
pub fn message_or(error: ErrorCode, sent: Option<&str>) -> String {
    sent.map_or_else(|| message(error).to_owned(), str::to_owned)
}

/// Those whose class is not named as the code is.
const ODD_CLASSES: &[(ErrorCode, &str)] = &[
    (ErrorCode::UnknownServerError, "UnknownServerException"),
    (ErrorCode::CorruptMessage, "CorruptRecordException"),
    (ErrorCode::RequestTimedOut, "TimeoutException"),
    (ErrorCode::MessageTooLarge, "RecordTooLargeException"),
    (ErrorCode::StaleControllerEpoch, "ControllerMovedException"),
    (ErrorCode::OffsetMetadataTooLarge, "OffsetMetadataTooLarge"),
    (
        ErrorCode::RecordListTooLarge,
        "RecordBatchTooLargeException",
    ),
    (
        ErrorCode::TopicAuthorizationFailed,
        "TopicAuthorizationException",
    ),
    (
        ErrorCode::GroupAuthorizationFailed,
        "GroupAuthorizationException",
    ),
    (
        ErrorCode::ClusterAuthorizationFailed,
        "ClusterAuthorizationException",
    ),
    (ErrorCode::TopicAlreadyExists, "TopicExistsException"),
    (ErrorCode::InvalidConfig, "InvalidConfigurationException"),
    (
        ErrorCode::OutOfOrderSequenceNumber,
        "OutOfOrderSequenceException",
    ),
    (
        ErrorCode::DuplicateSequenceNumber,
        "DuplicateSequenceException",
    ),
    (
        ErrorCode::InvalidProducerIdMapping,
        "InvalidPidMappingException",
    ),
    (
        ErrorCode::InvalidTransactionTimeout,
        "InvalidTxnTimeoutException",
    ),
    (
        ErrorCode::TransactionalIdAuthorizationFailed,
        "TransactionalIdAuthorizationException",
    ),
    (ErrorCode::KafkaStorageError, "KafkaStorageException"),
    (
        ErrorCode::SaslAuthenticationFailed,
        "SaslAuthenticationException",
    ),
    (
        ErrorCode::DelegationTokenAuthDisabled,
        "DelegationTokenDisabledException",
    ),
    (
        ErrorCode::DelegationTokenRequestNotAllowed,
        "UnsupportedByAuthenticationException",
    ),
    (
        ErrorCode::DelegationTokenAuthorizationFailed,
        "DelegationTokenAuthorizationException",
    ),
    (ErrorCode::NonEmptyGroup, "GroupNotEmptyException"),
    (
        ErrorCode::PrincipalDeserializationFailure,
        "PrincipalDeserializationException",
    ),
    (
        ErrorCode::FetchSessionTopicIdError,
        "FetchSessionTopicIdException",
    ),
    (
        ErrorCode::InvalidRegularExpression,
        "InvalidRegularExpression",
    ),
];

const MESSAGES: &[(ErrorCode, &str)] = &[
    (
        ErrorCode::UnknownServerError,
        "The server experienced an unexpected error when processing the request.",
    ),
    (
        ErrorCode::OffsetOutOfRange,
        "The requested offset is not within the range of offsets maintained by the server.",
    ),
    (
        ErrorCode::UnknownTopicOrPartition,
        "This server does not host this topic-partition.",
    ),
    (
        ErrorCode::LeaderNotAvailable,
        "There is no leader for this topic-partition as we are in the middle of a \
         leadership election.",
    ),
    (
        ErrorCode::NotLeaderOrFollower,
        "For requests intended only for the leader, this error indicates that the broker \
         is not the current leader. For requests intended for any replica, this error \
         indicates that the broker is not a replica of the topic partition.",
    ),
    (ErrorCode::RequestTimedOut, "The request timed out."),
    (
        ErrorCode::MessageTooLarge,
        "The request included a message larger than the max message size the server will accept.",
    ),
    (
        ErrorCode::CoordinatorLoadInProgress,
        "The coordinator is loading and hence can't process requests.",
    ),
    (
        ErrorCode::CoordinatorNotAvailable,
        "The coordinator is not available.",
    ),
    (
        ErrorCode::NotCoordinator,
        "This is not the correct coordinator.",
    ),
    (
        ErrorCode::InvalidTopicException,
        "The request attempted to perform an operation on an invalid topic.",
    ),
    (
        ErrorCode::NotEnoughReplicas,
        "Messages are rejected since there are fewer in-sync replicas than required.",
    ),
    (
        ErrorCode::IllegalGeneration,
        "Specified group generation id is not valid.",
    ),
    (ErrorCode::InvalidGroupId, "The group id is invalid."),
    (
        ErrorCode::UnknownMemberId,
        "The coordinator is not aware of this member.",
    ),
    (
        ErrorCode::TopicAuthorizationFailed,
        "Topic authorization failed.",
    ),
    (
        ErrorCode::GroupAuthorizationFailed,
        "Group authorization failed.",
    ),
    (
        ErrorCode::ClusterAuthorizationFailed,
        "Cluster authorization failed.",
    ),
    (
        ErrorCode::UnsupportedVersion,
        "The version of API is not supported.",
    ),
    (
        ErrorCode::TopicAlreadyExists,
        "Topic with this name already exists.",
    ),
    (ErrorCode::InvalidConfig, "Configuration is invalid."),
    (
        ErrorCode::SecurityDisabled,
        "Security features are disabled.",
    ),
    (
        ErrorCode::LogDirNotFound,
        "The user-specified log directory is not found in the broker config.",
    ),
    (
        ErrorCode::ReassignmentInProgress,
        "A partition reassignment is in progress.",
    ),
    (ErrorCode::NonEmptyGroup, "The group is not empty."),
    (ErrorCode::GroupIdNotFound, "The group id does not exist."),
    (
        ErrorCode::TopicDeletionDisabled,
        "Topic deletion is disabled.",
    ),
    (
        ErrorCode::PreferredLeaderNotAvailable,
        "The preferred leader was not available.",
    ),
    (
        ErrorCode::FencedInstanceId,
        "The broker rejected this static consumer since another consumer with the same \
         group.instance.id has registered with a different member.id.",
    ),
    (
        ErrorCode::EligibleLeadersNotAvailable,
        "Eligible topic partition leaders are not available.",
    ),
    (
        ErrorCode::ElectionNotNeeded,
        "Leader election not needed for topic partition.",
    ),
    (
        ErrorCode::NoReassignmentInProgress,
        "No partition reassignment is in progress.",
    ),
    (
        ErrorCode::GroupSubscribedToTopic,
        "Deleting offsets of a topic is forbidden while the consumer group is actively \
         subscribed to it.",
    ),
    (
        ErrorCode::ResourceNotFound,
        "A request illegally referred to a resource that does not exist.",
    ),
    (
        ErrorCode::UnknownTopicId,
        "This server does not host this topic ID.",
    ),
    (
        ErrorCode::BrokerIdNotRegistered,
        "The given broker ID was not registered.",
    ),
    (
        ErrorCode::TransactionalIdNotFound,
        "The transactionalId could not be found.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_exceptions() {
        assert_eq!(class(ErrorCode::UnknownTopicId), "UnknownTopicIdException");
        assert_eq!(class(ErrorCode::TopicAlreadyExists), "TopicExistsException");
        assert_eq!(
            class(ErrorCode::InvalidTopicException),
            "InvalidTopicException"
        );
    }
}
