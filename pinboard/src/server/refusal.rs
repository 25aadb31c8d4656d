//! What a connection gets when there are as many as there may be (P5.12).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::serve::Shared;

/// How many are told so at once; others are just closed.
const MOST_AT_ONCE: usize = 64;

/// How long that may take.
const LIMIT: Duration = Duration::from_secs(1);

const ANSWER: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\n\
    content-type: application/json\r\n\
    content-length: 32\r\n\
    retry-after: 1\r\n\
    connection: close\r\n\
    \r\n\
    {\"error\":\"too many connections\"}";

/// Answers 503 to whatever the client asks.
pub(super) async fn refuse<S>(shared: &Arc<Shared>, mut stream: S)
where
    S: AsyncRead + AsyncWrite + Send + Unpin,
{
    let Some(_turn) = Turn::take(&shared.refusing) else {
        return;
    };
    let telling = async {
        stream.write_all(ANSWER).await?;
        stream.shutdown().await?;
        // If what it sends were not read, it would be reset, and might lose the answer.
        let mut thrown_away = [0; 1024];
        while stream.read(&mut thrown_away).await? > 0 {}
        std::io::Result::Ok(())
    };
    // It has been told, or cannot be.
    let _ = shared.domain.timeout(LIMIT, telling).await;
}

struct Turn<'s>(&'s AtomicUsize);

impl<'s> Turn<'s> {
    fn take(refusing: &'s AtomicUsize) -> Option<Self> {
        let turn = Self(refusing);
        (refusing.fetch_add(1, Ordering::Relaxed) < MOST_AT_ONCE).then_some(turn)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_is_that_of_the_body() {
        let answer = std::str::from_utf8(ANSWER).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(
            head.contains(&format!("content-length: {}\r\n", body.len())),
            "{head}"
        );
    }
}
