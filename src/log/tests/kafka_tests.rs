//! Partition directories that Apache Kafka 4.4 wrote (testdata/), opened by us.
