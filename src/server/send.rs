//! Writing answers: memory with one vectored write, file ranges with sendfile.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};

use bytes::{Bytes, BytesMut};
use rustix::net::SendFlags;
use tokio::io::Interest;
use tokio::net::TcpStream;

use crate::api::Chunk;
use crate::host::File;

/// File ranges up to this size are read into memory and leave with what surrounds them: that is as
/// many system calls as sendfile, and one packet less.
const COPY_BYTES: usize = 16 * 1024;

/// How much sendfile may move before the task lets others run.
const SENDFILE_BYTES: usize = 1 << 20;

/// How many pieces go into one vectored write.
const PARTS_MAX: usize = 64;

/// Sends every chunk in order and returns once the socket has taken them all.
pub async fn send_chunks(stream: &TcpStream, chunks: Vec<Chunk>) -> io::Result<()> {
    let mut gathered: Vec<Bytes> = Vec::new();
    for chunk in chunks {
        match chunk {
            Chunk::Bytes(bytes) if bytes.is_empty() => {}
            Chunk::Bytes(bytes) => gathered.push(bytes),
            Chunk::File {
                file,
                position,
                len,
            } => match file.fd() {
                Some(fd) if len > COPY_BYTES => {
                    send_bytes(stream, &mut gathered, true).await?;
                    send_file(stream, fd, position, len).await?;
                }
                _ => gathered.push(read_range(file.as_ref(), position, len)?),
            },
        }
    }
    send_bytes(stream, &mut gathered, false).await
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

async fn send_bytes(stream: &TcpStream, parts: &mut Vec<Bytes>, more: bool) -> io::Result<()> {
    let flags = if more {
        SendFlags::MORE | SendFlags::NOSIGNAL
    } else {
        SendFlags::NOSIGNAL
    };
    let mut first = 0;
    while first < parts.len() {
        let mut sent = {
            let slices: Vec<IoSlice<'_>> = parts[first..]
                .iter()
                .take(PARTS_MAX)
                .map(|part| IoSlice::new(part))
                .collect();
            writable(stream, || {
                let mut control = rustix::net::SendAncillaryBuffer::default();
                let sent = rustix::net::sendmsg(stream.as_fd(), &slices, &mut control, flags)?;
                Ok(sent)
            })
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

async fn send_file(
    stream: &TcpStream,
    file: BorrowedFd<'_>,
    position: u64,
    len: usize,
) -> io::Result<()> {
    let mut offset = position;
    let end = position + len as u64;
    while offset < end {
        let wanted = ((end - offset) as usize).min(SENDFILE_BYTES);
        let mut from = offset;
        let sent = writable(stream, || {
            from = offset;
            Ok(rustix::fs::sendfile(
                stream.as_fd(),
                file,
                Some(&mut from),
                wanted,
            )?)
        })
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
    stream: &TcpStream,
    mut attempt: impl FnMut() -> io::Result<T>,
) -> io::Result<T> {
    loop {
        match stream.async_io(Interest::WRITABLE, &mut attempt).await {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}
