//! Parses the command line and hands over to the broker or to a command.

fn main() {}
