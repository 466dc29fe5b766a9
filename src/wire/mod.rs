//! The wire format, PURE: frames, headers, and the layout of every message as a table.
