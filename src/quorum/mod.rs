//! The metadata quorum: the only user of openraft.
