//! Coordinators: load, decide, append, commit, reply.
