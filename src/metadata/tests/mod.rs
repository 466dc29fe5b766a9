//! Tests of the metadata module.
