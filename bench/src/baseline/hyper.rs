use std::{convert::Infallible, future, io, sync::Arc};

use http_body_util::Full;
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::{CONTENT_TYPE, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use super::Counters;

/// Serves the counters straight from hyper, with a hand-written match on the path, until the process ends.
///
/// # Errors
/// When the listener fails.
pub async fn hyper_server(listener: TcpListener) -> io::Result<()> {
    let counters = Arc::new(Counters::default());
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let counters = Arc::clone(&counters);
        tokio::spawn(async move {
            let service = service_fn(|request| answer(&counters, request));
            // A connection that its client broke concerns nobody else.
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn answer(
    counters: &Counters,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let target = request
        .uri()
        .path()
        .strip_prefix("/counters/")
        .and_then(|rest| rest.split_once('/'));
    let mut response = match target {
        Some((id, "increment")) if request.method() == Method::POST => {
            Response::new(Full::from(counters.increment(id).to_string()))
        }
        Some((_, "stall")) if request.method() == Method::POST => future::pending().await,
        _ => {
            let mut response = Response::new(Full::from("null"));
            *response.status_mut() = StatusCode::NOT_FOUND;
            response
        }
    };
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}
