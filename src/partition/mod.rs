//! A partition on this broker: leader, waiters.
