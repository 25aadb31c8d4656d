//! A server of another make.

use std::net::SocketAddr;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::routing::{any, get as on_get};
use futures_util::future::join_all;
use http_body_util::{BodyExt as _, Full};
use pinboard::upstream::{Backend, Framing, RequestHead};
use pinned_domain::{Domain, TaskHandle};
use tokio::net::TcpListener;

use super::rig::{get, none, options, request, text};

struct Server {
    address: SocketAddr,
    task: TaskHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn server() -> Server {
    let app = Router::new()
        .route("/hello", on_get(|| async { "hello" }))
        .route(
            "/echo",
            any(|request: Request| async { Body::new(request.into_body()) }),
        )
        .route(
            "/refuse",
            any(|| async { http::StatusCode::PAYLOAD_TOO_LARGE }),
        );
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let task = Domain::real().spawn(async move {
        axum::serve(listener, app).await.expect("it serves");
    });
    Server { address, task }
}

fn backend(server: &Server) -> Backend {
    Backend::new(options("http://worker/", vec![server.address]))
}

#[tokio::test]
async fn many_requests_at_once_share_connections() {
    let server = server().await;
    let backend = backend(&server);
    for _ in 0..5 {
        let all = (0..64).map(|_| async {
            let reply = backend
                .send(0, get("/hello"), none())
                .await
                .expect("a reply");
            assert_eq!(reply.headers["content-length"], "5");
            text(reply.body).await
        });
        assert!(join_all(all).await.iter().all(|text| text == "hello"));
        assert_eq!(backend.idle(), 64);
    }
    let reply = backend
        .send(0, request("HEAD", "/hello", Framing::None), none())
        .await;
    assert_eq!(text(reply.expect("a reply").body).await, "");
    assert_eq!(backend.idle(), 64);
}

#[tokio::test]
async fn bodies_come_back_as_they_went() {
    let server = server().await;
    let backend = backend(&server);
    let sent: Vec<u8> = (0..3 << 20).map(|n: u32| (n % 251) as u8).collect();
    for framing in [
        Framing::Length(sent.len() as u64),
        Framing::Chunked,
        Framing::Length(sent.len() as u64),
    ] {
        for expect_continue in [false, true] {
            let mut head: RequestHead = request("POST", "/echo", framing);
            if expect_continue {
                head.bytes.extend_from_slice(b"expect: 100-continue\r\n");
                head.expect_continue = true;
            }
            let body = Full::new(sent.clone().into());
            let reply = backend.send(0, head, body).await.expect("a reply");
            let back = reply.body.collect().await.expect("a body").to_bytes();
            assert!(back == sent);
            assert_eq!(backend.idle(), 1);
        }
    }
}

#[tokio::test]
async fn a_refusal_comes_through_although_the_body_is_not_taken() {
    let server = server().await;
    let backend = backend(&server);
    for _ in 0..10 {
        let body = Full::new(vec![0; 8 << 20].into());
        let head = request("POST", "/refuse", Framing::Length(8 << 20));
        let reply = backend.send(0, head, body).await.expect("a reply");
        assert_eq!(reply.status, 413);
        text(reply.body).await;
    }
}
