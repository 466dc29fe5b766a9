//! Streams between processes: TCP, or in a simulated world (tests only) what stands for it. The
//! types have one variant in a binary that is not a test, so they cost nothing there.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::BytesMut;
use rustix::net::SendFlags;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

#[cfg(test)]
use super::simulated::{self, network};

/// An open connection.
pub enum Stream {
    Tcp(TcpStream),
    #[cfg(test)]
    Simulated(network::Stream),
}

/// Accepts connections.
pub enum Listener {
    Tcp(TcpListener),
    #[cfg(test)]
    Simulated(network::Listener),
}

/// Connects to `address`.
pub async fn connect(address: SocketAddr) -> io::Result<Stream> {
    #[cfg(test)]
    if let Some(process) = simulated::process() {
        return process.connect(address).await.map(Stream::Simulated);
    }
    TcpStream::connect(address).await.map(Stream::Tcp)
}

/// Connects to the first address of `host` that takes it.
pub async fn connect_to(host: &str, port: u16) -> io::Result<Stream> {
    let mut failure = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in tokio::net::lookup_host((host, port)).await? {
        match connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// Listens at `address`.
pub fn listen(address: SocketAddr, backlog: u32) -> io::Result<Listener> {
    #[cfg(test)]
    if let Some(process) = simulated::process() {
        return process.listen(address).map(Listener::Simulated);
    }
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    // A restart must not wait for old connections' ports.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(backlog).map(Listener::Tcp)
}

impl Listener {
    pub async fn accept(&self) -> io::Result<(Stream, SocketAddr)> {
        match self {
            Listener::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                Ok((Stream::Tcp(stream), peer))
            }
            #[cfg(test)]
            Listener::Simulated(listener) => {
                let (stream, peer) = listener.accept().await;
                Ok((Stream::Simulated(stream), peer))
            }
        }
    }

    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Listener::Tcp(listener) => listener.local_addr(),
            #[cfg(test)]
            Listener::Simulated(listener) => Ok(listener.address()),
        }
    }

    /// The socket; `None` when there is none behind.
    pub fn socket(&self) -> Option<&TcpListener> {
        match self {
            Listener::Tcp(listener) => Some(listener),
            #[cfg(test)]
            Listener::Simulated(_) => None,
        }
    }
}

impl Stream {
    /// The socket; `None` when there is none behind.
    pub fn socket(&self) -> Option<&TcpStream> {
        match self {
            Stream::Tcp(stream) => Some(stream),
            #[cfg(test)]
            Stream::Simulated(_) => None,
        }
    }

    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Stream::Tcp(stream) => stream.local_addr(),
            #[cfg(test)]
            Stream::Simulated(stream) => Ok(stream.local_addr()),
        }
    }

    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.socket().map_or(Ok(()), |s| s.set_nodelay(nodelay))
    }

    /// Waits until there is something to read, or the end.
    pub async fn readable(&self) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.readable().await,
            #[cfg(test)]
            Stream::Simulated(stream) => stream.readable().await,
        }
    }

    /// Appends what is there to `buffer`, as far as it has room; 0 is the end.
    pub fn try_read_buf(&self, buffer: &mut BytesMut) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.try_read_buf(buffer),
            #[cfg(test)]
            Stream::Simulated(stream) => stream.try_read_buf(buffer),
        }
    }

    /// Waits until something can be sent.
    pub async fn writable(&self) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.writable().await,
            #[cfg(test)]
            Stream::Simulated(stream) => stream.writable().await,
        }
    }

    /// Sends as much of `parts` as fits, one after the other. `more`: more is to follow at once.
    pub fn try_send(&self, parts: &[IoSlice<'_>], more: bool) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.try_io(Interest::WRITABLE, || {
                let flags = match more {
                    true => SendFlags::MORE | SendFlags::NOSIGNAL,
                    false => SendFlags::NOSIGNAL,
                };
                let mut control = rustix::net::SendAncillaryBuffer::default();
                let sent = rustix::net::sendmsg(stream.as_fd(), parts, &mut control, flags);
                Ok(sent?)
            }),
            #[cfg(test)]
            Stream::Simulated(stream) => stream.try_send(parts),
        }
    }

    /// Sends as much of the range of `file` as fits.
    pub fn try_send_file(
        &self,
        file: BorrowedFd<'_>,
        position: u64,
        len: usize,
    ) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.try_io(Interest::WRITABLE, || {
                let mut from = position;
                let sent = rustix::fs::sendfile(stream.as_fd(), file, Some(&mut from), len);
                Ok(sent?)
            }),
            // Files of a simulated disk have no descriptor.
            #[cfg(test)]
            Stream::Simulated(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    pub fn into_split(self) -> (ReadHalf, WriteHalf) {
        match self {
            Stream::Tcp(stream) => {
                let (read, write) = stream.into_split();
                (ReadHalf::Tcp(read), WriteHalf::Tcp(write))
            }
            #[cfg(test)]
            Stream::Simulated(stream) => {
                let (read, write) = stream.into_split();
                (ReadHalf::Simulated(read), WriteHalf::Simulated(write))
            }
        }
    }
}

/// What comes in on a connection.
pub enum ReadHalf {
    Tcp(OwnedReadHalf),
    #[cfg(test)]
    Simulated(network::ReadHalf),
}

/// What goes out on a connection.
pub enum WriteHalf {
    Tcp(OwnedWriteHalf),
    #[cfg(test)]
    Simulated(network::WriteHalf),
}

impl AsyncRead for ReadHalf {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            ReadHalf::Tcp(half) => Pin::new(half).poll_read(context, buffer),
            #[cfg(test)]
            ReadHalf::Simulated(half) => half.poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for WriteHalf {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            WriteHalf::Tcp(half) => Pin::new(half).poll_write(context, bytes),
            #[cfg(test)]
            WriteHalf::Simulated(half) => half.poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            WriteHalf::Tcp(half) => Pin::new(half).poll_flush(context),
            #[cfg(test)]
            WriteHalf::Simulated(_) => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            WriteHalf::Tcp(half) => Pin::new(half).poll_shutdown(context),
            #[cfg(test)]
            WriteHalf::Simulated(half) => half.poll_shutdown(),
        }
    }
}
