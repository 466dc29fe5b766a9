//! Writing answers: memory with one vectored write, file ranges with sendfile.

use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::time::Duration;

use bytes::{Bytes, BytesMut};

use crate::api::Chunk;
use crate::host::{File, Stream};

/// File ranges up to this size are read into memory and leave with what surrounds them: that is as
/// many system calls as sendfile, and one packet less.
const COPY_BYTES: usize = 16 * 1024;

/// How much sendfile may move before the task lets others run.
const SENDFILE_BYTES: usize = 1 << 20;

/// How many pieces go into one vectored write.
const PARTS_MAX: usize = 64;

/// How much is gathered in memory before it is sent.
const GATHER_BYTES: usize = 256 * 1024;

/// Sends every chunk in order and returns once the socket has taken them all. It fails when the
/// socket takes nothing for `stall_max`.
pub async fn send_chunks(
    stream: &Stream,
    chunks: Vec<Chunk>,
    stall_max: Duration,
) -> io::Result<()> {
    let socket = Socket { stream, stall_max };
    let mut gathered: Vec<Bytes> = Vec::new();
    let mut gathered_bytes = 0;
    let mut chunks = chunks.into_iter().peekable();
    while let Some(chunk) = chunks.next() {
        match chunk {
            Chunk::Bytes(bytes) if bytes.is_empty() => {}
            Chunk::Bytes(bytes) => {
                gathered_bytes += bytes.len();
                gathered.push(bytes);
            }
            Chunk::File {
                file,
                position,
                len,
            } => match file.fd() {
                Some(fd) if len > COPY_BYTES => {
                    socket.send_bytes(&mut gathered, true).await?;
                    gathered_bytes = 0;
                    socket.send_file(fd, position, len).await?;
                }
                _ => {
                    gathered_bytes += len;
                    gathered.push(read_range(file.as_ref(), position, len)?);
                }
            },
        }
        if gathered_bytes >= GATHER_BYTES {
            socket
                .send_bytes(&mut gathered, chunks.peek().is_some())
                .await?;
            gathered_bytes = 0;
        }
    }
    socket.send_bytes(&mut gathered, false).await
}

fn read_range(file: &dyn File, position: u64, len: usize) -> io::Result<Bytes> {
    let mut buffer = BytesMut::zeroed(len);
    if file.read_at(&mut buffer, position)? < len {
        return Err(cut_short(position, len));
    }
    Ok(buffer.freeze())
}

/// The answer's length was already sent, so the connection cannot go on.
fn cut_short(position: u64, len: usize) -> io::Error {
    let message = format!("segment ended inside the range {position}+{len}");
    io::Error::new(io::ErrorKind::UnexpectedEof, message)
}

struct Socket<'a> {
    stream: &'a Stream,
    stall_max: Duration,
}

impl Socket<'_> {
    async fn send_bytes(&self, parts: &mut Vec<Bytes>, more: bool) -> io::Result<()> {
        let mut first = 0;
        while first < parts.len() {
            let mut sent = {
                let slices: Vec<IoSlice<'_>> = parts[first..]
                    .iter()
                    .take(PARTS_MAX)
                    .map(|part| IoSlice::new(part))
                    .collect();
                self.writable(|stream| stream.try_send(&slices, more))
                    .await?
            };
            while sent > 0 {
                let part = &mut parts[first];
                let taken = sent.min(part.len());
                let _ = part.split_to(taken);
                sent -= taken;
                if part.is_empty() {
                    first += 1;
                }
            }
        }
        parts.clear();
        Ok(())
    }

    async fn send_file(&self, file: BorrowedFd<'_>, position: u64, len: usize) -> io::Result<()> {
        let mut offset = position;
        let end = position + len as u64;
        while offset < end {
            let wanted = ((end - offset) as usize).min(SENDFILE_BYTES);
            let sent = self
                .writable(|stream| stream.try_send_file(file, offset, wanted))
                .await?;
            if sent == 0 {
                return Err(cut_short(position, len));
            }
            offset += sent as u64;
        }
        Ok(())
    }

    /// Runs `attempt` until it does not ask to wait for the socket.
    async fn writable<T>(
        &self,
        mut attempt: impl FnMut(&Stream) -> io::Result<T>,
    ) -> io::Result<T> {
        loop {
            match attempt(self.stream) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    tokio::time::timeout(self.stall_max, self.stream.writable()).await??;
                }
                result => {
                    // Others may have work that is as ready as this.
                    tokio::task::consume_budget().await;
                    return result;
                }
            }
        }
    }
}
