//! The Raft log and vote in the key-value store.
//!
//! 1. An append is one commit: all its entries survive a crash, or none does.
//! 2. What openraft calls the committed log id is only a hint for the next start (the entries
//!    behind it are read again then). It has no commit of its own and rides along with the next
//!    append.
//! 3. Entries up to the purged log id may still be in the store after a crash; they are not read.
//! 4. The entries of the last append stay in memory until openraft reads them, which it does next,
//!    to apply them. Readers for other nodes leave them there.

use std::fmt::Debug;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use openraft::storage::{LogFlushed, RaftLogStorage};
use openraft::{AnyError, LogState, OptionalSend, RaftLogReader, StorageIOError};
use parking_lot::Mutex;

use crate::host::key_value::Change;
use crate::host::{KeyValue, tasks};

use super::QuorumError;
use super::keys::{self, Parts};
use super::packing::{pack, unpack};
use super::raft_types::{Entry, LogId, StorageError, Types, Vote};

#[derive(Clone)]
pub(super) struct LogStore {
    store: Arc<dyn KeyValue>,
    state: Arc<Mutex<State>>,
    appended_bytes: Arc<AtomicU64>,
    /// Whether this one reads for another node.
    for_others: bool,
}

struct State {
    last: Option<LogId>,
    purged: Option<LogId>,
    /// Not yet in the store.
    committed: Option<LogId>,
    /// The entries of the last append.
    recent: Vec<Entry>,
}

impl LogStore {
    pub(super) fn open(store: Arc<dyn KeyValue>) -> Result<Self, QuorumError> {
        let purged = keys::get(&*store, keys::PURGED, "the purged log id")?;
        let mut state = State {
            last: purged,
            purged,
            committed: None,
            recent: Vec::new(),
        };
        let start = Parts::Log.key(0, 0);
        let end = Parts::Log.end(u64::MAX);
        if let Some((key, _)) = store.last(&start, &end).map_err(QuorumError::Store)? {
            let index = Parts::Log.number(&key)?;
            let last = read_entries(&*store, index, &end)?.pop();
            state.last = state.last.max(last.map(|entry| entry.log_id));
        }
        Ok(LogStore {
            store,
            state: Arc::new(Mutex::new(state)),
            appended_bytes: Arc::default(),
            for_others: false,
        })
    }

    /// The last entry there is.
    pub(super) fn last(&self) -> Option<LogId> {
        self.state.lock().last
    }

    /// How many bytes of entries, unpacked, were appended since the last snapshot.
    pub(super) fn appended_bytes(&self) -> &Arc<AtomicU64> {
        &self.appended_bytes
    }

    /// Commits without keeping the runtime's thread: a sync can take long.
    async fn commit(&self, changes: Vec<Change>) -> io::Result<()> {
        let store = self.store.clone();
        let committed = tasks::spawn_blocking(move || store.commit(changes)).await;
        committed.map_err(io::Error::other)?
    }

    fn entries(&self, range: impl RangeBounds<u64>) -> Result<Vec<Entry>, QuorumError> {
        let start = match range.start_bound() {
            Bound::Included(index) => *index,
            Bound::Excluded(index) => index.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(index) => Parts::Log.end(*index),
            Bound::Excluded(index) => Parts::Log.key(*index, 0),
            Bound::Unbounded => Parts::Log.end(u64::MAX),
        };
        let start = {
            let mut state = self.state.lock();
            let start = start.max(state.purged.map_or(0, |purged| purged.index + 1));
            if state
                .recent
                .first()
                .is_some_and(|e| e.log_id.index <= start)
            {
                let all = state.recent.iter().all(|e| range.contains(&e.log_id.index));
                if all && !self.for_others {
                    return Ok(std::mem::take(&mut state.recent));
                }
                let wanted =
                    |e: &&Entry| e.log_id.index >= start && range.contains(&e.log_id.index);
                return Ok(state.recent.iter().filter(wanted).cloned().collect());
            }
            start
        };
        read_entries(&*self.store, start, &end)
    }
}

fn read_entries(store: &dyn KeyValue, start: u64, end: &[u8]) -> Result<Vec<Entry>, QuorumError> {
    let mut entries: Vec<Entry> = Vec::new();
    Parts::Log.read(store, start, end, |_, bytes| {
        let bytes = unpack("a log entry", bytes)?;
        entries.push(keys::decode("a log entry", &bytes)?);
        Ok(())
    })?;
    Ok(entries)
}

impl RaftLogReader<Types> for LogStore {
    async fn try_get_log_entries<R: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: R,
    ) -> Result<Vec<Entry>, StorageError> {
        let entries = self.entries(range);
        entries.map_err(|error| StorageIOError::read_logs(AnyError::new(&error)).into())
    }
}

impl RaftLogStorage<Types> for LogStore {
    type LogReader = LogStore;

    async fn get_log_state(&mut self) -> Result<LogState<Types>, StorageError> {
        let state = self.state.lock();
        Ok(LogState {
            last_purged_log_id: state.purged,
            last_log_id: state.last,
        })
    }

    async fn get_log_reader(&mut self) -> LogStore {
        LogStore {
            for_others: true,
            ..self.clone()
        }
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<(), StorageError> {
        let saved = self.commit(vec![keys::put(keys::VOTE, vote)]).await;
        saved.map_err(|error| StorageIOError::write_vote(&error).into())
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, StorageError> {
        let vote = keys::get(&*self.store, keys::VOTE, "the vote");
        vote.map_err(|error| StorageIOError::read_vote(AnyError::new(&error)).into())
    }

    async fn save_committed(&mut self, committed: Option<LogId>) -> Result<(), StorageError> {
        self.state.lock().committed = committed;
        Ok(())
    }

    async fn read_committed(&mut self) -> Result<Option<LogId>, StorageError> {
        if let Some(waiting) = self.state.lock().committed {
            return Ok(Some(waiting));
        }
        let committed = keys::get(&*self.store, keys::COMMITTED, "the committed log id");
        committed.map_err(|error| StorageIOError::read_logs(AnyError::new(&error)).into())
    }

    async fn append<I>(
        &mut self,
        entries: I,
        flushed: LogFlushed<Types>,
    ) -> Result<(), StorageError>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let entries: Vec<Entry> = entries.into_iter().collect();
        let Some(last) = entries.last().map(|entry| entry.log_id) else {
            flushed.log_io_completed(Ok(()));
            return Ok(());
        };
        let mut changes = Vec::new();
        for entry in &entries {
            let bytes = keys::encode(entry);
            let appended = bytes.len() as u64;
            self.appended_bytes.fetch_add(appended, Ordering::Relaxed);
            changes.extend(Parts::Log.put(entry.log_id.index, 0, &pack(&bytes)));
        }
        if let Some(committed) = self.state.lock().committed.take() {
            changes.push(keys::put(keys::COMMITTED, &committed));
        }
        self.commit(changes)
            .await
            .map_err(|error| StorageIOError::write_logs(&error))?;
        {
            let mut state = self.state.lock();
            state.last = Some(last);
            state.recent = entries;
        }
        flushed.log_io_completed(Ok(()));
        Ok(())
    }

    async fn truncate(&mut self, log_id: LogId) -> Result<(), StorageError> {
        let end = Parts::Log.end(u64::MAX);
        let truncated = async {
            let keys = Parts::Log.keys(&*self.store, log_id.index, &end)?;
            let deletes = keys.into_iter().map(|key| Change::Delete { key }).collect();
            self.commit(deletes).await.map_err(QuorumError::Store)?;
            let before = match log_id.index.checked_sub(1) {
                Some(before) => read_entries(&*self.store, before, &end)?.pop(),
                None => None,
            };
            let mut state = self.state.lock();
            state.last = before.map(|entry| entry.log_id).max(state.purged);
            state.recent.clear();
            Ok::<(), QuorumError>(())
        };
        let truncated = truncated.await;
        truncated.map_err(|error| StorageIOError::write_logs(AnyError::new(&error)).into())
    }

    async fn purge(&mut self, log_id: LogId) -> Result<(), StorageError> {
        let purged = async {
            let end = Parts::Log.end(log_id.index);
            let keys = Parts::Log.keys(&*self.store, 0, &end)?;
            let mut changes = vec![keys::put(keys::PURGED, &log_id)];
            changes.extend(keys.into_iter().map(|key| Change::Delete { key }));
            self.commit(changes).await.map_err(QuorumError::Store)?;
            let mut state = self.state.lock();
            state.purged = Some(log_id);
            state.last = state.last.max(Some(log_id));
            state
                .recent
                .retain(|entry| entry.log_id.index > log_id.index);
            Ok::<(), QuorumError>(())
        };
        let purged = purged.await;
        purged.map_err(|error| StorageIOError::write_logs(AnyError::new(&error)).into())
    }
}
