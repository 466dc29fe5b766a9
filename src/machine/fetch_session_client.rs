//! The fetcher's side of an incremental fetch session (KIP-227): what the next request has to say,
//! given what the other side knows.
//!
//! 1. A request names the partitions that are new or have changed since the last answered request,
//!    and those that are not wanted any more. The other side keeps the rest.
//! 2. After a request without an answer nobody knows what the other side has: the next one closes
//!    the session and names everything.

use std::collections::BTreeMap;

use crate::machine::fetch_session::NO_SESSION;
use crate::types::ErrorCode;

/// "Make a session", of the first request; it closes the one of its id.
const EPOCH_INITIAL: i32 = 0;

/// A session with one other side; `K` names a partition, `P` is where the fetcher is in it.
#[derive(Debug)]
pub struct FetchSessionClient<K, P> {
    id: i32,
    epoch: i32,
    /// What the other side knows once it has answered.
    known: BTreeMap<K, P>,
}

/// What a request has to say.
#[derive(Debug, PartialEq, Eq)]
pub struct SessionFetch<K, P> {
    pub id: i32,
    pub epoch: i32,
    pub send: Vec<(K, P)>,
    pub forget: Vec<K>,
}

impl<K: Ord + Clone, P: Eq + Clone> Default for FetchSessionClient<K, P> {
    fn default() -> Self {
        FetchSessionClient {
            id: NO_SESSION,
            epoch: EPOCH_INITIAL,
            known: BTreeMap::new(),
        }
    }
}

impl<K: Ord + Clone, P: Eq + Clone> FetchSessionClient<K, P> {
    /// The next request, which wants exactly `wanted`.
    pub fn request(&mut self, wanted: BTreeMap<K, P>) -> SessionFetch<K, P> {
        let is_full = self.epoch == EPOCH_INITIAL;
        if is_full {
            self.known.clear();
        }
        let is_news = |(key, place): &(&K, &P)| self.known.get(key) != Some(*place);
        let send = wanted.iter().filter(is_news);
        let send = send.map(|(key, place)| (key.clone(), place.clone()));
        let send: Vec<(K, P)> = send.collect();
        let forget = self.known.keys().filter(|key| !wanted.contains_key(key));
        let forget = forget.cloned().collect();
        self.known = wanted;
        SessionFetch {
            id: self.id,
            epoch: self.epoch,
            send,
            forget,
        }
    }

    /// The answer's error and session. `true`: it answers what was asked.
    pub fn on_answer(&mut self, error: ErrorCode, session_id: i32) -> bool {
        match error {
            ErrorCode::None if session_id == NO_SESSION => {
                self.id = NO_SESSION;
                self.epoch = EPOCH_INITIAL;
            }
            ErrorCode::None => {
                self.id = session_id;
                self.epoch = match self.epoch {
                    i32::MAX => 1,
                    epoch => epoch + 1,
                };
            }
            ErrorCode::FetchSessionIdNotFound => {
                self.id = NO_SESSION;
                self.epoch = EPOCH_INITIAL;
            }
            _ => self.epoch = EPOCH_INITIAL,
        }
        error == ErrorCode::None
    }

    /// There was no answer.
    pub fn on_lost(&mut self) {
        self.epoch = EPOCH_INITIAL;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(places: &[(u8, u64)]) -> BTreeMap<u8, u64> {
        places.iter().copied().collect()
    }

    #[test]
    fn only_what_changed_is_sent() {
        let mut session = FetchSessionClient::default();
        let first = session.request(wanted(&[(1, 10), (2, 20)]));
        assert_eq!((first.id, first.epoch, first.send.len()), (0, 0, 2));
        assert!(session.on_answer(ErrorCode::None, 77));
        let second = session.request(wanted(&[(1, 11), (2, 20)]));
        assert_eq!((second.id, second.epoch), (77, 1));
        assert_eq!((second.send, second.forget), (vec![(1, 11)], vec![]));
        assert!(session.on_answer(ErrorCode::None, 77));
        let third = session.request(wanted(&[(2, 20), (3, 30)]));
        assert_eq!(
            (third.epoch, third.send, third.forget),
            (2, vec![(3, 30)], vec![1])
        );
    }

    #[test]
    fn a_lost_answer_makes_a_new_session() {
        let mut session = FetchSessionClient::default();
        session.request(wanted(&[(1, 10)]));
        session.on_answer(ErrorCode::None, 77);
        session.request(wanted(&[(1, 10)]));
        session.on_lost();
        let again = session.request(wanted(&[(1, 10)]));
        assert_eq!((again.id, again.epoch, again.send), (77, 0, vec![(1, 10)]));
        assert!(!session.on_answer(ErrorCode::FetchSessionIdNotFound, 0));
        let fresh = session.request(wanted(&[(1, 10)]));
        assert_eq!((fresh.id, fresh.epoch, fresh.send.len()), (0, 0, 1));
        assert!(!session.on_answer(ErrorCode::InvalidFetchSessionEpoch, 0));
        assert_eq!(session.request(wanted(&[])).epoch, 0);
    }

    #[test]
    fn a_side_without_sessions_gets_everything() {
        let mut session = FetchSessionClient::default();
        session.request(wanted(&[(1, 10)]));
        assert!(session.on_answer(ErrorCode::None, 0));
        assert_eq!(session.request(wanted(&[(1, 10)])).send.len(), 1);
    }
}
