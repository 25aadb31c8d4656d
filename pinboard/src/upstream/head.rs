//! The head of a request, as it goes to a worker.

use std::io::Write as _;

/// A request head in its final form, written once by whoever makes it.
#[derive(Clone, Debug)]
pub struct RequestHead {
    /// `METHOD target HTTP/1.1\r\n`, the header lines that are the request's own (`Host` among them), and no empty line:
    /// the exchange adds the lines of the framing, and of `Connection` where it needs one. Room for 96 bytes more saves
    /// an allocation.
    ///
    /// What is in it is sent as it is: whoever makes it sees to it that no value has a CR, LF or NUL.
    pub bytes: Vec<u8>,
    /// How the body is delimited; the exchange writes `Content-Length` or `Transfer-Encoding`.
    pub framing: Framing,
    /// Whether the body waits for a `100 Continue`; the head has the `Expect` line already.
    pub expect_continue: bool,
    /// Whether the answer has no body whatever it says: the method is `HEAD`.
    pub no_response_body: bool,
    /// The value of `Upgrade`, when the connection may become something else; the exchange writes it, and
    /// `Connection: upgrade`.
    pub upgrade: Option<Vec<u8>>,
    /// Whether trailers are announced to be welcome; the exchange writes `TE: trailers`, and `Connection: te`.
    pub accepts_trailers: bool,
}

/// How the body of a request is delimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// There is none, and no `Content-Length` either.
    None,
    /// So many bytes.
    Length(u64),
    /// In chunks, with trailers if there are any.
    Chunked,
}

impl RequestHead {
    /// The whole head, with the lines that are the exchange's and the empty one.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.bytes);
        debug_assert!(bytes.ends_with(b"\r\n") && !bytes.ends_with(b"\r\n\r\n"));
        match self.framing {
            Framing::None => {}
            Framing::Length(length) => {
                // A `Vec` takes everything.
                let _ = write!(bytes, "content-length: {length}\r\n");
            }
            Framing::Chunked => bytes.extend_from_slice(b"transfer-encoding: chunked\r\n"),
        }
        match (&self.upgrade, self.accepts_trailers) {
            (None, false) => {}
            (None, true) => bytes.extend_from_slice(b"connection: te\r\n"),
            (Some(_), false) => bytes.extend_from_slice(b"connection: upgrade\r\n"),
            (Some(_), true) => bytes.extend_from_slice(b"connection: upgrade, te\r\n"),
        }
        if let Some(protocols) = &self.upgrade {
            debug_assert!(
                !protocols
                    .iter()
                    .any(|byte| matches!(byte, b'\r' | b'\n' | 0))
            );
            bytes.extend_from_slice(b"upgrade: ");
            bytes.extend_from_slice(protocols);
            bytes.extend_from_slice(b"\r\n");
        }
        if self.accepts_trailers {
            bytes.extend_from_slice(b"te: trailers\r\n");
        }
        bytes.extend_from_slice(b"\r\n");
        bytes
    }
}
