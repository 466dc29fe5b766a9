//! A disk in memory that fails and forgets.
//!
//! The fault model:
//!
//! 1. The n-th call that changes something fails; a write may have happened in part (its first
//!    half), a sync may have synced nothing. Every later call works: that nobody makes one is what
//!    the tests check.
//! 2. A killed process loses nothing that was written.
//! 3. A power cut loses, of each file, what was written since its last sync, and of each directory
//!    the names made, changed or removed since its last sync. What was not synced may also survive:
//!    all of it, or the length of a file but not its bytes, which then are zeros.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::host::disk::{DirLock, Entry};
use crate::host::{Disk, File, OpenMode, Space};

/// What a crash does to what was not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crash {
    Kill,
    /// Unsynced bytes and names are gone.
    PowerCut,
    /// Names survive, unsynced bytes are gone.
    PowerCutKeepsNames,
    /// Names and lengths survive, unsynced bytes are zeros.
    PowerCutLeavesZeros,
    /// Names survive; all bytes of about every second file do, chosen by the number.
    PowerCutKeepsSome(u32),
}

impl Crash {
    pub const ALL: [Crash; 8] = [
        Crash::Kill,
        Crash::PowerCut,
        Crash::PowerCutKeepsNames,
        Crash::PowerCutLeavesZeros,
        Crash::PowerCutKeepsSome(1),
        Crash::PowerCutKeepsSome(2),
        Crash::PowerCutKeepsSome(3),
        Crash::PowerCutKeepsSome(4),
    ];

    /// All but the kill, which loses nothing.
    pub const POWER_CUTS: &[Crash] = Crash::ALL.split_at(1).1;

    /// What it does to this file.
    fn of_file(self, path: &Path) -> Crash {
        let Crash::PowerCutKeepsSome(seed) = self else {
            return self;
        };
        let mut hasher = DefaultHasher::new();
        (seed, path).hash(&mut hasher);
        match hasher.finish() % 2 {
            0 => Crash::Kill,
            _ => Crash::PowerCut,
        }
    }
}

#[derive(Default)]
struct Inode {
    bytes: Vec<u8>,
    synced: Vec<u8>,
}

#[derive(Clone)]
enum Node {
    Dir,
    File(Arc<Mutex<Inode>>),
}

#[derive(Default)]
struct State {
    names: BTreeMap<PathBuf, Node>,
    synced_names: BTreeMap<PathBuf, Node>,
    changes: u64,
    reads: u64,
    fail_at: Option<u64>,
    /// The failure is that there is no space.
    is_full: bool,
    /// It is a bug in place of an error.
    is_panic: bool,
    failed: bool,
    /// Changes that were tried after the failure.
    changes_after_failure: u64,
}

#[derive(Clone)]
pub struct FaultyDisk {
    state: Arc<Mutex<State>>,
}

struct FaultyFile {
    disk: FaultyDisk,
    inode: Arc<Mutex<Inode>>,
}

struct NoLock;

impl DirLock for NoLock {}

impl FaultyDisk {
    pub fn new() -> FaultyDisk {
        let disk = FaultyDisk {
            state: Arc::default(),
        };
        {
            let mut state = disk.state.lock();
            state.names.insert(disk.root(), Node::Dir);
            state.synced_names = state.names.clone();
        }
        disk
    }

    pub fn root(&self) -> PathBuf {
        PathBuf::from("/logs")
    }

    /// The `n`-th change from now on fails, 1 being the next.
    pub fn fail_at(&self, n: u64) {
        let mut state = self.state.lock();
        state.fail_at = Some(state.changes + n);
    }

    /// As `fail_at`, for want of space.
    pub fn fill_at(&self, n: u64) {
        self.fail_at(n);
        self.state.lock().is_full = true;
    }

    /// As `fail_at`, by a panic.
    pub fn panic_at(&self, n: u64) {
        self.fail_at(n);
        self.state.lock().is_panic = true;
    }

    /// Takes back what `fail_at` or `fill_at` has set and has not come.
    pub fn fail_no_more(&self) {
        self.state.lock().fail_at = None;
    }

    pub fn has_failed(&self) -> bool {
        self.state.lock().failed
    }

    pub fn changes_after_failure(&self) -> u64 {
        self.state.lock().changes_after_failure
    }

    pub fn reads(&self) -> u64 {
        self.state.lock().reads
    }

    pub fn changes(&self) -> u64 {
        self.state.lock().changes
    }

    /// What the next process finds. This disk is left as it is.
    pub fn crash(&self, crash: Crash) -> FaultyDisk {
        let state = self.state.lock();
        let names = match crash {
            Crash::PowerCut => &state.synced_names,
            _ => &state.names,
        };
        let mut after = BTreeMap::new();
        for (path, node) in names {
            // A name in a directory that is gone is gone too; parents sort first.
            let has_parent = path.parent().is_some_and(|p| after.contains_key(p));
            if !has_parent && *path != self.root() {
                continue;
            }
            let node = match node {
                Node::Dir => Node::Dir,
                Node::File(inode) => {
                    let inode = inode.lock().after(crash.of_file(path));
                    Node::File(Arc::new(Mutex::new(inode)))
                }
            };
            after.insert(path.clone(), node);
        }
        let disk = FaultyDisk::new();
        let mut new = disk.state.lock();
        new.names = after.clone();
        new.synced_names = after;
        drop(new);
        disk
    }

    /// Counts a change; fails if it is the one.
    fn change(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        state.changes += 1;
        if state.failed {
            state.changes_after_failure += 1;
        }
        if state.fail_at == Some(state.changes) {
            state.failed = true;
            assert!(!state.is_panic, "planted in the disk");
            return Err(match state.is_full {
                true => io::ErrorKind::StorageFull.into(),
                false => io::Error::other("the disk is broken"),
            });
        }
        Ok(())
    }
}

impl Inode {
    fn after(&self, crash: Crash) -> Inode {
        let bytes = match crash {
            Crash::Kill => self.bytes.clone(),
            Crash::PowerCut | Crash::PowerCutKeepsNames | Crash::PowerCutKeepsSome(_) => {
                self.synced.clone()
            }
            Crash::PowerCutLeavesZeros => {
                let mut bytes = self.bytes.clone();
                for (at, byte) in bytes.iter_mut().enumerate() {
                    let synced = self.synced.get(at).copied();
                    if synced != Some(*byte) {
                        *byte = synced.unwrap_or(0);
                    }
                }
                bytes
            }
        };
        Inode {
            synced: bytes.clone(),
            bytes,
        }
    }
}

fn not_found() -> io::Error {
    io::ErrorKind::NotFound.into()
}

impl Disk for FaultyDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let is_there = self.exists(path);
        if !is_there {
            if mode != OpenMode::Create {
                return Err(not_found());
            }
            self.change()?;
        }
        let mut state = self.state.lock();
        let parent = path.parent().unwrap().to_owned();
        if !state.names.contains_key(&parent) {
            return Err(not_found());
        }
        let node = state
            .names
            .entry(path.to_owned())
            .or_insert_with(|| Node::File(Arc::default()));
        match node {
            Node::Dir => Err(io::ErrorKind::IsADirectory.into()),
            Node::File(inode) => Ok(Arc::new(FaultyFile {
                inode: Arc::clone(inode),
                disk: self.clone(),
            })),
        }
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>> {
        let state = self.state.lock();
        if !state.names.contains_key(dir) {
            return Err(not_found());
        }
        let children = state.names.iter().filter(|(p, _)| p.parent() == Some(dir));
        let mut entries: Vec<_> = children
            .map(|(path, node)| Entry {
                name: path.file_name().unwrap().to_str().unwrap().to_owned(),
                is_dir: matches!(node, Node::Dir),
                len: match node {
                    Node::Dir => 0,
                    Node::File(inode) => inode.lock().bytes.len() as u64,
                },
            })
            .collect();
        entries.sort();
        Ok(entries)
    }

    fn exists(&self, path: &Path) -> bool {
        self.state.lock().names.contains_key(path)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        if self.exists(dir) {
            return Ok(());
        }
        self.change()?;
        let mut state = self.state.lock();
        for dir in dir.ancestors() {
            if state.names.contains_key(dir) || dir.parent().is_none() {
                break;
            }
            state.names.insert(dir.to_owned(), Node::Dir);
        }
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        if !self.exists(path) {
            return Err(not_found());
        }
        self.change()?;
        self.state.lock().names.remove(path);
        Ok(())
    }

    fn remove_dir_all(&self, dir: &Path) -> io::Result<()> {
        if !self.exists(dir) {
            return Err(not_found());
        }
        self.change()?;
        self.state.lock().names.retain(|p, _| !p.starts_with(dir));
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        if !self.exists(from) {
            return Err(not_found());
        }
        self.change()?;
        let mut state = self.state.lock();
        let moved: Vec<_> = state
            .names
            .iter()
            .filter(|(p, _)| p.starts_with(from))
            .map(|(p, n)| (p.clone(), n.clone()))
            .collect();
        for (path, node) in moved {
            state.names.remove(&path);
            let rest = path.strip_prefix(from).unwrap();
            let path = if rest.as_os_str().is_empty() {
                to.to_owned()
            } else {
                to.join(rest)
            };
            state.names.insert(path, node);
        }
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.change()?;
        let mut state = self.state.lock();
        let state = &mut *state;
        state.synced_names.retain(|p, _| p.parent() != Some(dir));
        for (path, node) in &state.names {
            if path.parent() == Some(dir) {
                state.synced_names.insert(path.clone(), node.clone());
            }
        }
        Ok(())
    }

    fn sync_all(&self, _: &Path) -> io::Result<()> {
        self.change()?;
        let mut state = self.state.lock();
        state.synced_names = state.names.clone();
        for node in state.names.values() {
            if let Node::File(inode) = node {
                let mut inode = inode.lock();
                inode.synced = inode.bytes.clone();
            }
        }
        Ok(())
    }

    fn space(&self, _: &Path) -> io::Result<Space> {
        Ok(Space {
            total_bytes: 1000,
            available_bytes: 500,
        })
    }

    fn lock(&self, _: &Path) -> io::Result<Box<dyn DirLock>> {
        Ok(Box::new(NoLock))
    }
}

impl File for FaultyFile {
    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        self.disk.state.lock().reads += 1;
        let inode = self.inode.lock();
        let start = (position as usize).min(inode.bytes.len());
        let end = (start + buffer.len()).min(inode.bytes.len());
        buffer[..end - start].copy_from_slice(&inode.bytes[start..end]);
        Ok(end - start)
    }

    fn write_at(&self, parts: &mut [IoSlice<'_>], position: u64) -> io::Result<()> {
        let mut whole: Vec<u8> = parts.iter().flat_map(|p| p.iter().copied()).collect();
        let result = self.disk.change();
        if result.is_err() {
            whole.truncate(whole.len() / 2);
        }
        let mut inode = self.inode.lock();
        let end = position as usize + whole.len();
        if inode.bytes.len() < end {
            inode.bytes.resize(end, 0);
        }
        inode.bytes[position as usize..end].copy_from_slice(&whole);
        result
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.inode.lock().bytes.len() as u64)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.disk.change()?;
        self.inode.lock().bytes.resize(len as usize, 0);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.change()?;
        let mut inode = self.inode.lock();
        inode.synced = inode.bytes.clone();
        Ok(())
    }

    fn start_write_back(&self, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
