//! `kafka-dump-log`: shows the files of a partition: segments, indexes, aborted transactions,
//! producer snapshots.
//!
//! The decoders for internal topics are not there yet; they are refused.

use std::path::Path;

use super::common::require;
use super::dump_batch::{Detail, print_batch};
use super::dump_index::{index, producer_snapshot, time_index, txn_index};
use super::exit::{Done, Exit};
use super::io::Io;
use super::options::{HELP, Opt, Options, VERSION, flag, text, typed};
use crate::host::{Disk, OpenMode, RealDisk};
use crate::record::{Batch, BatchPrefix};

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
    flag("offsets-decoder", "Not supported yet."),
    flag("transaction-log-decoder", "Not supported yet."),
    flag("cluster-metadata-decoder", "Not supported yet."),
    flag("remote-log-metadata-decoder", "Not supported yet."),
    flag("share-group-state-decoder", "Not supported yet."),
    flag("skip-record-metadata", "Show only the content of records."),
    HELP,
    VERSION,
];

const DECODERS: [&str; 5] = [
    "offsets-decoder",
    "transaction-log-decoder",
    "cluster-metadata-decoder",
    "remote-log-metadata-decoder",
    "share-group-state-decoder",
];

pub async fn run(io: &mut Io, args: &[String]) -> Done {
    if args.is_empty() {
        return Err(Exit::usage(PURPOSE, OPTIONS));
    }
    let options = super::common::parse(OPTIONS, args, PURPOSE)?;
    require(&options, OPTIONS, &["files"])?;
    if let Some(decoder) = DECODERS.iter().find(|name| options.has(name)) {
        return Err(Exit::error(format!(
            "klamm: --{decoder} is not supported yet"
        )));
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
    io.line(format!("Log starting offset: {}", base_offset(file)));
    let detail = Detail {
        records: options.has("print-data-log") || options.has("deep-iteration"),
        content: options.has("print-data-log"),
        metadata: !options.has("skip-record-metadata"),
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
    if left > 0 {
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

fn name_of(file: &str) -> &str {
    Path::new(file)
        .file_name()
        .and_then(|n| n.to_str())
        .unwrap_or(file)
}

pub fn missing(file: &str) -> Exit {
    Exit::uncaught("java.nio.file.NoSuchFileException", file)
}

/// The batches of a segment, one at a time.
pub struct SegmentReader {
    file: std::sync::Arc<dyn crate::host::File>,
    position: u64,
    len: u64,
}

impl SegmentReader {
    pub fn open(path: &str) -> Result<SegmentReader, Exit> {
        let file = RealDisk
            .open(Path::new(path), OpenMode::Read)
            .map_err(|_| missing(path))?;
        let len = file.len().map_err(|_| missing(path))?;
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
        if bytes > self.len.saturating_sub(position) {
            return Ok(None);
        }
        let mut buffer = vec![0; bytes as usize];
        let read = self.file.read_at(&mut buffer, position);
        let read = read.map_err(|error| Exit::error(format!("klamm: {error}")))?;
        Ok((read == buffer.len()).then_some(buffer))
    }
}

/// The whole of a small file.
pub fn read_all(path: &str) -> Result<Vec<u8>, Exit> {
    RealDisk.read(Path::new(path)).map_err(|_| missing(path))
}
