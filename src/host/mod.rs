//! The operating system, behind traits: the only module that reads a clock, draws random bytes,
//! touches a file or spawns a task. What runs over these traits can run over fakes.

#![allow(clippy::disallowed_methods)]

pub mod clock;
pub mod disk;
mod in_parallel;
pub mod key_value;
pub mod limits;
pub mod log_levels;
pub mod network;
pub mod process;
pub mod random;
#[cfg(test)]
pub mod simulated;
pub mod stream;
pub mod tasks;
pub mod turns;

use std::io;
use std::path::Path;
use std::sync::Arc;

pub use clock::{Clock, Stopwatch, SystemClock};
pub use disk::{Disk, File, OpenMode, PathKind, RealDisk, Space, read_given};
pub use in_parallel::in_parallel;
pub use key_value::{KeyValue, SledKeyValue};
pub use stream::{Listener, Stream};
pub use turns::Turns;

type OpenKeyValue = dyn Fn(&Path) -> io::Result<Arc<dyn KeyValue>> + Send + Sync;

/// What a node is given of the machine it runs on. Tasks, streams and randomness it finds by
/// itself.
#[derive(Clone)]
pub struct Host {
    pub disk: Arc<dyn Disk>,
    pub clock: Arc<dyn Clock>,
    /// Opens the store in a directory, making it if need be.
    pub open_key_value: Arc<OpenKeyValue>,
}

impl Host {
    /// The machine itself.
    pub fn real() -> Host {
        Host {
            disk: Arc::new(RealDisk),
            clock: Arc::new(SystemClock::new()),
            open_key_value: Arc::new(|dir| Ok(Arc::new(SledKeyValue::open(dir)?))),
        }
    }
}
