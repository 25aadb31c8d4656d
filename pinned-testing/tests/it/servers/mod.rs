//! Private servers.

mod cluster;
mod ending;
mod postgres;
mod redis;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};

/// A connection to a Redis.
struct Connection(BufReader<TcpStream>);

impl Connection {
    fn open(port: u16) -> std::io::Result<Self> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        Ok(Self(BufReader::new(stream)))
    }

    fn send(&mut self, command: &str) {
        let line = format!("{command}\r\n");
        self.0.get_mut().write_all(line.as_bytes()).expect("sent");
    }

    /// The next line that comes; empty once the other side has closed.
    fn receive(&mut self) -> String {
        let mut line = String::new();
        // A reset is what a killed server may leave as well.
        let _ = self.0.read_line(&mut line);
        line.trim_end().to_owned()
    }

    fn has_received_nothing(&mut self) -> bool {
        let stream = self.0.get_mut();
        stream.set_nonblocking(true).expect("a socket");
        let read = stream.read(&mut [0]);
        stream.set_nonblocking(false).expect("a socket");
        read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    }
}

fn is_listening(port: u16) -> bool {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
}
