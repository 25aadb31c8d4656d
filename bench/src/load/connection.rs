use std::{io, net::SocketAddr};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// Room for one answer; a counter's is under 200 bytes.
const BUFFER: usize = 8 * 1024;

/// One keep-alive connection with at most one request in flight.
pub struct Connection {
    stream: TcpStream,
    buffer: Box<[u8]>,
}

/// The bytes of a `POST` without a body.
pub fn post(addr: SocketAddr, path: &str) -> Box<[u8]> {
    format!("POST {path} HTTP/1.1\r\nhost: {addr}\r\ncontent-length: 0\r\n\r\n")
        .into_bytes()
        .into()
}

impl Connection {
    /// Connects to `addr`.
    ///
    /// # Errors
    /// When the connection is refused.
    pub async fn open(addr: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(addr).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: vec![0; BUFFER].into(),
        })
    }

    /// Sends a request and does not wait for its answer.
    ///
    /// # Errors
    /// When the connection breaks.
    pub async fn send(&mut self, request: &[u8]) -> io::Result<()> {
        self.stream.write_all(request).await
    }

    /// Sends a request, reads the whole answer and returns its status.
    ///
    /// # Errors
    /// When the connection breaks, or the answer is not HTTP/1.1 with a `content-length` and within 8 KiB.
    pub async fn exchange(&mut self, request: &[u8]) -> io::Result<u16> {
        self.send(request).await?;
        let mut filled = 0;
        loop {
            let read = self.stream.read(&mut self.buffer[filled..]).await?;
            if read == 0 {
                // Also met when the buffer is full.
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            filled += read;
            if let Some(head) = Head::parse(&self.buffer[..filled])?
                && filled >= head.total
            {
                return Ok(head.status);
            }
        }
    }
}

/// What a load generator needs to know of an answer.
#[derive(Debug, PartialEq)]
struct Head {
    status: u16,
    /// Bytes of head and body together.
    total: usize,
}

impl Head {
    /// `None` while the head is not complete.
    fn parse(bytes: &[u8]) -> io::Result<Option<Self>> {
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
            return Ok(None);
        };
        let malformed =
            || io::Error::new(io::ErrorKind::InvalidData, "not a sized HTTP/1.1 answer");
        let head = std::str::from_utf8(&bytes[..end]).map_err(|_| malformed())?;
        let mut lines = head.split("\r\n");
        let status = lines
            .next()
            .and_then(|line| line.strip_prefix("HTTP/1.1 "))
            .and_then(|line| line.get(..3)?.parse().ok())
            .ok_or_else(malformed)?;
        let length: usize = lines
            .filter_map(|line| line.split_once(':'))
            .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
            .and_then(|(_, value)| value.trim().parse().ok())
            .ok_or_else(malformed)?;
        Ok(Some(Self {
            status,
            total: end + 4 + length,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_complete_once_its_stated_length_has_arrived() {
        let bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n42";
        let head = Head::parse(bytes).expect("well formed").expect("complete");
        assert_eq!(
            head,
            Head {
                status: 200,
                total: bytes.len()
            }
        );
        assert_eq!(Head::parse(&bytes[..30]).expect("well formed"), None);
    }

    #[test]
    fn an_answer_without_a_length_is_refused() {
        assert!(Head::parse(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").is_err());
        assert!(Head::parse(b"SSH-2.0\r\n\r\n").is_err());
    }
}
