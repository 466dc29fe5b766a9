//! The standard streams of a command, so that a test can be on the other end.

use std::io::{self, BufRead, BufWriter, Write};

pub struct Io {
    pub out: Box<dyn Write + Send>,
    pub err: Box<dyn Write + Send>,
    pub input: Box<dyn BufRead + Send>,
}

impl Io {
    pub fn standard() -> Io {
        Io {
            out: Box::new(BufWriter::new(io::stdout())),
            err: Box::new(io::stderr()),
            input: Box::new(io::BufReader::new(io::stdin())),
        }
    }

    /// Prints one line. That nobody reads any more (`| head`) is no error of the command.
    pub fn line(&mut self, text: impl AsRef<str>) {
        let _ = writeln!(self.out, "{}", text.as_ref());
    }

    pub fn error_line(&mut self, text: impl AsRef<str>) {
        let _ = self.out.flush();
        let _ = writeln!(self.err, "{}", text.as_ref());
    }

    pub fn flush(&mut self) {
        let _ = self.out.flush();
    }
}
