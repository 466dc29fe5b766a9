//! Reading request frames: four bytes of length, then that many bytes, in one buffer that is never
//! copied again.
//!
//! 1. Memory is taken for a frame only after its length was found to be within
//!    `socket.request.max.bytes`, and for a large frame only after the budget of all connections
//!    (`queued.max.request.bytes`) has room for it.
//! 2. The budget is asked once as much of a large frame is here as a small one may have: what is
//!    announced and not sent keeps nobody waiting.
//! 3. A frame that holds a part of the budget while others wait for theirs must keep a pace.
//! 4. A connection without a frame under way holds no buffer.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// How much is read at once when no length is known yet.
const READ_BYTES: usize = 16 * 1024;

/// Frames up to this size do not count against the budget: they are bounded by the number of
/// connections, and a heartbeat must get through while large requests queue for memory.
pub const SMALL_FRAME_BYTES: usize = 64 * 1024;

/// One permit of the budget is this many bytes, because a semaphore counts to 2^61 but takes
/// only 2^32 permits at a time.
const PERMIT_BYTES: usize = 1024;

/// How fast a large frame must arrive when others wait for the memory it holds.
const PACE_BYTES_PER_S: usize = 64 * 1024;
const PACE_GRACE: Duration = Duration::from_secs(30);

/// The memory that request frames of all connections may take.
#[derive(Clone)]
pub struct FrameBudget {
    permits: Arc<Semaphore>,
    permits_max: u32,
    waiting: Arc<AtomicUsize>,
}

type Reservation = Pin<Box<dyn Future<Output = OwnedSemaphorePermit> + Send>>;

/// Counts one that waits for the budget.
struct Waiting(Arc<AtomicUsize>);

impl Waiting {
    fn new(waiting: &Arc<AtomicUsize>) -> Self {
        waiting.fetch_add(1, Ordering::Relaxed);
        Waiting(waiting.clone())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl FrameBudget {
    pub fn new(bytes: usize) -> Self {
        let permits_max = (bytes / PERMIT_BYTES).clamp(1, u32::MAX as usize) as u32;
        FrameBudget {
            permits: Arc::new(Semaphore::new(permits_max as usize)),
            permits_max,
            waiting: Arc::default(),
        }
    }

    /// Waits until there is room for a frame of `len` bytes. A frame larger than the whole budget
    /// gets all of it.
    fn reserve(&self, len: usize) -> Reservation {
        let permits = u32::try_from(len.div_ceil(PERMIT_BYTES)).unwrap_or(u32::MAX);
        let permits = permits.min(self.permits_max);
        let semaphore = self.permits.clone();
        let waiting = Waiting::new(&self.waiting);
        Box::pin(async move {
            let permit = semaphore.acquire_many_owned(permits).await;
            drop(waiting);
            permit.expect("never closed")
        })
    }

    fn is_waited_for(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }
}

/// A request as it came in, without its length prefix.
pub struct RequestFrame {
    pub bytes: Bytes,
    /// Given back when its bytes are no longer needed.
    pub budget: Option<OwnedSemaphorePermit>,
}

#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    #[error("a request of {len} bytes was announced; socket.request.max.bytes is {max}")]
    Length { len: i32, max: usize },
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Cuts what a socket delivers into frames.
pub struct FrameReader {
    buffer: BytesMut,
    budget: FrameBudget,
    reserved: Option<OwnedSemaphorePermit>,
    /// Kept from one call to the next, or its place in the queue would be lost.
    reserving: Option<Reservation>,
    /// When the budget gave its part to the frame under way.
    reserved_at: Instant,
    frame_bytes_max: usize,
    at_end: bool,
}

impl FrameReader {
    pub fn new(budget: FrameBudget, frame_bytes_max: usize) -> Self {
        FrameReader {
            buffer: BytesMut::new(),
            budget,
            reserved: None,
            reserving: None,
            reserved_at: Instant::now(),
            frame_bytes_max,
            at_end: false,
        }
    }

    /// The peer has closed its side; what is buffered may still hold whole frames.
    pub fn is_at_end(&self) -> bool {
        self.at_end
    }

    /// The peer is to send the rest of a frame, and nothing here keeps it from that.
    pub fn is_in_frame(&self) -> bool {
        !self.buffer.is_empty() && self.reserving.is_none()
    }

    /// The frame under way comes so slowly that it keeps others from the memory they wait for.
    pub fn is_in_the_way(&self) -> bool {
        let pace = Duration::from_secs((self.buffer.len() / PACE_BYTES_PER_S) as u64);
        self.reserved.is_some()
            && self.budget.is_waited_for()
            && self.reserved_at.elapsed() > PACE_GRACE + pace
    }

    /// The next whole frame that is buffered already.
    pub fn next_buffered(&mut self) -> Result<Option<RequestFrame>, FrameError> {
        let Some(len) = self.announced_len()? else {
            return Ok(None);
        };
        if self.buffer.len() < 4 + len {
            return Ok(None);
        }
        self.buffer.advance(4);
        let bytes = self.buffer.split_to(len).freeze();
        if self.buffer.is_empty() {
            self.buffer = BytesMut::new();
        }
        Ok(Some(RequestFrame {
            bytes,
            budget: self.reserved.take(),
        }))
    }

    /// The length of the frame at the front, once its four bytes are here.
    fn announced_len(&self) -> Result<Option<usize>, FrameError> {
        let Some(prefix) = self.buffer.first_chunk::<4>() else {
            return Ok(None);
        };
        let len = i32::from_be_bytes(*prefix);
        match usize::try_from(len) {
            Ok(positive) if positive > 0 && positive <= self.frame_bytes_max => Ok(Some(positive)),
            _ => Err(FrameError::Length {
                len,
                max: self.frame_bytes_max,
            }),
        }
    }

    /// Reads what the socket has, waiting until it has something. Safe to drop and call again.
    pub async fn read_from(&mut self, stream: &TcpStream) -> Result<(), FrameError> {
        loop {
            // First of all, so that who is quiet holds no buffer.
            stream.readable().await?;
            self.make_room().await?;
            match stream.try_read_buf(&mut self.buffer) {
                Ok(0) => {
                    self.at_end = true;
                    return Ok(());
                }
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if self.buffer.is_empty() {
                        self.buffer = BytesMut::new();
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Makes the buffer hold the frame under way or its beginning, or a first read if there is
    /// none.
    async fn make_room(&mut self) -> Result<(), FrameError> {
        let mut wanted = match self.announced_len()? {
            Some(len) => 4 + len,
            None => READ_BYTES,
        };
        if wanted > SMALL_FRAME_BYTES && self.reserved.is_none() {
            if self.buffer.len() < SMALL_FRAME_BYTES {
                wanted = SMALL_FRAME_BYTES;
            } else {
                let budget = &self.budget;
                let reserving = self.reserving.get_or_insert_with(|| budget.reserve(wanted));
                self.reserved = Some(reserving.await);
                self.reserving = None;
                self.reserved_at = Instant::now();
            }
        }
        if self.buffer.capacity() >= wanted && self.buffer.capacity() > self.buffer.len() {
            return Ok(());
        }
        let mut larger = BytesMut::with_capacity(wanted.max(self.buffer.len() + 1));
        larger.extend_from_slice(&self.buffer);
        self.buffer = larger;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        (client, listener.accept().await.unwrap().0)
    }

    async fn next(reader: &mut FrameReader, stream: &TcpStream) -> Result<Bytes, FrameError> {
        loop {
            if let Some(frame) = reader.next_buffered()? {
                return Ok(frame.bytes);
            }
            reader.read_from(stream).await?;
            if reader.is_at_end() {
                return Ok(Bytes::new());
            }
        }
    }

    #[tokio::test]
    async fn frames_come_whole_however_they_arrive() {
        let (mut client, server) = pair().await;
        let mut reader = FrameReader::new(FrameBudget::new(1 << 20), 1 << 20);
        let large = vec![7u8; 300_000];
        let mut sent = vec![0, 0, 0, 2, b'a', b'b', 0, 0, 0, 1, b'c'];
        sent.extend_from_slice(&(large.len() as i32).to_be_bytes());
        sent.extend_from_slice(&large);
        let writer = crate::host::tasks::spawn(async move {
            for part in sent.chunks(7001) {
                client.write_all(part).await.unwrap();
            }
            client
        });
        assert_eq!(next(&mut reader, &server).await.unwrap(), &b"ab"[..]);
        assert_eq!(next(&mut reader, &server).await.unwrap(), &b"c"[..]);
        assert_eq!(next(&mut reader, &server).await.unwrap(), large);
        assert!(!reader.is_in_frame());
        drop(writer.await.unwrap());
        assert!(next(&mut reader, &server).await.unwrap().is_empty());
    }

    /// A reader whose client has announced a megabyte and sent `bytes` of it, all of them read.
    async fn announced(budget: &FrameBudget, bytes: usize) -> (FrameReader, TcpStream, TcpStream) {
        let (mut client, server) = pair().await;
        let mut reader = FrameReader::new(budget.clone(), 1 << 20);
        client.write_all(&(1i32 << 20).to_be_bytes()).await.unwrap();
        client.write_all(&vec![0; bytes]).await.unwrap();
        while reader.buffer.len() < (4 + bytes).min(SMALL_FRAME_BYTES) {
            reader.read_from(&server).await.unwrap();
        }
        (reader, client, server)
    }

    #[tokio::test(start_paused = true)]
    async fn large_frames_share_the_budget() {
        let budget = FrameBudget::new(1 << 20);
        let (little, _client, _server) = announced(&budget, 1000).await;
        assert!(
            little.reserved.is_none(),
            "it has sent too little to be given any"
        );
        let (mut first, _client, server) = announced(&budget, SMALL_FRAME_BYTES + 9).await;
        first.read_from(&server).await.unwrap();
        assert!(first.reserved.is_some() && first.is_in_frame());
        let (mut second, _client, server) = announced(&budget, SMALL_FRAME_BYTES + 9).await;
        let waited = tokio::time::timeout(PACE_GRACE, second.read_from(&server)).await;
        assert!(waited.is_err() && budget.is_waited_for());
        assert!(
            !second.is_in_frame(),
            "it is not the client that is waited for"
        );
        assert!(!first.is_in_the_way());
        tokio::time::advance(Duration::from_secs(2)).await;
        assert!(first.is_in_the_way() && !second.is_in_the_way());
        drop(first);
        second.read_from(&server).await.unwrap();
        assert!(second.reserved.is_some() && !budget.is_waited_for());
    }

    #[tokio::test]
    async fn bad_lengths_are_refused_from_the_length_alone() {
        for len in [0i32, -1, 1025, i32::MAX, i32::MIN] {
            let (mut client, server) = pair().await;
            client.write_all(&len.to_be_bytes()).await.unwrap();
            let mut reader = FrameReader::new(FrameBudget::new(1 << 20), 1024);
            let error = next(&mut reader, &server).await.unwrap_err();
            assert!(matches!(error, FrameError::Length { len: seen, max: 1024 } if seen == len));
        }
    }
}
