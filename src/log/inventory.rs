//! What the files in a partition's directory mean: a decision table, PURE.
//!
//! For each base offset:
//!
//! ```text
//! .log   .index, .timeindex               decision
//! ------ -------------------------------- ---------------------------------------------------
//! no     any                              remove them: a crash in a deletion or a truncation (1)
//! empty  any, not the last segment        remove all: a roll that nothing followed (1)
//! empty  any, the last segment            keep the log, remove the indexes
//! some   both, whole entries              keep
//! some   one missing or a piece of entry  make the indexes anew from the log
//! ```
//!
//! 1. Unless `seams` finds that the log had records: then nothing is removed.
//!
//! For other names:
//!
//! ```text
//! X.deleted      remove: it was out of the log
//! X.cleaned      remove: a compaction that was not done
//! <n>.log.swap   a compaction that was done and not put in: finish (`recovery`)
//! X.swap         goes with its `.log.swap`; alone: remove
//! X.tmp          remove: a checkpoint file that was not done
//! <n>.snapshot   producers; which one can be used is up to `recovery`
//! all else       leave alone
//! ```
//!
//! Whether a kept segment's content may be trusted is not decided here but by the recovery point.

use std::collections::BTreeMap;

use crate::host::disk::Entry;
use crate::types::Offset;

use super::names::{
    CLEANED_SUFFIX, DELETED_SUFFIX, Kind, SNAPSHOT_SUFFIX, SWAP_SUFFIX, TMP_SUFFIX, segment_file,
    split_offset,
};
use super::{offset_index, time_index, txn_index};

/// A segment that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SegmentFiles {
    pub base_offset: Offset,
    pub log_bytes: u64,
    pub offset_index_bytes: u64,
    pub time_index_bytes: u64,
    pub txn_index_bytes: u64,
    /// The indexes are to be made anew.
    pub is_index_damaged: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Inventory {
    /// Ascending.
    pub segments: Vec<SegmentFiles>,
    /// Base offsets of compacted segments that are about to go in, ascending.
    pub swaps: Vec<Offset>,
    /// Ascending.
    pub snapshots: Vec<Offset>,
    /// Indexes of segments without a record, ascending: leftovers, or their `.log` was lost
    /// (`seams`).
    pub emptied: Vec<SegmentFiles>,
    pub remove: Vec<String>,
}

impl Inventory {
    pub fn of(entries: &[Entry]) -> Inventory {
        let mut inventory = Inventory::default();
        let mut by_base: BTreeMap<Offset, [Option<u64>; 4]> = BTreeMap::new();
        let mut swap_files = Vec::new();
        for entry in entries.iter().filter(|e| !e.is_dir) {
            let name = &entry.name;
            let leftover = [DELETED_SUFFIX, CLEANED_SUFFIX, TMP_SUFFIX];
            if leftover.iter().any(|suffix| name.ends_with(suffix)) {
                inventory.remove.push(name.clone());
                continue;
            }
            let Some((offset, suffix)) = split_offset(name) else {
                continue;
            };
            if let Some(plain) = suffix.strip_suffix(SWAP_SUFFIX) {
                if plain == Kind::Log.suffix() {
                    inventory.swaps.push(offset);
                } else {
                    swap_files.push((offset, name.clone()));
                }
            } else if suffix == SNAPSHOT_SUFFIX {
                inventory.snapshots.push(offset);
            } else if let Some(kind) = Kind::ALL.iter().find(|k| k.suffix() == suffix) {
                by_base.entry(offset).or_default()[*kind as usize] = Some(entry.len);
            }
        }
        for (offset, name) in swap_files {
            if !inventory.swaps.contains(&offset) {
                inventory.remove.push(name);
            }
        }
        let last = by_base
            .iter()
            .filter(|(_, files)| files[Kind::Log as usize].is_some())
            .map(|(base, _)| *base)
            .next_back();
        for (base_offset, files) in by_base {
            inventory.decide(base_offset, files, Some(base_offset) == last);
        }
        inventory
    }

    fn decide(&mut self, base_offset: Offset, files: [Option<u64>; 4], is_last: bool) {
        let [log, index, time_index, txn_index] = files;
        let keep_indexes = log.is_some_and(|bytes| bytes > 0);
        let keep_log = keep_indexes || (log.is_some() && is_last);
        for kind in Kind::ALL {
            let keep = match kind {
                Kind::Log => keep_log,
                _ => keep_indexes,
            };
            if files[kind as usize].is_some() && !keep {
                self.remove.push(segment_file(base_offset, kind));
            }
        }
        let Some(log_bytes) = log.filter(|_| keep_log) else {
            self.emptied.push(SegmentFiles {
                base_offset,
                log_bytes: 0,
                offset_index_bytes: index.unwrap_or(0),
                time_index_bytes: time_index.unwrap_or(0),
                txn_index_bytes: txn_index.unwrap_or(0),
                is_index_damaged: false,
            });
            return;
        };
        let bytes = |file: Option<u64>| file.filter(|_| keep_indexes).unwrap_or(0);
        let is_whole = |file: Option<u64>, entry_bytes: u32| {
            file.is_some_and(|bytes| {
                bytes % u64::from(entry_bytes) == 0 && bytes <= i32::MAX as u64
            })
        };
        let is_txn_whole = txn_index.is_none() || is_whole(txn_index, txn_index::ENTRY_BYTES);
        let is_sound = is_whole(index, offset_index::ENTRY_BYTES)
            && is_whole(time_index, time_index::ENTRY_BYTES)
            && is_txn_whole;
        self.segments.push(SegmentFiles {
            base_offset,
            log_bytes,
            offset_index_bytes: bytes(index),
            time_index_bytes: bytes(time_index),
            txn_index_bytes: bytes(txn_index),
            is_index_damaged: keep_indexes && !is_sound,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, len: u64) -> Entry {
        Entry {
            name: name.to_owned(),
            is_dir: false,
            len,
        }
    }

    /// Each file of the segment is missing, empty, whole or has a piece of an entry.
    #[test]
    fn every_combination_of_files_meets_one_row() {
        let lens = [None, Some(0), Some(408), Some(409)];
        for combination in 0..4_usize.pow(4) * 2 {
            let pick = |n: u32| lens[combination / 4_usize.pow(n) % 4];
            let files = [pick(0), pick(1), pick(2), pick(3)];
            let is_last = combination >= 4_usize.pow(4);
            let mut entries: Vec<_> = Kind::ALL
                .iter()
                .filter_map(|k| Some(entry(&segment_file(Offset(5), *k), files[*k as usize]?)))
                .collect();
            if !is_last {
                entries.push(entry(&segment_file(Offset(9), Kind::Log), 0));
            }
            let there = entries.len();
            let found = Inventory::of(&entries);
            let segment = found.segments.iter().find(|s| s.base_offset == Offset(5));
            let indexes = there - usize::from(files[0].is_some()) - usize::from(!is_last);
            match files[0] {
                None => {
                    assert_eq!(segment, None);
                    assert_eq!(found.emptied.len(), usize::from(indexes > 0));
                    assert_eq!(found.remove.len(), indexes);
                }
                Some(0) => {
                    assert_eq!(segment.is_some(), is_last);
                    let log = usize::from(!is_last);
                    assert_eq!(found.remove.len(), indexes + log);
                    assert_eq!(found.emptied.len(), log);
                }
                Some(_) => {
                    let is_damaged = [1, 2].iter().any(|i| matches!(files[*i], None | Some(409)))
                        || files[3] == Some(409);
                    assert_eq!(segment.unwrap().is_index_damaged, is_damaged, "{files:?}");
                    assert_eq!(found.remove, Vec::<String>::new());
                }
            }
        }
    }

    #[test]
    fn leftovers_go_and_foreign_files_stay() {
        let names = [
            "00000000000000000000.log",
            "00000000000000000000.log.deleted",
            "00000000000000000007.snapshot",
            "00000000000000000010.log.swap",
            "00000000000000000010.index.swap",
            "00000000000000000020.index.swap",
            "00000000000000000030.log.cleaned",
            "leader-epoch-checkpoint",
            "leader-epoch-checkpoint.tmp",
            "notes.txt",
            "partition.metadata",
        ];
        let entries: Vec<_> = names.iter().map(|n| entry(n, 0)).collect();
        let found = Inventory::of(&entries);
        assert_eq!(found.swaps, [Offset(10)]);
        assert_eq!(found.snapshots, [Offset(7)]);
        assert_eq!(found.segments.len(), 1);
        let remove = [
            "00000000000000000000.log.deleted",
            "00000000000000000030.log.cleaned",
            "leader-epoch-checkpoint.tmp",
            "00000000000000000020.index.swap",
        ];
        assert_eq!(found.remove, remove);
    }
}
