//! The head of a request, as it goes to a worker.

/// A request head in its final form, written once by whoever makes it.
#[derive(Clone, Debug)]
pub struct RequestHead {
    /// `METHOD target HTTP/1.1\r\n`, the header lines that are the request's own (`Host` among them), and no empty line:
    /// the exchange adds the lines of the framing, and of `Connection` where it needs one.
    pub bytes: Vec<u8>,
    /// How the body is delimited.
    pub framing: Framing,
    /// Whether the body waits for a `100 Continue`; the head has the `Expect` line already.
    pub expect_continue: bool,
    /// Whether the answer has no body whatever it says: the method is `HEAD`.
    pub no_response_body: bool,
    /// The value of `Upgrade`, when the connection may become something else; the exchange writes `Connection: upgrade`.
    pub upgrade: Option<Vec<u8>>,
    /// Whether trailers are announced to be welcome (`TE: trailers`).
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
