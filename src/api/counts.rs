//! What is counted of requests, by API.
//!
//! 1. A request costs three additions: the bucket of its time, the sum of times, and none for an
//!    answer without an error.
//! 2. Errors are found in the answer as it is laid out (`wire::error_codes`), as Kafka counts them:
//!    each place of an answer that has a code. A new API is counted without a word about it.

use std::sync::OnceLock;
use std::time::Duration;

use super::{APIS, ApiRow};
use crate::metrics::{Counter, Times};
use crate::types::ErrorCode;
use crate::wire;

/// One above the largest key of [`APIS`].
const KEYS: usize = APIS[APIS.len() - 1].key as usize + 1;

/// By their place in [`ErrorCode::ALL`].
type Errors = Box<[Counter]>;

/// The counts of one API.
#[derive(Debug, Default)]
pub struct ApiCounts {
    pub times: Times,
    /// Made with the first error.
    errors: OnceLock<Errors>,
}

impl ApiCounts {
    /// An answer says so.
    pub fn error(&self, code: i16) {
        if code == ErrorCode::None.code() {
            return;
        }
        let known = ErrorCode::of_answer(code);
        let errors = self.errors.get_or_init(|| {
            let counters = ErrorCode::ALL.iter().map(|_| Counter::default());
            counters.collect()
        });
        let place = known.code() - ErrorCode::ALL[0].code();
        errors[place as usize].increment();
    }

    /// The errors that were answered, and how often.
    pub fn errors(&self) -> impl Iterator<Item = (ErrorCode, u64)> {
        let counters = self.errors.get().into_iter().flatten();
        let counts = ErrorCode::ALL.iter().zip(counters);
        let counts = counts.map(|(code, counter)| (*code, counter.get()));
        counts.filter(|(_, count)| *count > 0)
    }
}

/// The counts of all APIs.
pub struct RequestCounts {
    by_key: [ApiCounts; KEYS],
}

impl Default for RequestCounts {
    fn default() -> Self {
        RequestCounts {
            by_key: std::array::from_fn(|_| ApiCounts::default()),
        }
    }
}

impl RequestCounts {
    /// `None`: no API of Kafka's that this node knows.
    pub fn of_key(&self, api_key: i16) -> Option<&ApiCounts> {
        self.by_key.get(usize::try_from(api_key).ok()?)
    }

    pub fn of(&self, row: &ApiRow) -> &ApiCounts {
        &self.by_key[row.key as usize]
    }

    /// A request was answered, so long after it had arrived.
    pub fn answered(&self, api_key: i16, time: Duration) {
        if let Some(counts) = self.of_key(api_key) {
            counts.times.note(time);
        }
    }

    /// Counts the errors in an answer: header and body.
    pub fn note_errors(&self, row: &ApiRow, version: i16, frame: &[u8]) {
        let counts = self.of(row);
        wire::error_codes(row.key, version, frame, &mut |code| counts.error(code));
    }
}

/// Elections of partitions' leaders that took effect while this node was the active controller.
#[derive(Debug, Default)]
pub struct ElectionCounts {
    pub all: Counter,
    pub unclean: Counter,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_their_places() {
        let all = ErrorCode::ALL;
        for (place, code) in all.iter().enumerate() {
            assert_eq!(place as i16, code.code() - all[0].code());
        }
        let counts = ApiCounts::default();
        counts.error(0);
        assert!(counts.errors.get().is_none());
        counts.error(3);
        counts.error(-1);
        counts.error(3);
        counts.error(9999);
        let errors: Vec<_> = counts.errors().collect();
        let unknown = ErrorCode::UnknownTopicOrPartition;
        assert_eq!(errors, [(ErrorCode::UnknownServerError, 2), (unknown, 2)]);
    }
}
