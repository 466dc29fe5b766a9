//! Why a call of a command failed, in the words of Kafka's client.

use crate::cli::exceptions;
use crate::peer::PeerError;
use crate::types::{ErrorCode, with_causes};

#[derive(Debug)]
pub enum AdminError {
    /// The broker says so.
    Answer { error: ErrorCode, message: String },
    /// No answer.
    Peer {
        call: &'static str,
        source: Box<PeerError>,
    },
}

impl AdminError {
    pub fn answer(error: ErrorCode, message: Option<&str>) -> AdminError {
        AdminError::Answer {
            error,
            message: exceptions::message_or(error, message),
        }
    }

    pub fn peer(call: &'static str, source: PeerError) -> AdminError {
        match source {
            PeerError::NoCoordinator { error, .. } => AdminError::answer(error, None),
            PeerError::Unsupported { .. } => {
                AdminError::answer(ErrorCode::UnsupportedVersion, Some(&source.to_string()))
            }
            source => AdminError::Peer {
                call,
                source: Box::new(source),
            },
        }
    }

    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            AdminError::Answer { error, .. } => Some(*error),
            AdminError::Peer { .. } => None,
        }
    }

    /// Whether the same may go well later.
    pub fn is_retriable(&self) -> bool {
        match self {
            AdminError::Answer { error, .. } => error.is_retriable(),
            AdminError::Peer { source, .. } => source.is_retriable(),
        }
    }

    pub fn is(&self, code: ErrorCode) -> bool {
        self.code() == Some(code)
    }

    /// What the exception of Kafka's client says.
    pub fn message(&self) -> String {
        match self {
            AdminError::Answer { message, .. } => message.clone(),
            AdminError::Peer { call, source } => match &**source {
                PeerError::NoBroker { .. } | PeerError::UnknownBroker { .. } => {
                    format!("Timed out waiting for a node assignment. Call: {call}")
                }
                PeerError::Timeout { .. } => {
                    format!("Timed out waiting to send the call. Call: {call}")
                }
                other => with_causes(other),
            },
        }
    }

    /// The class of that exception, with its package.
    pub fn class(&self) -> String {
        exceptions::full_class(match self {
            AdminError::Answer { error, .. } => *error,
            AdminError::Peer { source, .. } => match &**source {
                PeerError::Gone { .. } => ErrorCode::NetworkException,
                _ => ErrorCode::RequestTimedOut,
            },
        })
    }

    /// `class: message`, as Java prints an exception.
    pub fn exception(&self) -> String {
        format!("{}: {}", self.class(), self.message())
    }
}
