//! One connection: frames out, frames in.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use bytes::Bytes;
use klamm::wire::{self, Value};

/// How long an answer may take. Kafka never answers a few requests; nothing waits on purpose.
const ANSWER_LIMIT: Duration = Duration::from_secs(15);
const FRAME_BYTES_MAX: usize = 128 << 20;

/// What came back.
#[derive(Debug, Clone, PartialEq)]
pub enum Received {
    Frame(Bytes),
    Closed,
    Silent,
}

pub struct Connection {
    stream: TcpStream,
    pub correlation_id: i32,
}

impl Connection {
    pub fn open(address: SocketAddr) -> Connection {
        let stream = TcpStream::connect(address).expect("a broker that accepts connections");
        stream.set_nodelay(true).expect("a socket");
        stream
            .set_read_timeout(Some(ANSWER_LIMIT))
            .expect("a socket");
        stream
            .set_write_timeout(Some(ANSWER_LIMIT))
            .expect("a socket");
        Connection {
            stream,
            correlation_id: 0,
        }
    }

    pub fn answer_limit(&self, limit: Duration) {
        self.stream.set_read_timeout(Some(limit)).expect("a socket");
    }

    /// Sends bytes as they are. A connection that the broker has closed shows at the next receive.
    pub fn send_raw(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    pub fn send_frame(&mut self, frame: &[u8]) {
        let length = (frame.len() as u32).to_be_bytes();
        self.send_raw(&[&length, frame].concat());
    }

    /// The same socket, to send from another thread.
    pub fn sender(&self) -> TcpStream {
        self.stream.try_clone().expect("a socket")
    }

    /// Ends the connection, whoever else uses its socket.
    pub fn close(self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    pub fn close_write(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    pub fn receive(&mut self) -> Received {
        let mut length = [0; 4];
        if let Some(ended) = self.fill(&mut length) {
            return ended;
        }
        let length = u32::from_be_bytes(length) as usize;
        assert!(length <= FRAME_BYTES_MAX, "an answer of {length} bytes");
        let mut frame = vec![0; length];
        match self.fill(&mut frame) {
            Some(ended) => ended,
            None => Received::Frame(frame.into()),
        }
    }

    fn fill(&mut self, buffer: &mut [u8]) -> Option<Received> {
        match self.stream.read_exact(buffer) {
            Ok(()) => None,
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut => Some(Received::Silent),
                _ => Some(Received::Closed),
            },
        }
    }

    /// Sends one request and reads its answer, for what a case needs but does not show.
    pub fn ask(&mut self, api: &str, version: i16, body: &Value) -> Result<Value, String> {
        let key = api_key(api)?;
        self.correlation_id += 1;
        let frame = wire::encode_request(key, version, self.correlation_id, Some("protocol"), body);
        self.send_frame(&frame.map_err(|e| e.to_string())?);
        match self.receive() {
            Received::Frame(frame) => {
                let answer = wire::decode_response(key, version, &frame);
                answer.map(|(_, body)| body).map_err(|e| e.to_string())
            }
            other => Err(format!("{api} v{version} is not answered: {other:?}")),
        }
    }
}

pub fn api_key(name: &str) -> Result<i16, String> {
    let api = wire::api_by_name(name).ok_or_else(|| format!("no API is called {name}"))?;
    Ok(api.key)
}
