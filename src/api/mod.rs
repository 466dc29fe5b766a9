//! The table of APIs and one file per API.
