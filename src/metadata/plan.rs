//! What every planner gives and takes.

use std::sync::Arc;

use uuid::Uuid;

use crate::types::ErrorCode;

use super::records::MetadataRecord;

/// The records that do what was asked, and the answer to give once they are committed. When
/// something failed the answer says so, and there may be no records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan<T> {
    pub records: Vec<MetadataRecord>,
    pub answer: T,
}

impl<T> Plan<T> {
    /// Nothing to change.
    pub fn answer(answer: T) -> Self {
        Plan {
            records: Vec::new(),
            answer,
        }
    }
}

/// Why a request, or one item of it, was refused: Kafka's code and Kafka's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {}", message.as_deref().unwrap_or(""))]
pub struct PlanError {
    pub code: ErrorCode,
    /// `None` where Kafka answers null.
    pub message: Option<Arc<str>>,
}

impl PlanError {
    pub fn new(code: ErrorCode, message: impl Into<Arc<str>>) -> Self {
        PlanError {
            code,
            message: Some(message.into()),
        }
    }

    pub fn bare(code: ErrorCode) -> Self {
        PlanError {
            code,
            message: None,
        }
    }
}

/// Where a planner's randomness comes from.
pub trait Draw {
    /// A new id.
    fn uuid(&mut self) -> Uuid;

    /// A number below `end`, which is not 0.
    fn below(&mut self, end: usize) -> usize;
}
