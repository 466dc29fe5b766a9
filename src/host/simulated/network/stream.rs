//! The ends of a simulated connection.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{BufMut, Bytes, BytesMut};
use tokio::io::ReadBuf;
use tokio::time::Sleep;

use super::{Network, Piece, Pipe, Wire};

/// One end of a connection.
pub struct Stream {
    pub(super) wire: Arc<Wire>,
    /// Which of the pipes goes out.
    out: usize,
    local: SocketAddr,
}

impl Stream {
    pub(super) fn pair(
        network: &Arc<Network>,
        [from, to]: [SocketAddr; 2],
        processes: [u64; 2],
    ) -> (Stream, Stream) {
        let pipes = [Pipe::new(network, from, to), Pipe::new(network, to, from)];
        let wire = Arc::new(Wire { processes, pipes });
        let end = |out: usize, local| Stream {
            wire: wire.clone(),
            out,
            local,
        };
        (end(0, from), end(1, to))
    }

    fn incoming(&self) -> &Pipe {
        &self.wire.pipes[1 - self.out]
    }

    fn outgoing(&self) -> &Pipe {
        &self.wire.pipes[self.out]
    }

    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    pub async fn readable(&self) -> io::Result<()> {
        let mut timer = None;
        std::future::poll_fn(|context| self.incoming().poll_ready(context, &mut timer)).await;
        Ok(())
    }

    pub fn try_read_buf(&self, buffer: &mut BytesMut) -> io::Result<usize> {
        let room = buffer.chunk_mut().len();
        let taken = self.incoming().take(room)?;
        buffer.put_slice(&taken);
        Ok(taken.len())
    }

    pub async fn writable(&self) -> io::Result<()> {
        std::future::poll_fn(|context| match self.room(Some(context)) {
            Ok(0) => Poll::Pending,
            Ok(_) => Poll::Ready(Ok(())),
            Err(error) => Poll::Ready(Err(error)),
        })
        .await
    }

    pub fn try_send(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let room = self.room(None)?;
        if room == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let mut sent = BytesMut::new();
        for part in parts {
            let fits = part.len().min(room - sent.len());
            sent.extend_from_slice(&part[..fits]);
        }
        self.send(sent.freeze())
    }

    fn room(&self, context: Option<&mut Context<'_>>) -> io::Result<usize> {
        let is_lost = self.outgoing().state.lock().no_reader;
        if is_lost && self.incoming().has_ended() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.outgoing().room(context)
    }

    fn send(&self, mut bytes: Bytes) -> io::Result<usize> {
        let len = bytes.len();
        let outgoing = self.outgoing().state.lock();
        let (no_reader, is_unknown) = (outgoing.no_reader, outgoing.is_unknown);
        drop(outgoing);
        if is_unknown {
            self.incoming().push(Piece::Reset);
        }
        if no_reader {
            return Ok(len);
        }
        // It may arrive in two pieces.
        if len > 1 && self.outgoing().network.below(8) == 0 {
            let at = 1 + self.outgoing().network.below(len as u64 - 1) as usize;
            self.outgoing().push(Piece::Bytes(bytes.split_to(at)));
        }
        self.outgoing().push(Piece::Bytes(bytes));
        Ok(len)
    }

    pub fn into_split(self) -> (ReadHalf, WriteHalf) {
        let stream = Arc::new(self);
        let read = ReadHalf {
            stream: stream.clone(),
            timer: None,
        };
        (read, WriteHalf { stream })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.outgoing().close();
        self.incoming().lose_reader();
    }
}

pub struct ReadHalf {
    stream: Arc<Stream>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl ReadHalf {
    pub fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let pipe = self.stream.incoming();
        std::task::ready!(pipe.poll_ready(context, &mut self.timer));
        match pipe.take(buffer.remaining()) {
            Ok(taken) => {
                buffer.put_slice(&taken);
                Poll::Ready(Ok(()))
            }
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

pub struct WriteHalf {
    stream: Arc<Stream>,
}

impl WriteHalf {
    pub fn poll_write(
        &mut self,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let room = self.stream.room(Some(context))?;
        if room == 0 {
            return Poll::Pending;
        }
        let fits = bytes.len().min(room);
        Poll::Ready(self.stream.send(Bytes::copy_from_slice(&bytes[..fits])))
    }

    pub fn poll_shutdown(&mut self) -> Poll<io::Result<()>> {
        self.stream.outgoing().close();
        Poll::Ready(Ok(()))
    }
}

impl Drop for WriteHalf {
    fn drop(&mut self) {
        // As the real half does: the other side reads the end.
        self.stream.outgoing().close();
    }
}
