//! What a node counts, PURE: counters, the table of all metrics, and how they are written down.
//!
//! ```text
//! table        one row a metric: name, kind, labels, Kafka's counterpart, what it is
//! counter      what is added to on the way of a request
//! exposition   Prometheus' text format
//! document     docs/metrics.md
//! ```
//!
//! 1. On the way of a request there are relaxed additions only: no lock, no memory.
//! 2. A counter lies with the thing that it counts. What a state can tell (sizes, offsets,
//!    replicas) is not counted: it is looked at when somebody asks.
//! 3. How many series a metric may have is bounded: none has a label of a partition or of a client,
//!    and that of a topic has a limit.

mod counter;
mod document;
mod exposition;
mod table;

pub use counter::{BOUNDS_S, Counter, Times};
pub use document::metrics_markdown;
pub use exposition::{Exposition, Family};
pub use table::{Area, METRICS, Metric, MetricKind, MetricRow};
