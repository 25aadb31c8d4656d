//! The body of a response.

use bytes::{Bytes, BytesMut};
use http::HeaderMap;

use super::Malformed;
use super::chunked::Chunked;

/// Takes a body out of the bytes of a connection, by the way it is delimited (RFC 9112, 6.3).
#[derive(Clone, Copy, Debug)]
pub(in crate::upstream) enum Decoder {
    /// There is none, or no more of it.
    Empty,
    /// So many bytes are left.
    Length(u64),
    /// In chunks.
    Chunked(Chunked),
    /// Until the connection ends.
    UntilClose,
}

/// One part of a body.
#[derive(Debug)]
pub(in crate::upstream) enum Decoded {
    /// Data, never empty.
    Data(Bytes),
    /// Trailers; nothing comes after them.
    Trailers(HeaderMap),
    /// The body is complete.
    End,
    /// More has to be read first.
    More,
}

impl Decoder {
    pub(super) fn length(length: u64) -> Self {
        match length {
            0 => Self::Empty,
            length => Self::Length(length),
        }
    }

    pub(super) fn chunked() -> Self {
        Self::Chunked(Chunked::new())
    }

    /// Whether the body is complete.
    pub(in crate::upstream) fn is_done(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Length(left) => *left == 0,
            Self::Chunked(chunked) => chunked.is_done(),
            Self::UntilClose => false,
        }
    }

    /// How many bytes are left, where that was announced.
    pub(in crate::upstream) fn left(&self) -> Option<u64> {
        match self {
            Self::Empty => Some(0),
            Self::Length(left) => Some(*left),
            Self::Chunked(_) | Self::UntilClose => None,
        }
    }

    /// Whether the end of the connection is the end of the body.
    pub(in crate::upstream) fn ends_with_connection(&self) -> bool {
        matches!(self, Self::UntilClose)
    }

    /// Takes the next part off the front of `buffer`, without a copy.
    pub(in crate::upstream) fn decode(
        &mut self,
        buffer: &mut BytesMut,
    ) -> Result<Decoded, Malformed> {
        match self {
            Self::Empty | Self::Length(0) => Ok(Decoded::End),
            Self::Chunked(chunked) => chunked.decode(buffer),
            Self::Length(_) | Self::UntilClose if buffer.is_empty() => Ok(Decoded::More),
            Self::Length(left) => Ok(Decoded::Data(take(buffer, left))),
            Self::UntilClose => Ok(Decoded::Data(buffer.split().freeze())),
        }
    }
}

/// Takes up to `left` bytes of what is there, and counts them.
pub(super) fn take(buffer: &mut BytesMut, left: &mut u64) -> Bytes {
    let length = usize::try_from(*left).map_or(buffer.len(), |left| left.min(buffer.len()));
    *left -= length as u64;
    buffer.split_to(length).freeze()
}
