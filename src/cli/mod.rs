//! The client-side commands.
