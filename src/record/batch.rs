//! One batch as header and body, and the batches of a run of bytes.
//!
//! 1. A [`Batch`] holds exactly the bytes its header counts: `body` has
//!    `header.size_bytes() - HEADER_BYTES` of them, shared with the buffer it came from.
//! 2. The header is the only copy of its 61 bytes. What the broker changes it changes there, and
//!    the batch is written as `[header.to_bytes(), body]`.
//! 3. Iteration ends after the first error. A batch that the bytes only begin is
//!    [`BatchError::Torn`]: of a fetch answer that is normal, of a log it is the end to cut at.

use bytes::{BufMut, Bytes, BytesMut};

use super::header::{BatchHeader, BatchPrefix, CRC_START, HEADER_BYTES, HeaderError};

/// Why bytes are not a run of whole batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// The bytes end inside a batch. `needed_bytes` counts from `position`; while not even the
    /// length is there, it is the size of the prefix.
    #[error(
        "the batch at {position} is torn: it needs {needed_bytes} bytes, there are \
         {available_bytes}"
    )]
    Torn {
        position: usize,
        needed_bytes: usize,
        available_bytes: usize,
    },
    #[error("no batch at {position}")]
    Header {
        position: usize,
        #[source]
        source: HeaderError,
    },
    /// Only of [`Batch::parse`].
    #[error("{extra_bytes} bytes follow the batch")]
    Extra { extra_bytes: usize },
}

/// A whole batch in a buffer it does not own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchView<'a> {
    /// Where the batch starts in the bytes that are iterated over.
    pub position: usize,
    pub header: BatchHeader,
    /// Everything after the header.
    pub body: &'a [u8],
}

impl BatchView<'_> {
    pub fn compute_crc(&self) -> u32 {
        compute_crc(&self.header, self.body)
    }

    pub fn is_crc_right(&self) -> bool {
        self.compute_crc() == self.header.crc
    }
}

/// A whole batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    pub header: BatchHeader,
    /// Everything after the header.
    pub body: Bytes,
}

impl Batch {
    /// The one batch that `bytes` are. The CRC is not looked at.
    pub fn parse(bytes: Bytes) -> Result<Batch, BatchError> {
        let header = whole_header(&bytes, 0)?;
        let extra_bytes = bytes.len() - header.size_bytes();
        if extra_bytes > 0 {
            return Err(BatchError::Extra { extra_bytes });
        }
        let body = bytes.slice(HEADER_BYTES..);
        Ok(Batch { header, body })
    }

    pub fn size_bytes(&self) -> usize {
        HEADER_BYTES + self.body.len()
    }

    pub fn compute_crc(&self) -> u32 {
        compute_crc(&self.header, &self.body)
    }

    pub fn is_crc_right(&self) -> bool {
        self.compute_crc() == self.header.crc
    }

    /// The batch as it stands in a log, copied into one buffer.
    pub fn to_bytes(&self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(self.size_bytes());
        bytes.put_slice(&self.header.to_bytes());
        bytes.put_slice(&self.body);
        bytes.freeze()
    }
}

/// The batches that lie in `bytes` one after the other, borrowed.
#[derive(Debug, Clone)]
pub struct BatchViews<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> BatchViews<'a> {
    pub fn new(bytes: &'a [u8]) -> BatchViews<'a> {
        BatchViews { bytes, position: 0 }
    }

    /// Where the next batch starts. After an error: the end of the bytes; the error has the place.
    pub fn position(&self) -> usize {
        self.position
    }
}

impl<'a> Iterator for BatchViews<'a> {
    type Item = Result<BatchView<'a>, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        let position = self.position;
        let rest = self.bytes.get(position..).filter(|r| !r.is_empty())?;
        let header = match whole_header(rest, position) {
            Ok(header) => header,
            Err(e) => {
                self.position = self.bytes.len();
                return Some(Err(e));
            }
        };
        self.position += header.size_bytes();
        let body = &rest[HEADER_BYTES..header.size_bytes()];
        Some(Ok(BatchView {
            position,
            header,
            body,
        }))
    }
}

/// The batches that lie in `bytes` one after the other, each sharing the buffer.
#[derive(Debug, Clone)]
pub struct Batches {
    bytes: Bytes,
    position: usize,
}

impl Batches {
    pub fn new(bytes: Bytes) -> Batches {
        Batches { bytes, position: 0 }
    }
}

impl Iterator for Batches {
    type Item = Result<Batch, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut views = BatchViews {
            bytes: &self.bytes,
            position: self.position,
        };
        let next = views.next()?;
        self.position = views.position;
        Some(next.map(|view| Batch {
            header: view.header,
            body: self.bytes.slice_ref(view.body),
        }))
    }
}

/// The header of the batch that `bytes` start with and hold whole.
fn whole_header(bytes: &[u8], position: usize) -> Result<BatchHeader, BatchError> {
    let torn = |needed_bytes| BatchError::Torn {
        position,
        needed_bytes,
        available_bytes: bytes.len(),
    };
    let invalid = |source| BatchError::Header { position, source };
    let prefix = BatchPrefix::read(bytes).map_err(|_| torn(BatchPrefix::BYTES))?;
    let size_bytes = prefix.size_bytes().map_err(invalid)?;
    if bytes.len() < size_bytes {
        return Err(torn(size_bytes));
    }
    BatchHeader::read(bytes).map_err(invalid)
}

/// The CRC-32C of everything from the attributes on.
pub(super) fn compute_crc(header: &BatchHeader, body: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&header.to_bytes()[CRC_START..]), body)
}
