//! Whether a log directory has room for what producers send.
//!
//! 1. Below the reserve (`klamm.log.dir.reserve.bytes`) producers are refused; the reserve is for
//!    what cannot be refused: indexes, checkpoints, the coordinators' records, the metadata.
//! 2. The system is asked again after so many appended bytes, and, while there is no room, with
//!    every batch: so appends go on as soon as there is space, and nobody has to come and say so.
//! 3. A directory whose space cannot be told has room.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use super::error::LogError;
use super::log_dir::LogDir;
use crate::host::{Disk, Space};

/// Between two looks, others may write to the file system too.
const LOOK_BYTES: u64 = 8 << 20;

#[derive(Default)]
pub(super) struct Room {
    reserve_bytes: AtomicU64,
    /// What may be appended before the system is asked again.
    left_bytes: AtomicI64,
    /// It was said that there is none.
    is_said: AtomicBool,
}

impl Room {
    pub fn set_reserve_bytes(&self, reserve_bytes: u64) {
        self.reserve_bytes.store(reserve_bytes, Ordering::Relaxed);
        self.left_bytes.store(0, Ordering::Relaxed);
    }

    /// Takes room for an append; `false`: there is none.
    pub fn take(&self, disk: &dyn Disk, dir: &Path, bytes: u64) -> bool {
        let bytes = bytes as i64;
        if self.left_bytes.fetch_sub(bytes, Ordering::Relaxed) >= bytes {
            return true;
        }
        let Ok(space) = disk.space(dir) else {
            return true;
        };
        let reserve_bytes = self.reserve_bytes.load(Ordering::Relaxed);
        let above = space.available_bytes.saturating_sub(reserve_bytes);
        let has_room = above >= bytes as u64;
        let left = if has_room {
            above.min(LOOK_BYTES) as i64 - bytes
        } else {
            0
        };
        self.left_bytes.store(left, Ordering::Relaxed);
        self.say(dir, has_room, space.available_bytes);
        has_room
    }

    /// A write has met the end of the space.
    pub fn is_used_up(&self) {
        self.left_bytes.store(0, Ordering::Relaxed);
    }

    fn say(&self, dir: &Path, has_room: bool, available_bytes: u64) {
        if self.is_said.swap(!has_room, Ordering::Relaxed) != has_room {
            return;
        }
        let dir = dir.display();
        match has_room {
            true => tracing::info!("log directory {dir} has room again: {available_bytes} bytes"),
            false => tracing::warn!(
                "log directory {dir} has only {available_bytes} bytes left: producers are refused"
            ),
        }
    }
}
impl LogDir {
    /// What producers may not use of the file system.
    pub fn set_reserve_bytes(&self, reserve_bytes: u64) {
        self.core.room.set_reserve_bytes(reserve_bytes);
    }

    pub fn space(&self) -> Result<Space, LogError> {
        let path = &self.core.path;
        let space = self.core.disk.space(path);
        space.map_err(|e| self.core.read_failed(path, e))
    }
}
