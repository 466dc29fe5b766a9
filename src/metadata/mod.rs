//! Cluster metadata, PURE: records, the immutable image, planners that turn requests into records.
