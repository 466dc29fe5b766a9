//! A small HTTP server, for those who look after a node. hyper reads requests and writes answers;
//! what there is to say is somebody else's ([`HttpService`]).
//!
//! 1. Nothing that is asked here may harm those who use the node: requests are read into one buffer
//!    of [`HEAD_BYTES_MAX`], a body is not read at all, and there are at most [`CONNECTIONS_MAX`]
//!    connections, each for one request and for [`TIME_MAX`].
//! 2. Who comes when all places are taken gets the place of the eldest: whoever opens many
//!    connections and leaves them cannot keep a health check out.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::host::{Listener, Stream, stream, tasks};

/// Connections at a time; file handles are kept for so many.
const CONNECTIONS_MAX: usize = 32;
/// The least that hyper takes.
const HEAD_BYTES_MAX: usize = 8192;
/// How long one connection may last: the request, the work and the answer.
const TIME_MAX: Duration = Duration::from_secs(10);
const BACKLOG: u32 = 128;
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

const TEXT: &str = "text/plain; charset=utf-8";

/// What is answered.
pub struct HttpAnswer {
    pub status: u16,
    pub content_type: &'static str,
    pub body: String,
}

impl HttpAnswer {
    /// One line of text.
    pub fn line(status: u16, line: &str) -> HttpAnswer {
        HttpAnswer {
            status,
            content_type: TEXT,
            body: format!("{line}\n"),
        }
    }
}

/// Says what there is at a path.
pub trait HttpService: Send + Sync + 'static {
    /// `None`: there is nothing at `path`.
    fn get(&self, path: &str) -> Pin<Box<dyn Future<Output = Option<HttpAnswer>> + Send + '_>>;
}

/// A socket that is bound.
pub struct HttpSocket {
    listener: Listener,
}

impl HttpSocket {
    pub fn bind(address: SocketAddr) -> io::Result<HttpSocket> {
        let listener = stream::listen(address, BACKLOG)?;
        Ok(HttpSocket { listener })
    }

    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers until the other end of `stopping` says so, or is gone; what is open then is cut.
    pub async fn run(self, service: Arc<impl HttpService>, mut stopping: watch::Receiver<bool>) {
        let mut open = Places::default();
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                _ = stopping.wait_for(|stop| *stop) => return,
            };
            match accepted {
                Ok((stream, _)) => {
                    open.make_room();
                    let answered = serve(stream, service.clone());
                    let limited = tokio::time::timeout(TIME_MAX, answered);
                    open.0
                        .push_back(Place(tasks::spawn(limited).abort_handle()));
                }
                Err(error) => {
                    tracing::warn!("accept failed at the listener of metrics: {error}");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

/// The connections, the eldest first.
#[derive(Default)]
struct Places(VecDeque<Place>);

impl Places {
    /// Makes room for one more.
    fn make_room(&mut self) {
        self.0.retain(|place| !place.0.is_finished());
        while self.0.len() >= CONNECTIONS_MAX {
            self.0.pop_front();
        }
    }
}

/// A connection; it is cut when this is dropped.
struct Place(AbortHandle);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn serve(stream: Stream, service: Arc<impl HttpService>) {
    let (read, write) = stream.into_split();
    let answer = service_fn(|request| {
        let service = service.clone();
        async move { Ok::<_, Infallible>(answer(&request, &*service).await) }
    });
    let served = http1::Builder::new()
        // A scrape a quarter of a minute is not worth a connection that stays.
        .keep_alive(false)
        // Who has asked may close its half and still wait.
        .half_close(true)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(tokio::io::join(read, write)), answer);
    if let Err(error) = served.await {
        tracing::debug!("a request for metrics or health failed: {error}");
    }
}

async fn answer(request: &Request<Incoming>, service: &impl HttpService) -> Response<Full<Bytes>> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut refused = response(HttpAnswer::line(405, "GET and HEAD are answered"));
        let allowed = HeaderValue::from_static("GET, HEAD");
        refused.headers_mut().insert(ALLOW, allowed);
        return refused;
    }
    let found = service.get(request.uri().path()).await;
    response(found.unwrap_or_else(|| HttpAnswer::line(404, "there are /metrics and /health")))
}

fn response(answer: HttpAnswer) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(answer.body)));
    let status = StatusCode::from_u16(answer.status);
    *response.status_mut() = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(answer.content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
