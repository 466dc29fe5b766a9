//! `kafka-dump-log`: shows the files of a partition: segments, indexes, aborted transactions,
//! producer snapshots.
//!
//! 1. A log that is being written is no error: what is not there yet reads as empty.
//!
//! There is no decoder for the topic of tiered storage, which is not there either.

use std::path::Path;

use super::common::require;
use super::dump_batch::{Detail, print_batch};
use super::dump_index::{index, producer_snapshot, time_index, txn_index};
use super::exit::{Done, Exit};
use super::io::Io;
use super::options::{HELP, Opt, Options, VERSION, flag, text, typed};
use crate::host::{Disk, OpenMode, RealDisk};
use crate::record::{Batch, BatchPrefix};
use crate::wire::RecordHome;

const PURPOSE: &str = "This tool helps to parse a log file and dump its contents to the console, \
                       useful for debugging a seemingly corrupt log segment.";

const OPTIONS: &[Opt] = &[
    flag("print-data-log", "Show records with their content."),
    flag("verify-index-only", "Check an index without showing it."),
    flag(
        "index-sanity-check",
        "Check an index as a broker does at its start.",
    ),
    text("files", "file1, file2, ...", "REQUIRED: The files to show."),
    typed(
        "max-message-size",
        "Integer",
        "size",
        "Accepted; has no effect.",
    )
    .or("5242880"),
    typed(
        "max-bytes",
        "Integer",
        "size",
        "How much of a segment is read.",
    )
    .or("2147483647"),
    flag("deep-iteration", "Show records."),
    text(
        "value-decoder-class",
        "",
        "Only the string decoder is known.",
    )
    .or("org.apache.kafka.tools.api.StringDecoder")
    .optional_argument(),
    text("key-decoder-class", "", "Only the string decoder is known.")
        .or("org.apache.kafka.tools.api.StringDecoder")
        .optional_argument(),
    flag("offsets-decoder", "The files are of __consumer_offsets."),
    flag(
        "transaction-log-decoder",
        "The files are of __transaction_state.",
    ),
    flag(
        "cluster-metadata-decoder",
        "The files are of __cluster_metadata.",
    ),
    flag("remote-log-metadata-decoder", "Not supported yet."),
    flag(
        "share-group-state-decoder",
        "The files are of __share_group_state.",
    ),
    flag("skip-record-metadata", "Show only the content of records."),
    HELP,
    VERSION,
];

/// `--max-bytes` where nobody has said it: only then Kafka's tool looks at what is left over.
const WHOLE_SEGMENT: u64 = i32::MAX as u64;

/// In the order in which Kafka's tool looks for them.
const DECODERS: [(&str, RecordHome); 5] = [
    ("offsets-decoder", RecordHome::Groups),
    ("transaction-log-decoder", RecordHome::Transactions),
    ("cluster-metadata-decoder", RecordHome::Metadata),
    ("remote-log-metadata-decoder", RecordHome::RemoteLog),
    ("share-group-state-decoder", RecordHome::ShareGroups),
];

pub async fn run(io: &mut Io, args: &[String]) -> Done {
    if args.is_empty() {
        return Err(Exit::usage(PURPOSE, OPTIONS));
    }
    let options = super::common::parse(OPTIONS, args, PURPOSE)?;
    require(&options, OPTIONS, &["files"])?;
    if home(&options) == Some(RecordHome::RemoteLog) {
        let text = "klamm: --remote-log-metadata-decoder is not supported yet";
        return Err(Exit::error(text));
    }
    let max_bytes = options.number::<u64>("max-bytes")?.unwrap_or(u64::MAX);
    for file in options
        .all("files")
        .iter()
        .flat_map(|list| list.split(','))
        .map(str::trim)
    {
        io.line(format!("Dumping {file}"));
        let extension = Path::new(file).extension().and_then(|e| e.to_str());
        match extension {
            Some("log") | Some("checkpoint") => segment(io, file, &options, max_bytes)?,
            Some("index") => index(io, file, mode(&options))?,
            Some("timeindex") => time_index(io, file, mode(&options))?,
            Some("snapshot") => producer_snapshot(io, file)?,
            Some("txnindex") => txn_index(io, file)?,
            _ => io.error_line(format!("Ignoring unknown file {file}")),
        }
    }
    Ok(())
}

fn home(options: &Options) -> Option<RecordHome> {
    let asked = DECODERS.iter().find(|(name, _)| options.has(name));
    asked.map(|(_, home)| *home)
}

/// What is done with an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexMode {
    Show,
    Verify,
    Sanity,
}

fn mode(options: &Options) -> IndexMode {
    match (
        options.has("index-sanity-check"),
        options.has("verify-index-only"),
    ) {
        (true, _) => IndexMode::Sanity,
        (false, true) => IndexMode::Verify,
        (false, false) => IndexMode::Show,
    }
}

/// The offset in a file's name; Kafka's tool takes it for granted.
pub fn base_offset(file: &str) -> i64 {
    let name = Path::new(file)
        .file_name()
        .and_then(|n| n.to_str())
        .unwrap_or_default();
    name.split(['.', '-'])
        .next()
        .and_then(|n| n.parse().ok())
        .unwrap_or(0)
}

fn segment(io: &mut Io, file: &str, options: &Options, max_bytes: u64) -> Done {
    io.line(starting_line(file));
    let home = home(options);
    let names = ["print-data-log", "value-decoder-class", "key-decoder-class"];
    let content = home.is_some() || names.iter().any(|name| options.has(name));
    let detail = Detail {
        records: content || options.has("deep-iteration"),
        content,
        metadata: !options.has("skip-record-metadata"),
        home,
    };
    let mut batches = SegmentReader::open(file)?;
    let mut next_offset = None;
    let mut gaps = Vec::new();
    while let Some((position, batch)) = batches.next_batch()? {
        if position + batch.size_bytes() as u64 > max_bytes {
            break;
        }
        let base = batch.header.base_offset.0;
        let last = base.saturating_add(batch.header.last_offset_delta.into());
        if detail.records {
            // Offsets that are missing between batches; a compacted segment has such.
            if let Some(expected) = next_offset.filter(|expected| *expected != base) {
                gaps.push((expected - 1, base));
            }
            next_offset = Some(last.saturating_add(1));
        }
        print_batch(io, position, &batch, detail)?;
    }
    let left = batches.left();
    if left > 0 && max_bytes >= WHOLE_SEGMENT {
        io.line(format!(
            "Found {left} invalid bytes at the end of {}",
            name_of(file)
        ));
    }
    if !gaps.is_empty() {
        io.error_line(format!("Non-consecutive offsets in {file}"));
        for (first, second) in gaps {
            io.error_line(format!("  {first} is followed by {second}"));
        }
    }
    Ok(())
}

/// A snapshot is called by the offset and the epoch that it ends with.
fn starting_line(file: &str) -> String {
    let parts = name_of(file)
        .strip_suffix(".checkpoint")
        .and_then(|stem| stem.split_once('-'));
    let numbers = parts.and_then(|(offset, epoch)| {
        Some((offset.parse::<i64>().ok()?, epoch.parse::<i32>().ok()?))
    });
    match numbers {
        Some((offset, epoch)) => format!("Snapshot end offset: {offset}, epoch: {epoch}"),
        None => format!("Log starting offset: {}", base_offset(file)),
    }
}

fn name_of(file: &str) -> &str {
    Path::new(file)
        .file_name()
        .and_then(|n| n.to_str())
        .unwrap_or(file)
}

pub fn missing(file: &str) -> Exit {
    Exit::uncaught("java.nio.file.NoSuchFileException", file)
}

/// Whether a file is one that a broker makes with the first record: the first segment of a
/// partition without any, or an index of the segment that is written.
pub fn is_not_written_yet(file: &str) -> bool {
    let path = Path::new(file);
    let extension = path
        .extension()
        .and_then(|e| e.to_str())
        .unwrap_or_default();
    let stem = path
        .file_stem()
        .and_then(|s| s.to_str())
        .unwrap_or_default();
    let is_segment = stem.len() == 20 && stem.bytes().all(|b| b.is_ascii_digit());
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let names: Vec<String> = RealDisk
        .list(parent)
        .map(|entries| entries.into_iter().map(|entry| entry.name).collect())
        .unwrap_or_default();
    let has = |name: &str| names.iter().any(|known| known == name);
    if !is_segment || !has("partition.metadata") {
        return false;
    }
    let is_empty = !names.iter().any(|name| name.ends_with(".log"));
    match extension {
        "log" => is_empty,
        "index" | "timeindex" => is_empty || has(&format!("{stem}.log")),
        _ => false,
    }
}

/// The batches of a segment, one at a time.
pub struct SegmentReader {
    /// `None`: nothing was written yet.
    file: Option<std::sync::Arc<dyn crate::host::File>>,
    position: u64,
    len: u64,
}

impl SegmentReader {
    pub fn open(path: &str) -> Result<SegmentReader, Exit> {
        let (file, len) = match RealDisk.open(Path::new(path), OpenMode::Read) {
            Ok(file) => {
                let len = file.len().map_err(|_| missing(path))?;
                (Some(file), len)
            }
            Err(_) if is_not_written_yet(path) => (None, 0),
            Err(_) => return Err(missing(path)),
        };
        let position = 0;
        Ok(SegmentReader {
            file,
            position,
            len,
        })
    }

    pub fn at(path: &str, position: u64) -> Result<SegmentReader, Exit> {
        let mut reader = SegmentReader::open(path)?;
        reader.position = position;
        Ok(reader)
    }

    fn left(&self) -> u64 {
        self.len - self.position.min(self.len)
    }

    /// The next batch and where it starts; `None` where no whole one follows.
    pub fn next_batch(&mut self) -> Result<Option<(u64, Batch)>, Exit> {
        let position = self.position;
        let Some(prefix) = self.take(position, BatchPrefix::BYTES as u64)? else {
            return Ok(None);
        };
        let size = BatchPrefix::read(&prefix)
            .ok()
            .and_then(|p| p.size_bytes().ok());
        let Some(size) = size else {
            return Ok(None);
        };
        let Some(bytes) = self.take(position, size as u64)? else {
            return Ok(None);
        };
        let Ok(batch) = Batch::parse(bytes.into()) else {
            return Ok(None);
        };
        self.position += size as u64;
        Ok(Some((position, batch)))
    }

    /// Exactly so many bytes, if the file has them: nothing larger than the file is reserved.
    fn take(&self, position: u64, bytes: u64) -> Result<Option<Vec<u8>>, Exit> {
        let Some(file) = &self.file else {
            return Ok(None);
        };
        if bytes > self.len.saturating_sub(position) {
            return Ok(None);
        }
        let mut buffer = vec![0; bytes as usize];
        let read = file.read_at(&mut buffer, position);
        let read = read.map_err(|error| Exit::error(format!("klamm: {error}")))?;
        Ok((read == buffer.len()).then_some(buffer))
    }
}

/// The whole of a small file.
pub fn read_all(path: &str) -> Result<Vec<u8>, Exit> {
    match RealDisk.read(Path::new(path)) {
        Ok(bytes) => Ok(bytes),
        Err(_) if is_not_written_yet(path) => Ok(Vec::new()),
        Err(_) => Err(missing(path)),
    }
}
