//! Reading request frames: four bytes of length, then that many bytes, in one buffer that is never
//! copied again.
//!
//! 1. Memory is taken for a frame only after its length was found to be within
//!    `socket.request.max.bytes`, and for a large frame only after the budget of all connections
//!    (`queued.max.request.bytes`) has room for it; see [`super::budget`].
//! 2. The budget is asked once as much of a large frame is here as a small one may have, and again
//!    whenever the buffer has to grow.
//! 3. A connection without a frame under way holds no buffer.

use std::io;
use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};
use tokio::sync::Notify;

use super::budget::{FrameBudget, MEDIUM_FRAME_BYTES, Place};
use crate::host::{Stream, turns};

/// How much is read at once when no length is known yet.
const READ_BYTES: usize = 16 * 1024;

/// Frames up to this size do not count against the budget: they are bounded by the number of
/// connections, and a heartbeat must get through while large requests queue for memory.
pub const SMALL_FRAME_BYTES: usize = 64 * 1024;

/// A request as it came in, without its length prefix.
pub struct RequestFrame {
    pub bytes: Bytes,
    /// Given back when its bytes are no longer needed.
    pub budget: Option<Place>,
}

#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    #[error("a request of {len} bytes was announced; socket.request.max.bytes is {max}")]
    Length { len: i32, max: usize },
    #[error("a large request came so slowly that it kept others from the memory it held")]
    InTheWay,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Cuts what a socket delivers into frames.
pub struct FrameReader {
    buffer: BytesMut,
    budget: FrameBudget,
    /// Of the frame under way, when it is large.
    place: Option<Place>,
    /// It waits for memory, not for the client.
    is_held_back: bool,
    frame_bytes_max: usize,
    at_end: bool,
}

impl FrameReader {
    pub fn new(budget: FrameBudget, frame_bytes_max: usize) -> Self {
        FrameReader {
            buffer: BytesMut::new(),
            budget,
            place: None,
            is_held_back: false,
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
        !self.buffer.is_empty() && !self.is_held_back
    }

    /// Told when the frame under way must give up its memory.
    pub fn eviction(&self) -> Option<Arc<Notify>> {
        self.place.as_ref().map(Place::evicted)
    }

    /// Forgets the frame under way.
    pub fn give_up(&mut self) {
        self.buffer = BytesMut::new();
        self.place = None;
        self.is_held_back = false;
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
            budget: self.place.take(),
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
    pub async fn read_from(&mut self, stream: &Stream) -> Result<(), FrameError> {
        loop {
            // First of all, so that who is quiet holds no buffer.
            tokio::select! {
                ready = stream.readable() => ready?,
                () = told(self.eviction()) => return Err(FrameError::InTheWay),
            }
            self.make_room().await?;
            match stream.try_read_buf(&mut self.buffer) {
                Ok(0) => {
                    self.at_end = true;
                    return Ok(());
                }
                Ok(_) => {
                    if let Some(place) = &self.place {
                        place.arrived(self.buffer.len());
                    }
                    return Ok(());
                }
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
        let wanted = match self.announced_len()? {
            None => READ_BYTES,
            Some(len) if 4 + len <= SMALL_FRAME_BYTES => 4 + len,
            Some(_) if self.buffer.len() < SMALL_FRAME_BYTES => SMALL_FRAME_BYTES,
            Some(_) if self.buffer.len() < self.buffer.capacity() => return Ok(()),
            Some(len) => self.reserve(4 + len).await,
        };
        if self.buffer.capacity() < wanted || self.buffer.capacity() == self.buffer.len() {
            self.grow_to(wanted.max(self.buffer.len() + 1));
        }
        Ok(())
    }

    /// Waits until the buffer may grow by a step, and says how large it may become.
    async fn reserve(&mut self, whole: usize) -> usize {
        let place = self.place.get_or_insert_with(|| self.budget.enter(whole));
        let step = next_step(self.buffer.len(), whole);
        self.is_held_back = true;
        place.arrived(self.buffer.len());
        place.hold(step).await;
        self.is_held_back = false;
        step
    }

    fn grow_to(&mut self, bytes: usize) {
        let mut copy = || {
            let mut larger = BytesMut::with_capacity(bytes);
            larger.extend_from_slice(&self.buffer);
            self.buffer = larger;
        };
        if bytes > MEDIUM_FRAME_BYTES {
            turns::in_place(copy);
        } else {
            copy();
        }
    }
}

/// Completes when a frame that has a place is told to give it up.
pub async fn told(eviction: Option<Arc<Notify>>) {
    match eviction {
        Some(eviction) => eviction.notified().await,
        None => std::future::pending().await,
    }
}

/// How large the buffer of a large frame becomes when `len` bytes of it are here.
fn next_step(len: usize, whole: usize) -> usize {
    if whole <= MEDIUM_FRAME_BYTES {
        return whole;
    }
    whole.min(MEDIUM_FRAME_BYTES.max(2 * len))
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    async fn pair() -> (TcpStream, Stream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        (client, Stream::Tcp(listener.accept().await.unwrap().0))
    }

    async fn next(reader: &mut FrameReader, stream: &Stream) -> Result<Bytes, FrameError> {
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
        let mut reader = FrameReader::new(FrameBudget::new(4 << 20, 1 << 20), 1 << 20);
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
    async fn announced(budget: &FrameBudget, bytes: usize) -> (FrameReader, TcpStream, Stream) {
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
        // A quarter of it has room for one frame of a megabyte.
        let budget = FrameBudget::new(4 << 20, 1 << 20);
        let (little, _client, _server) = announced(&budget, 1000).await;
        assert!(
            little.place.is_none(),
            "it has sent too little to be given any"
        );
        let (mut first, _client, server) = announced(&budget, SMALL_FRAME_BYTES + 9).await;
        first.read_from(&server).await.unwrap();
        assert!(first.place.is_some() && first.is_in_frame());
        let (mut second, _client, second_server) = announced(&budget, SMALL_FRAME_BYTES + 9).await;
        let told = tokio::select! {
            read = second.read_from(&second_server) => panic!("there is no room: {read:?}"),
            read = first.read_from(&server) => read,
        };
        assert!(matches!(told, Err(FrameError::InTheWay)), "{told:?}");
        assert!(
            !second.is_in_frame(),
            "it is not the client that is waited for"
        );
        first.give_up();
        second.read_from(&second_server).await.unwrap();
        assert!(second.is_in_frame());
    }

    #[tokio::test]
    async fn a_buffer_grows_with_what_has_arrived() {
        let (mut client, server) = pair().await;
        let whole = 10 << 20;
        let mut reader = FrameReader::new(FrameBudget::new(40 << 20, whole), whole);
        client
            .write_all(&(whole as i32).to_be_bytes())
            .await
            .unwrap();
        let sending = crate::host::tasks::spawn(async move {
            for _ in 0..80 {
                client.write_all(&[7; 128 << 10]).await.unwrap();
            }
            client
        });
        let frame = loop {
            if let Some(frame) = reader.next_buffered().unwrap() {
                break frame;
            }
            reader.read_from(&server).await.unwrap();
            let (capacity, arrived) = (reader.buffer.capacity(), reader.buffer.len());
            assert!(
                capacity <= (2 * arrived).max(MEDIUM_FRAME_BYTES),
                "{capacity} for {arrived}"
            );
        };
        assert!(frame.budget.is_some() && frame.bytes.len() == whole);
        assert!(frame.bytes.iter().all(|byte| *byte == 7));
        sending.await.unwrap();
    }

    #[tokio::test]
    async fn bad_lengths_are_refused_from_the_length_alone() {
        for len in [0i32, -1, 1025, i32::MAX, i32::MIN] {
            let (mut client, server) = pair().await;
            client.write_all(&len.to_be_bytes()).await.unwrap();
            let mut reader = FrameReader::new(FrameBudget::new(4 << 20, 1 << 20), 1024);
            let error = next(&mut reader, &server).await.unwrap_err();
            assert!(matches!(error, FrameError::Length { len: seen, max: 1024 } if seen == len));
        }
    }
}
