//! Upgrades that come over a server's connection.

use std::convert::Infallible;

use axum::{body::Body, response::Response};
use futures_util::{FutureExt, SinkExt, StreamExt};
use http::{Method, Request, StatusCode};
use hyper::{body::Incoming, ext::Protocol, server::conn, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{io::DuplexStream, sync::mpsc};
use tokio_tungstenite::{
    client_async,
    tungstenite::{Error, protocol::Role},
};

use super::{Client, SocketControl, closed_with, settle};
use crate::{domain::Domain, ws::close_code};

/// Serves a connection, and hands out the host's end of each upgrade.
fn serve(version_2: bool) -> (DuplexStream, mpsc::Receiver<SocketControl>) {
    let (client, server) = tokio::io::duplex(64 * 1024);
    let (asked, controls) = mpsc::channel(1);
    let service = service_fn(move |request: Request<Incoming>| {
        let asked = asked.clone();
        async move {
            let mut parts = request.into_parts().0;
            let answer: Response = match SocketControl::open(&mut parts, Domain::real()) {
                Ok((control, answer)) => {
                    asked.send(control).await.unwrap();
                    answer.await.unwrap()
                }
                Err(refusal) => refusal,
            };
            Ok::<_, Infallible>(answer)
        }
    });
    let io = TokioIo::new(server);
    tokio::spawn(async move {
        // How a connection ends is its client's business.
        if version_2 {
            let _ = conn::http2::Builder::new(TokioExecutor::new())
                .enable_connect_protocol()
                .serve_connection(io, service)
                .await;
        } else {
            let _ = conn::http1::Builder::new()
                .serve_connection(io, service)
                .with_upgrades()
                .await;
        }
    });
    (client, controls)
}

#[tokio::test(start_paused = true)]
async fn a_client_talks_and_is_closed_over_http1() {
    let (connection, mut controls) = serve(false);
    let host = tokio::spawn(async move {
        let control = controls.recv().await.unwrap();
        let mut socket = control.upgrade().accept().await.unwrap();
        let message = socket.recv().await.unwrap().unwrap();
        socket.send(message).await.unwrap();
        drop(socket);
        control.end(close_code::NORMAL, "over").await;
    });
    let (mut client, answer) = client_async("ws://host/a", connection).await.unwrap();
    assert_eq!(answer.status(), 101);
    client.send("hello".into()).await.unwrap();
    assert_eq!(client.next().await.unwrap().unwrap(), "hello".into());
    assert_eq!(closed_with(&mut client).await, (1000, "over".into()));
    assert!(client.next().await.is_none());
    host.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_client_talks_and_is_closed_over_http2() {
    let (connection, mut controls) = serve(true);
    let host = tokio::spawn(async move {
        let control = controls.recv().await.unwrap();
        let mut socket = control.upgrade().accept().await.unwrap();
        let message = socket.recv().await.unwrap().unwrap();
        socket.send(message).await.unwrap();
        control.end(close_code::NORMAL, "over").await;
    });
    let io = TokioIo::new(connection);
    let (mut requests, connection) = hyper::client::conn::http2::Builder::new(TokioExecutor::new())
        .handshake::<_, Body>(io)
        .await
        .unwrap();
    tokio::spawn(connection);
    // The server's settings allow the method, so they must have come.
    settle().await;
    let request = Request::builder()
        .method(Method::CONNECT)
        .uri("http://host/a")
        .extension(Protocol::from_static("websocket"))
        .header("sec-websocket-version", "13")
        .body(Body::empty())
        .unwrap();
    let answer = requests.send_request(request).await.unwrap();
    assert_eq!(answer.status(), 200);
    let upgraded = TokioIo::new(hyper::upgrade::on(answer).await.unwrap());
    let mut client =
        tokio_tungstenite::WebSocketStream::from_raw_socket(upgraded, Role::Client, None).await;
    client.send("hello".into()).await.unwrap();
    assert_eq!(client.next().await.unwrap().unwrap(), "hello".into());
    let close = client.next().await.unwrap().unwrap();
    assert!(close.is_close());
    assert!(client.next().await.is_none());
    host.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_an_ordinary_response_with_its_body() {
    // H3.12
    let (connection, mut controls) = serve(false);
    tokio::spawn(async move {
        let control = controls.recv().await.unwrap();
        let mut busy = Response::new(Body::from(r#"{"detail":"host draining; retry"}"#));
        *busy.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        busy.headers_mut().insert("retry-after", 1.into());
        assert!(control.refuse(busy));
    });
    let refused = client_async("ws://host/a", connection).await;
    let Err(Error::Http(answer)) = refused else {
        panic!("the upgrade was not refused");
    };
    assert_eq!(answer.status(), 503);
    assert_eq!(answer.headers()["retry-after"], "1");
    assert_eq!(answer.headers()["content-length"], "33");
}

#[tokio::test(start_paused = true)]
async fn a_handler_cut_off_while_it_accepts_leaves_an_open_socket_to_the_host() {
    let (connection, mut controls) = serve(false);
    let host = tokio::spawn(async move {
        let control = controls.recv().await.unwrap();
        // The answer is out, and the server has not handed the connection over.
        assert!(control.upgrade().accept().now_or_never().is_none());
        assert!(control.is_accepted());
        control.end(close_code::SERVICE_RESTART, "").await;
    });
    let (mut client, _): (Client, _) = client_async("ws://host/a", connection).await.unwrap();
    assert_eq!(closed_with(&mut client).await.0, 1012);
    assert!(client.next().await.is_none());
    host.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_before_the_answer_makes_accepting_an_error() {
    let (connection, mut controls) = serve(false);
    let client =
        tokio::spawn(async move { client_async("ws://host/a", connection).await.map(drop) });
    let control = controls.recv().await.unwrap();
    client.abort();
    settle().await;
    let accepted = control.upgrade().accept().await;
    assert!(accepted.unwrap_err().is_client_left());
}
