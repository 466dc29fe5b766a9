//! The operating system, behind traits: the only module that reads a clock, draws random bytes,
//! touches a file or spawns a task. What runs over these traits can run over fakes.

#![allow(clippy::disallowed_methods)]

pub mod clock;
pub mod disk;
pub mod key_value;
pub mod limits;
pub mod log_levels;
pub mod network;
pub mod random;
pub mod tasks;
pub mod turns;

pub use clock::{Clock, SystemClock};
pub use disk::{Disk, File, OpenMode, RealDisk, Space};
pub use key_value::{KeyValue, SledKeyValue};
pub use turns::Turns;
