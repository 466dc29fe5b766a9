//! The configuration of a producer, by Kafka's names and defaults.

use std::time::Duration;

use crate::cli::exit::Exit;
use crate::cli::settings::{Settings, config_error};
use crate::record::Compression;

#[derive(Debug, Clone)]
pub struct ProducerConfig {
    /// -1: all.
    pub acks: i16,
    pub is_idempotent: bool,
    pub compression: Compression,
    pub batch_bytes: usize,
    pub linger: Duration,
    pub buffer_bytes: usize,
    pub request_timeout: Duration,
    pub delivery_timeout: Duration,
    pub max_block: Duration,
    pub retries: u32,
    pub in_flight_max: usize,
}

impl ProducerConfig {
    pub fn read(settings: &Settings) -> Result<ProducerConfig, Exit> {
        let acks = match settings.get("acks").unwrap_or("all") {
            "all" | "-1" => -1,
            "0" => 0,
            "1" => 1,
            other => {
                return Err(config_error(&format!(
                    "Invalid value {other} for configuration acks: String must be one of: all, -1, \
                     0, 1"
                )));
            }
        };
        let codec = settings.get("compression.type").unwrap_or("none");
        let known = Compression::ALL.into_iter().find(|c| c.name() == codec);
        let compression = known.ok_or_else(|| {
            config_error(&format!(
                "Invalid value {codec} for configuration compression.type: String must be one of: \
                 none, gzip, snappy, lz4, zstd"
            ))
        })?;
        let ms =
            |name: &str, default: u64| settings.number(name, default).map(Duration::from_millis);
        let in_flight = settings.number("max.in.flight.requests.per.connection", 5)?;
        let wants_idempotence = settings.flag("enable.idempotence", true);
        Ok(ProducerConfig {
            acks,
            is_idempotent: wants_idempotence && acks == -1 && in_flight <= 5,
            compression,
            batch_bytes: settings.number("batch.size", 16_384)?,
            linger: ms("linger.ms", 5)?,
            buffer_bytes: settings.number("buffer.memory", 32 << 20)?,
            request_timeout: ms("request.timeout.ms", 30_000)?,
            delivery_timeout: ms("delivery.timeout.ms", 120_000)?,
            max_block: ms("max.block.ms", 60_000)?,
            retries: settings.number("retries", u32::MAX)?,
            in_flight_max: in_flight.max(1),
        })
    }
}
