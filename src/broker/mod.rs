//! Start and stop order of one node.
