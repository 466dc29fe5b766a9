//! Files. The log and the checkpoints run over [`Disk`], so that a test can make the n-th call
//! fail, tear or vanish.
//!
//! Rules for callers:
//! 1. A write that failed may have happened in part. Nothing may be assumed about the bytes at and
//!    after its position.
//! 2. A failed [`File::sync`] means that unflushed data may be lost for good, even if a later one
//!    succeeds. It is never retried; the log directory goes offline.
//! 3. A new, renamed or removed name survives a power cut only after [`Disk::sync_dir`].

use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// The file must exist. Reading only.
    Read,
    /// The file must exist. Reading and writing.
    Write,
    /// The file is made if it is missing, and kept as it is if not. Reading and writing.
    Create,
}

/// Bytes of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    pub total_bytes: u64,
    pub available_bytes: u64,
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    pub name: String,
    pub is_dir: bool,
    /// Of a file.
    pub len: u64,
}

/// What is at a path, links followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathKind {
    Nothing,
    Dir,
    /// A file, or anything else that is no directory.
    File,
    LinkToNothing,
}

/// Held while this process owns a directory; released when dropped.
pub trait DirLock: Send + Sync {}

/// The largest segment of a Kafka's metadata; checkpoints and snapshots are far below.
const READ_BYTES_MAX: u64 = 1 << 30;

/// A file system.
pub trait Disk: Send + Sync {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>>;

    /// The entries of `dir`, sorted by name; a link is what it leads to, if that is there. Names
    /// that are not UTF-8 are left out.
    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>>;

    fn exists(&self, path: &Path) -> bool;

    fn kind(&self, path: &Path) -> PathKind {
        match (self.exists(path), self.list(path)) {
            (false, _) => PathKind::Nothing,
            (true, Ok(_)) => PathKind::Dir,
            (true, Err(_)) => PathKind::File,
        }
    }

    /// Whether `path` itself is a link.
    fn is_link(&self, _path: &Path) -> bool {
        false
    }

    /// `path` without links. On a disk that has none it is `path`.
    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.to_owned())
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()>;
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    fn remove_dir_all(&self, dir: &Path) -> io::Result<()>;
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Makes the names in `dir` durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Makes everything durable that was done to the file system which holds `dir`: cheaper than so
    /// many single calls for the files and directories of many logs.
    fn sync_all(&self, dir: &Path) -> io::Result<()>;

    /// The space of the file system that holds `path`.
    fn space(&self, path: &Path) -> io::Result<Space>;

    /// Takes the lock file `path` for this process; `WouldBlock` when another process has it.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn DirLock>>;

    /// The whole content of `path`, of at most [`READ_BYTES_MAX`].
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let file = self.open(path, OpenMode::Read)?;
        let file_bytes = file.len()?;
        if file_bytes > READ_BYTES_MAX {
            let text = format!("it has {file_bytes} bytes, more than the {READ_BYTES_MAX} of any");
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        let mut content = vec![0; file_bytes as usize];
        let read_bytes = file.read_at(&mut content, 0)?;
        content.truncate(read_bytes);
        Ok(content)
    }

    /// Replaces `path` by `content` so that after a crash either the old or the new content is
    /// there in whole: temporary file, sync, rename, sync of the directory.
    fn replace(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(".tmp");
        let temporary = PathBuf::from(temporary);
        let file = self.open(&temporary, OpenMode::Create)?;
        file.set_len(0)?;
        file.write_at(&mut [IoSlice::new(content)], 0)?;
        file.sync()?;
        self.rename(&temporary, path)?;
        self.sync_dir(path.parent().unwrap_or(Path::new(".")))
    }
}

/// An open file. All positions are from its start, in bytes; there is no cursor.
pub trait File: Send + Sync {
    /// Fills as much of `buffer` as the file has from `position` on; returns how much that was.
    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize>;

    /// Writes all of `parts`, one after the other, from `position` on. `parts` is scratch
    /// afterwards.
    fn write_at(&self, parts: &mut [IoSlice<'_>], position: u64) -> io::Result<()>;

    fn len(&self) -> io::Result<u64>;

    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Returns once all that was written would survive a power cut (fdatasync).
    fn sync(&self) -> io::Result<()>;

    /// Asks for dirty pages of the range to be written soon, without waiting for them. A hint: it
    /// promises nothing.
    fn start_write_back(&self, position: u64, len: u64) -> io::Result<()>;

    /// The descriptor, for sendfile; `None` when there is no real file behind.
    fn fd(&self) -> Option<BorrowedFd<'_>>;
}

pub use real::{RealDisk, read_given};

mod real {
    use std::fs;
    use std::os::fd::AsFd;
    use std::os::unix::fs::{FileExt, OpenOptionsExt};

    use super::*;

    /// How much is written at once, and where writes are cut. The kernel makes page cache folios as
    /// large as a write is (ext4 and XFS, up to 2 MiB); in a memory that is full of page cache it
    /// has to move pages about to find that much in one piece, which took a quarter of the
    /// processor time of a produce at full speed. Pieces of this size it finds without.
    const PIECE_BYTES: usize = 32 * 1024;

    /// The first `room_bytes` of `parts`; `None` when that is all of them.
    fn piece<'a>(parts: &'a [IoSlice<'_>], room_bytes: usize) -> Option<Vec<IoSlice<'a>>> {
        let mut left = room_bytes;
        for (at, part) in parts.iter().enumerate() {
            if part.len() > left {
                let whole = parts[..at].iter().map(|part| IoSlice::new(part));
                let cut = IoSlice::new(&part[..left]);
                return Some(whole.chain([cut]).filter(|part| !part.is_empty()).collect());
            }
            left -= part.len();
        }
        None
    }

    /// The machine's own file system.
    #[derive(Debug, Clone, Copy, Default)]
    pub struct RealDisk;

    /// A file that somebody named on the command line. It may be a pipe, which is waited for.
    pub fn read_given(path: &Path) -> io::Result<Vec<u8>> {
        fs::read(path)
    }

    struct RealFile {
        file: fs::File,
    }

    struct RealLock {
        _file: fs::File,
    }

    impl DirLock for RealLock {}

    impl Disk for RealDisk {
        fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
            let mut options = fs::OpenOptions::new();
            // A pipe in the place of a file must not hold whoever opens it.
            let nonblock = rustix::fs::OFlags::NONBLOCK.bits() as i32;
            options.read(true).custom_flags(nonblock);
            match mode {
                OpenMode::Read => {}
                OpenMode::Write => {
                    options.write(true);
                }
                OpenMode::Create => {
                    options.write(true).create(true);
                }
            }
            let file = options.open(path)?;
            if !file.metadata()?.is_file() {
                return Err(io::Error::other("it is not a regular file"));
            }
            Ok(Arc::new(RealFile { file }))
        }

        fn list(&self, dir: &Path) -> io::Result<Vec<Entry>> {
            let mut entries = Vec::new();
            for entry in fs::read_dir(dir)? {
                let entry = entry?;
                let Ok(name) = entry.file_name().into_string() else {
                    continue;
                };
                let file_type = entry.file_type()?;
                // One that is damaged is not to hide the others.
                if file_type.is_dir() {
                    let (is_dir, len) = (true, 0);
                    entries.push(Entry { name, is_dir, len });
                    continue;
                }
                let target = match file_type.is_symlink() {
                    true => fs::metadata(entry.path()).ok(),
                    false => None,
                };
                // A file may be deleted between the listing and the look at it.
                match target.map_or_else(|| entry.metadata(), Ok) {
                    Ok(meta) => {
                        entries.push(Entry {
                            name,
                            is_dir: meta.is_dir(),
                            len: meta.len(),
                        });
                    }
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
            }
            entries.sort();
            Ok(entries)
        }

        fn exists(&self, path: &Path) -> bool {
            path.exists()
        }

        fn kind(&self, path: &Path) -> PathKind {
            match fs::metadata(path) {
                Ok(meta) if meta.is_dir() => PathKind::Dir,
                Ok(_) => PathKind::File,
                Err(_) if path.is_symlink() => PathKind::LinkToNothing,
                Err(_) => PathKind::Nothing,
            }
        }

        fn is_link(&self, path: &Path) -> bool {
            path.is_symlink()
        }

        fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
            fs::canonicalize(path)
        }

        fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
            fs::create_dir_all(dir)
        }

        fn remove_file(&self, path: &Path) -> io::Result<()> {
            fs::remove_file(path)
        }

        fn remove_dir_all(&self, dir: &Path) -> io::Result<()> {
            fs::remove_dir_all(dir)
        }

        fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
            fs::rename(from, to)
        }

        fn sync_dir(&self, dir: &Path) -> io::Result<()> {
            let dir = if dir.as_os_str().is_empty() {
                Path::new(".")
            } else {
                dir
            };
            fs::File::open(dir)?.sync_all()
        }

        fn sync_all(&self, dir: &Path) -> io::Result<()> {
            Ok(rustix::fs::syncfs(fs::File::open(dir)?)?)
        }

        fn space(&self, path: &Path) -> io::Result<Space> {
            let stat = rustix::fs::statvfs(path)?;
            Ok(Space {
                total_bytes: stat.f_blocks * stat.f_frsize,
                available_bytes: stat.f_bavail * stat.f_frsize,
            })
        }

        fn lock(&self, path: &Path) -> io::Result<Box<dyn DirLock>> {
            let file = fs::OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .open(path)?;
            let operation = rustix::fs::FlockOperation::NonBlockingLockExclusive;
            rustix::fs::flock(&file, operation)?;
            // Java's locks are of another kind, which does not see those of flock.
            match rustix::fs::fcntl_lock(&file, operation) {
                Err(rustix::io::Errno::ACCESS) => return Err(io::ErrorKind::WouldBlock.into()),
                locked => locked?,
            }
            Ok(Box::new(RealLock { _file: file }))
        }
    }

    impl File for RealFile {
        fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
            let mut filled = 0;
            while filled < buffer.len() {
                match self
                    .file
                    .read_at(&mut buffer[filled..], position + filled as u64)
                {
                    Ok(0) => break,
                    Ok(read_bytes) => filled += read_bytes,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(filled)
        }

        fn write_at(&self, parts: &mut [IoSlice<'_>], position: u64) -> io::Result<()> {
            let mut parts = parts;
            let mut position = position;
            // Leading empty parts would make a short write look like no progress.
            IoSlice::advance_slices(&mut parts, 0);
            while !parts.is_empty() {
                let room_bytes = PIECE_BYTES - (position % PIECE_BYTES as u64) as usize;
                let written = match piece(parts, room_bytes) {
                    Some(piece) => rustix::io::pwritev(&self.file, &piece, position),
                    None => rustix::io::pwritev(&self.file, parts, position),
                };
                match written {
                    Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                    Ok(written) => {
                        position += written as u64;
                        IoSlice::advance_slices(&mut parts, written);
                    }
                    Err(rustix::io::Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            Ok(())
        }

        fn len(&self) -> io::Result<u64> {
            Ok(self.file.metadata()?.len())
        }

        fn set_len(&self, len: u64) -> io::Result<()> {
            // ext4 writes a file back when it is closed after it was cut to nothing, even if it was
            // empty before: a hundred thousand times that is minutes.
            if self.len()? == len {
                return Ok(());
            }
            self.file.set_len(len)
        }

        fn sync(&self) -> io::Result<()> {
            self.file.sync_data()
        }

        fn start_write_back(&self, position: u64, len: u64) -> io::Result<()> {
            start_write_back(self.file.as_fd(), position, len)
        }

        fn fd(&self) -> Option<BorrowedFd<'_>> {
            Some(self.file.as_fd())
        }
    }

    /// `sync_file_range(SYNC_FILE_RANGE_WRITE)`: rustix has no binding for it, and posix_fadvise
    /// with DONTNEED (which also starts write-back) would throw the pages away.
    fn start_write_back(fd: BorrowedFd<'_>, position: u64, len: u64) -> io::Result<()> {
        use std::os::fd::AsRawFd;
        // SAFETY: the descriptor is open for as long as `fd` lives, and the call takes no pointers.
        let result = unsafe {
            libc::sync_file_range(
                fd.as_raw_fd(),
                position as i64,
                len as i64,
                libc::SYNC_FILE_RANGE_WRITE,
            )
        };
        if result == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replace_keeps_one_whole_version() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("checkpoint");
        RealDisk.replace(&path, b"first, and longer").unwrap();
        RealDisk.replace(&path, b"second").unwrap();
        assert_eq!(RealDisk.read(&path).unwrap(), b"second");
        assert_eq!(RealDisk.list(dir.path()).unwrap().len(), 1);
    }

    #[test]
    fn a_link_is_what_it_leads_to() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        RealDisk.create_dir_all(&at("dir")).unwrap();
        RealDisk.replace(&at("file"), b"12345").unwrap();
        for target in ["dir", "file", "nothing"] {
            let link = format!("to-{target}");
            std::os::unix::fs::symlink(at(target), at(&link)).unwrap();
        }
        let entries = RealDisk.list(dir.path()).unwrap();
        let dirs = entries.iter().filter(|entry| entry.is_dir);
        let dirs: Vec<&str> = dirs.map(|entry| &*entry.name).collect();
        assert_eq!(dirs, ["dir", "to-dir"]);
        let file = entries.iter().find(|entry| entry.name == "to-file");
        assert_eq!(file.unwrap().len, 5);
        assert!(entries.iter().any(|entry| entry.name == "to-nothing"));
        let kind = |name: &str| RealDisk.kind(&at(name));
        assert_eq!(kind("to-dir"), PathKind::Dir);
        assert_eq!(kind("to-file"), PathKind::File);
        assert_eq!(kind("to-nothing"), PathKind::LinkToNothing);
        assert_eq!(kind("nothing"), PathKind::Nothing);
        let real = |name: &str| RealDisk.real_path(&at(name)).unwrap();
        assert_eq!(real("to-dir"), real("dir"));
    }

    #[test]
    fn a_lock_is_held_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".lock");
        let held = RealDisk.lock(&path).unwrap();
        let second = RealDisk.lock(&path).map(|_| ()).unwrap_err();
        assert_eq!(second.kind(), io::ErrorKind::WouldBlock);
        drop(held);
        RealDisk.lock(&path).unwrap();
    }

    #[test]
    fn parts_are_written_one_after_the_other() {
        let dir = tempfile::tempdir().unwrap();
        let file = RealDisk
            .open(&dir.path().join("f"), OpenMode::Create)
            .unwrap();
        let mut parts = [IoSlice::new(b""), IoSlice::new(b"ab"), IoSlice::new(b"cde")];
        file.write_at(&mut parts, 3).unwrap();
        let mut buffer = [0u8; 16];
        assert_eq!(file.read_at(&mut buffer, 3).unwrap(), 5);
        assert_eq!(&buffer[..5], b"abcde");
    }

    #[test]
    fn a_write_of_many_pieces_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let file = RealDisk
            .open(&dir.path().join("f"), OpenMode::Create)
            .unwrap();
        let bytes: Vec<u8> = (0..200_000u32).map(|at| (at % 251) as u8).collect();
        let (first, rest) = bytes.split_at(100_001);
        let (second, third) = rest.split_at(7);
        let mut parts = [first, second, third].map(IoSlice::new);
        file.write_at(&mut parts, 32_761).unwrap();
        let mut written = vec![0; bytes.len() + 1];
        assert_eq!(file.read_at(&mut written, 32_761).unwrap(), bytes.len());
        assert_eq!(&written[..bytes.len()], bytes);
    }
}
