//! However the bytes of a response are cut into reads, it is the same response.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http_body_util::BodyExt as _;
use parking_lot::Mutex;
use pinboard::upstream::{Backend, Connector, Dial, ExchangeErrorKind, Framing, Stream};
use proptest::prelude::*;
use proptest::sample::Index;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::rig::{none, options, request};

/// Reads that give one part each, with a pause before each.
struct Cut {
    parts: std::vec::IntoIter<Vec<u8>>,
    part: Vec<u8>,
    is_paused: bool,
}

impl AsyncRead for Cut {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !std::mem::replace(&mut self.is_paused, true) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if self.part.is_empty() {
            self.part = self.parts.next().unwrap_or_default();
        }
        let length = self.part.len().min(buf.remaining());
        buf.put_slice(&self.part[..length]);
        self.part.drain(..length);
        self.is_paused = !self.part.is_empty();
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Cut {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

struct Once(Mutex<Option<Cut>>);

impl Dial for Once {
    fn dial(&self, _: SocketAddr) -> BoxFuture<'static, io::Result<Stream>> {
        let cut = self.0.lock().take();
        async { Ok(Stream::Other(Box::new(cut.expect("one connection")))) }.boxed()
    }
}

/// All that can be seen of an exchange.
#[derive(Debug, PartialEq)]
enum Outcome {
    NoHead(ExchangeErrorKind),
    Head {
        status: u16,
        headers: Vec<(String, Vec<u8>)>,
        data: Vec<u8>,
        trailers: Vec<(String, Vec<u8>)>,
        error: Option<io::ErrorKind>,
    },
}

fn lines(map: &http::HeaderMap) -> Vec<(String, Vec<u8>)> {
    map.iter()
        .map(|(name, value)| (name.to_string(), value.as_bytes().to_vec()))
        .collect()
}

async fn outcome(method: &str, parts: Vec<Vec<u8>>) -> Outcome {
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let cut = Cut {
        parts: parts.into_iter(),
        part: Vec::new(),
        is_paused: false,
    };
    let backend = Backend::with_connector(
        options("http://worker/", vec![([10, 0, 0, 1], 80).into()]),
        Connector::new(Once(Mutex::new(Some(cut)))),
    );
    let mut reply = match backend
        .send(0, request(method, "/", Framing::None), none())
        .await
    {
        Ok(reply) => reply,
        Err(error) => return Outcome::NoHead(error.kind),
    };
    let (mut data, mut trailers, mut error) = (Vec::new(), Vec::new(), None);
    while let Some(frame) = reply.body.frame().await {
        match frame.map(http_body::Frame::into_data) {
            Ok(Ok(part)) => data.extend_from_slice(&part),
            Ok(Err(frame)) => trailers = lines(&frame.into_trailers().expect("trailers")),
            Err(broken) => {
                error = Some(broken.kind());
                break;
            }
        }
    }
    Outcome::Head {
        status: reply.status.as_u16(),
        headers: lines(&reply.headers),
        data,
        trailers,
        error,
    }
}

fn is_the_same(method: &str, bytes: &[u8], cuts: &[Index]) -> Result<(), TestCaseError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    let mut at: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    at.extend([0, bytes.len()]);
    at.sort_unstable();
    let parts = at
        .windows(2)
        .map(|ends| bytes[ends[0]..ends[1]].to_vec())
        .collect();
    let single = bytes.iter().map(|byte| vec![*byte]).collect();
    runtime.block_on(async {
        let whole = outcome(method, vec![bytes.to_vec()]).await;
        prop_assert_eq!(&outcome(method, parts).await, &whole);
        prop_assert_eq!(&outcome(method, single).await, &whole);
        Ok(())
    })
}

// --- Responses, most of them valid ---

fn method() -> impl Strategy<Value = &'static str> {
    prop_oneof![4 => Just("GET"), 1 => Just("HEAD")]
}

fn chunked() -> impl Strategy<Value = Vec<u8>> {
    let chunk = (
        prop::collection::vec(any::<u8>(), 1..40),
        "(;[a-z=\"]{0,8})?",
        "0{0,3}",
    );
    let trailer = "([a-z-]{1,8}: ?[ -~]{0,8}\r\n)?";
    (prop::collection::vec(chunk, 0..6), trailer).prop_map(|(chunks, trailer)| {
        let mut body = Vec::new();
        for (data, extension, zeros) in chunks {
            body.extend_from_slice(format!("{zeros}{:x}{extension}\r\n", data.len()).as_bytes());
            body.extend_from_slice(&data);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(format!("0\r\n{trailer}\r\n").as_bytes());
        body
    })
}

fn response() -> impl Strategy<Value = Vec<u8>> {
    let interim = prop_oneof![
        3 => Just(String::new()),
        1 => Just("HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n".to_owned()),
    ];
    let status = prop_oneof![5 => Just("200 OK"), 1 => Just("204 No Content"), 1 => Just("304 Not Modified")];
    let fields = prop::collection::vec("[a-zA-Z-]{1,10}:[ \t]?[ -~]{0,20}\r\n", 0..5);
    let body = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..80).prop_map(|body| {
            [
                format!("content-length: {}\r\n\r\n", body.len()).into_bytes(),
                body,
            ]
            .concat()
        }),
        chunked().prop_map(|body| [b"Transfer-Encoding: chunked\r\n\r\n".to_vec(), body].concat()),
        prop::collection::vec(any::<u8>(), 0..80)
            .prop_map(|body| [b"\r\n".to_vec(), body].concat()),
    ];
    (interim, status, fields, body).prop_map(|(interim, status, fields, body)| {
        let head = format!("{interim}HTTP/1.1 {status}\r\n{}", fields.concat());
        [head.into_bytes(), body].concat()
    })
}

/// Something that was a response before one byte of it was changed, put in or left out.
fn spoilt() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        any::<u8>(),
        prop::sample::select(b"\r\n\0 \t:;0aF,".to_vec()),
    ];
    (response(), any::<Index>(), byte, 0..3).prop_map(|(mut bytes, at, byte, how)| {
        let at = at.index(bytes.len());
        match how {
            0 => bytes[at] = byte,
            1 => bytes.insert(at, byte),
            _ => bytes.truncate(at),
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_response_is_the_same_however_it_is_cut(
        method in method(),
        bytes in response(),
        cuts in prop::collection::vec(any::<Index>(), 0..8),
    ) {
        is_the_same(method, &bytes, &cuts)?;
    }

    #[test]
    fn what_is_no_response_is_none_however_it_is_cut(
        method in method(),
        bytes in spoilt(),
        cuts in prop::collection::vec(any::<Index>(), 0..8),
    ) {
        is_the_same(method, &bytes, &cuts)?;
    }

    #[test]
    fn the_data_of_chunks_is_what_was_put_in(
        chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..6),
        cuts in prop::collection::vec(any::<Index>(), 0..8),
    ) {
        let mut bytes = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
        for chunk in &chunks {
            bytes.extend_from_slice(format!("{:X}\r\n", chunk.len()).as_bytes());
            bytes.extend_from_slice(chunk);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"0\r\n\r\n");
        is_the_same("GET", &bytes, &cuts)?;
        let whole = outcome("GET", vec![bytes]);
        match tokio::runtime::Builder::new_current_thread().enable_time().build().expect("one").block_on(whole) {
            Outcome::Head { data, error: None, .. } => prop_assert_eq!(data, chunks.concat()),
            other => prop_assert!(false, "{:?}", other),
        }
    }
}
