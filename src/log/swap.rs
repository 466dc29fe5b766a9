//! Finishes a compaction that a crash has interrupted while its result was being put in.
//!
//! `<n>.log.swap` holds, whole and synced, what the segments from `n` up to its own end held. A
//! crash may have left some of them, and the swap's indexes with their old or new names.

use std::path::Path;

use crate::host::OpenMode;
use crate::types::Offset;

use super::error::LogError;
use super::inventory::Inventory;
use super::names::{self, Kind};
use super::partition_dir::PartitionDir;
use super::scan::{BatchScan, RECOVERY_BYTES, ScanError};

/// Puts compacted segments in that were whole when the crash came. The segments they replace are
/// removed first; a crash in between leaves the swap file, and the same is done again.
pub(super) fn finish_swaps(dir: &PartitionDir, inventory: &Inventory) -> Result<(), LogError> {
    for base_offset in &inventory.swaps {
        let swap = |kind| {
            let name = names::segment_file(*base_offset, kind);
            dir.file(&format!("{name}{}", names::SWAP_SUFFIX))
        };
        let path = swap(Kind::Log);
        let end = end_of_file(dir, &path, *base_offset)?;
        let replaced = inventory.segments.iter().map(|s| s.base_offset);
        for replaced in replaced.filter(|b| b >= base_offset && *b < end) {
            // The log last: while it is there, all of this is done again.
            for kind in Kind::ALL.iter().rev() {
                dir.core
                    .remove_if_there(&dir.segment_file(replaced, *kind))?;
            }
        }
        dir.core.sync_dir(&dir.path())?;
        // The log last, here too.
        for kind in [Kind::OffsetIndex, Kind::TimeIndex, Kind::TxnIndex] {
            let to = dir.segment_file(*base_offset, kind);
            dir.core.rename_if_there(&swap(kind), &to)?;
        }
        dir.core.sync_dir(&dir.path())?;
        let to = dir.segment_file(*base_offset, Kind::Log);
        dir.core.rename_if_there(&swap(Kind::Log), &to)?;
    }
    dir.core.sync_dir(&dir.path())
}

fn end_of_file(dir: &PartitionDir, path: &Path, base_offset: Offset) -> Result<Offset, LogError> {
    let failed = |e| dir.core.read_failed(path, e);
    let file = dir.core.disk.open(path, OpenMode::Read).map_err(failed)?;
    let bytes = file.len().map_err(failed)?;
    let mut scan = BatchScan::new(&*file, 0, bytes, base_offset, RECOVERY_BYTES);
    let mut end = base_offset.next();
    loop {
        match scan.next_header() {
            Ok(Some(found)) => end = found.header.next_offset(),
            Ok(None) => return Ok(end),
            Err(ScanError::Io(e)) => return Err(failed(e)),
            Err(ScanError::Invalid { position, reason }) => {
                return Err(LogError::Corrupt {
                    path: path.to_owned(),
                    position,
                    reason,
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::types::Offset;

    use super::super::tests::support::*;

    /// Two compacted segments were to replace the first three of five; the crash came after each of
    /// the removals and renames.
    #[test]
    fn a_swap_is_finished_from_every_state() {
        for removed in 0..=2 {
            for renamed in 0..=2 {
                let mut fixture = Fixture::new(super::super::LogConfig {
                    segment_bytes: 2 * batch(3).size_bytes() as u32,
                    ..super::super::LogConfig::default()
                });
                fixture.append_many(10);
                fixture.dir().close(1).unwrap();
                fixture.kill();
                // The first two segments become one without the second batch.
                let log = |base: i64| fixture.file(&format!("{base:020}.log"));
                let first = fixture.disk.read(&log(0)).unwrap();
                let second = fixture.disk.read(&log(6)).unwrap();
                let kept = [&first[..first.len() / 2], &second[..]].concat();
                let swap = fixture.file("00000000000000000000.log.swap");
                fixture.disk.replace(&swap, &kept).unwrap();
                for base in [0, 6].into_iter().take(removed) {
                    fixture.disk.remove_file(&log(base)).unwrap();
                }
                for kind in ["index", "timeindex"].into_iter().take(renamed) {
                    let from = fixture.file(&format!("{:020}.{kind}", 6));
                    let to = fixture.file(&format!("{:020}.{kind}.swap", 0));
                    fixture.disk.rename(&from, &to).unwrap();
                }
                let report = fixture.open();
                assert!(report.partitions[0].log.is_ok());
                let bases: Vec<_> = all_batches(fixture.log())
                    .iter()
                    .map(|b| b.header.base_offset)
                    .collect();
                let expected = [0, 6, 9, 12, 15, 18, 21, 24, 27].map(Offset);
                assert_eq!(bases, expected, "{removed} {renamed}");
                assert!(fixture.names().iter().all(|n| !n.ends_with(".swap")));
            }
        }
    }
}
