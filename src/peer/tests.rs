//! Connections to a broker that is played by the test, byte by byte.
