//! One partition's log on disk: segments, indexes, epochs, producer state, recovery, retention.
