//! The tables of configurations (broker, topic, group, client quota), and where values come from.
