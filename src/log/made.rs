//! `klamm-made-logs`: of which topic a log was last made here, by name. It tells whether a
//! directory of another topic is the remains of an older one, or in the place of a log that was
//! here.
//!
//! ```text
//! 0                                  the version of this file
//! t 0 avAb1ZKUQCCnzl1IScvQVw         topic, partition, topic id; the last line of a name counts
//! ```
//!
//! 1. A log's line is there before its directory is, and that is not made before the directory of
//!    an older topic is out of the way. So a crash leaves that one in its place only as long as
//!    the file has no line of the newer topic.
//! 2. A line is synced with the log's first flush, as its `partition.metadata` is.
//! 3. A crash leaves a part of the last lines: what has no newline after it is none.
//! 4. Without the file, or with one that cannot be read or is damaged, every log may have been
//!    here, until the metadata has told which ones are, and none of them is lost.

use std::collections::BTreeMap;
use std::io::IoSlice;

use crate::host::OpenMode;
use crate::types::{TopicId, TopicPartition, parse_base64_uuid, with_causes};

use super::dir_core::DirCore;
use super::error::LogError;
use super::log_dir::LogDir;

const FILE: &str = "klamm-made-logs";
const VERSION: &str = "0";
/// The file is written anew when it has so many lines beside twice the ones that count.
const DEAD_LINES_MAX: usize = 1000;

type Ids = BTreeMap<TopicPartition, TopicId>;

#[derive(Default)]
pub(super) struct MadeLogs {
    ids: Ids,
    /// The file has them all (4).
    is_known: bool,
    lines: usize,
    bytes: u64,
    is_synced: bool,
}

impl MadeLogs {
    /// `None`: damaged.
    fn parse(content: &[u8]) -> Option<MadeLogs> {
        let end = content.iter().rposition(|byte| *byte == b'\n');
        let content = &content[..end.map_or(0, |newline| newline + 1)];
        let mut made = MadeLogs {
            is_known: true,
            bytes: content.len() as u64,
            ..MadeLogs::default()
        };
        let mut lines = std::str::from_utf8(content).ok()?.lines();
        if lines.next()? != VERSION || content.contains(&0) {
            return None;
        }
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            let [topic, partition, id] = words[..] else {
                return None;
            };
            let (topic, partition) = (topic.into(), partition.parse().ok()?);
            let id = TopicId(parse_base64_uuid(id)?);
            made.ids.insert(TopicPartition { topic, partition }, id);
            made.lines += 1;
        }
        Some(made)
    }

    fn has_many_dead_lines(&self) -> bool {
        self.lines > 2 * self.ids.len() + DEAD_LINES_MAX
    }
}

fn line(topic_partition: &TopicPartition, topic_id: TopicId) -> String {
    let TopicPartition { topic, partition } = topic_partition;
    format!("{topic} {partition} {topic_id}\n")
}

impl LogDir {
    /// Whether a log of this topic may have been in this directory.
    pub fn may_have_had(&self, topic_partition: &TopicPartition, topic_id: TopicId) -> bool {
        let made = self.core.made.lock();
        !made.is_known || made.ids.get(topic_partition) == Some(&topic_id)
    }

    /// Whether the file has a line of every log that is here.
    pub fn has_all_made(&self) -> bool {
        self.core.made.lock().is_known
    }

    /// The log of this name is that topic's.
    pub fn note_made(
        &self,
        topic_partition: &TopicPartition,
        topic_id: TopicId,
    ) -> Result<(), LogError> {
        self.core.note_made(topic_partition, topic_id)
    }

    /// All that is to be here was noted, and is here (4).
    pub fn knows_made_logs(&self) -> Result<(), LogError> {
        let core = &self.core;
        let mut made = {
            let (futures, logs) = (core.futures.lock(), core.logs.lock());
            let mut made = core.made.lock();
            let is_here =
                |name: &TopicPartition| logs.contains_key(name) || futures.contains_key(name);
            made.ids.retain(|name, _| is_here(name));
            made
        };
        match made.is_known {
            true => Ok(()),
            false => core.rewrite_made(&mut made),
        }
    }

    pub(super) fn read_made(&self) {
        let path = self.core.path.join(FILE);
        let content = self.core.read_if_there(&path);
        let made = content.map(|content| content.map(|content| MadeLogs::parse(&content)));
        let why = match made {
            Ok(None) => return,
            Ok(Some(Some(made))) => return *self.core.made.lock() = made,
            Ok(Some(None)) => format!("{} is damaged", path.display()),
            Err(error) => with_causes(&error),
        };
        tracing::warn!("{why}: it is not used, and written anew");
    }
}

impl DirCore {
    pub fn note_made(
        &self,
        topic_partition: &TopicPartition,
        topic_id: TopicId,
    ) -> Result<(), LogError> {
        let mut made = self.made.lock();
        let before = made.ids.insert(topic_partition.clone(), topic_id);
        if !made.is_known || before == Some(topic_id) {
            return Ok(());
        }
        if made.has_many_dead_lines() && self.rewrite_made(&mut made).is_ok() {
            return Ok(());
        }
        let line = line(topic_partition, topic_id);
        let path = self.path.join(FILE);
        made.is_synced = false;
        self.change("write", &path, || {
            let file = self.disk.open(&path, OpenMode::Create)?;
            file.write_at(&mut [IoSlice::new(line.as_bytes())], made.bytes)
        })?;
        made.lines += 1;
        made.bytes += line.len() as u64;
        Ok(())
    }

    /// A log is out: a later one of this name and topic is noted anew.
    pub fn forget_made(&self, topic_partition: &TopicPartition, topic_id: TopicId) {
        let mut made = self.made.lock();
        if made.ids.get(topic_partition) == Some(&topic_id) {
            made.ids.remove(topic_partition);
        }
    }

    pub fn sync_made(&self) -> Result<(), LogError> {
        let mut made = self.made.lock();
        if made.is_known && !made.is_synced {
            let path = self.path.join(FILE);
            self.change("sync", &path, || {
                self.disk.open(&path, OpenMode::Write)?.sync()
            })?;
            made.is_synced = true;
        }
        Ok(())
    }

    fn rewrite_made(&self, made: &mut MadeLogs) -> Result<(), LogError> {
        let mut text = format!("{VERSION}\n");
        for (topic_partition, topic_id) in &made.ids {
            text += &line(topic_partition, *topic_id);
        }
        self.replace(&self.path.join(FILE), text.as_bytes())?;
        made.lines = made.ids.len();
        made.bytes = text.len() as u64;
        (made.is_known, made.is_synced) = (true, true);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use uuid::Uuid;

    use super::*;
    use crate::host::Disk;
    use crate::log::tests::faulty_disk::{Crash, FaultyDisk};
    use crate::log::{FileCache, LogConfig};
    use crate::record::BatchBuilder;
    use crate::types::TimestampMs;

    fn name(partition: i32) -> TopicPartition {
        let topic = "t".into();
        TopicPartition { topic, partition }
    }

    fn id(number: u128) -> TopicId {
        TopicId(Uuid::from_u128(number))
    }

    const HEADER: &str = "0\n";

    fn open(disk: &FaultyDisk) -> LogDir {
        let files = Arc::new(FileCache::new(10));
        let dir = LogDir::open(Arc::new(disk.clone()), &disk.root(), files).unwrap();
        dir.read_made();
        dir
    }

    #[test]
    fn what_a_crash_leaves_of_the_last_line_is_none() {
        let lines = [line(&name(0), id(1)), line(&name(0), id(2))];
        let whole = [HEADER, &lines[0], &lines[1]].concat();
        for cut in HEADER.len()..whole.len() {
            for zeros in [0, whole.len() - cut] {
                let mut content = whole.as_bytes()[..cut].to_vec();
                content.resize(cut + zeros, 0);
                let made = MadeLogs::parse(&content).unwrap();
                let lines = usize::from(cut >= HEADER.len() + lines[0].len());
                assert_eq!(made.lines, lines);
                assert_eq!(made.ids.get(&name(0)), [id(1)][..lines].first());
            }
        }
        let made = MadeLogs::parse(whole.as_bytes()).unwrap();
        assert_eq!(made.ids.get(&name(0)), Some(&id(2)));
        let id = "AAAAAAAAAAAAAAAAAAAAAQ";
        let damaged = [
            format!("{HEADER}t 0\n"),
            format!("{HEADER}t x {id}\n"),
            format!("{HEADER}t 0 {id} 1\n"),
            format!("{HEADER}\0\0t 0 {id}\n"),
            format!("{HEADER}\n"),
            format!("t 0 {id}\n"),
            "\0".repeat(200),
            String::new(),
        ];
        for damaged in damaged {
            assert!(MadeLogs::parse(damaged.as_bytes()).is_none(), "{damaged:?}");
        }
    }

    #[test]
    fn a_line_is_as_durable_as_the_first_records_of_its_log() {
        for crash in Crash::ALL {
            let disk = FaultyDisk::new();
            let dir = open(&disk);
            assert!(dir.may_have_had(&name(0), id(9)));
            dir.knows_made_logs().unwrap();
            for number in 1..=2 {
                let now = TimestampMs(1);
                let config = Arc::new(LogConfig::default());
                let made = dir.create_log(name(0), id(number), config, now).unwrap();
                let mut builder = BatchBuilder::new();
                builder.append(now, None, Some(b"value"));
                let batches = [builder.build().unwrap()];
                made.append_as_follower(&batches, now).unwrap();
                made.flush().unwrap();
                if number == 1 {
                    dir.delete_log(&name(0), now).unwrap();
                }
            }
            let dir = open(&disk.crash(crash));
            assert!(dir.may_have_had(&name(0), id(2)), "{crash:?}");
            for other in [id(1), id(9)] {
                assert!(!dir.may_have_had(&name(0), other), "{crash:?}");
            }
        }
    }

    #[test]
    fn lines_that_do_not_count_go_at_last() {
        let disk = FaultyDisk::new();
        let dir = open(&disk);
        dir.knows_made_logs().unwrap();
        for number in 0..2 * DEAD_LINES_MAX as u128 {
            dir.note_made(&name(0), id(number)).unwrap();
            dir.note_made(&name(1), id(0)).unwrap();
        }
        let content = disk.read(&disk.root().join(FILE)).unwrap();
        let made = MadeLogs::parse(&content).unwrap();
        assert!(made.lines < DEAD_LINES_MAX + 10);
        assert_eq!(made.ids, dir.core.made.lock().ids);
    }
}
