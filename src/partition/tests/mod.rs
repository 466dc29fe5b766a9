//! Leaders and followers together: single situations, and a small world from seeds.

mod aside;
mod failing_moves;
mod flush_ms;
mod flushes;
mod lost;
mod moves;
mod places;
mod scenarios;
mod simulation;

use super::Partition;

/// The log's start, the high watermark and the log's end.
fn ends(partition: &Partition) -> (i64, i64, i64) {
    let watermarks = partition.watermarks();
    (
        watermarks.log_start_offset.0,
        watermarks.high_watermark.0,
        watermarks.log_end_offset.0,
    )
}
