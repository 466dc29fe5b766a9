//! Tests of whole logs. Those of one format are in its own file.

mod append_tests;
mod clean_tests;
mod crash_tests;
pub(crate) mod faulty_disk;
mod future_tests;
mod fuzz_tests;
mod kafka_tests;
mod log_dir_tests;
mod missing_tests;
mod model_tests;
mod read_tests;
mod retention_tests;
mod seams_tests;
pub(super) mod support;
mod threads_tests;
mod transaction_tests;
mod truncate_tests;
