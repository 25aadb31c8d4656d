use axum::response::Response;
use http::{Method, Version, request::Builder};
use http_body_util::BodyExt;
use hyper::ext::Protocol;

use super::{InProcessUpgrade, KEY, SocketControl, ask, parts, upgrade_request};
use crate::{domain::Domain, ws::handshake::wants_websocket};

fn without(name: &str) -> Builder {
    let mut request = upgrade_request();
    request.headers_mut().unwrap().remove(name);
    request
}

fn with(name: &str, value: &str) -> Builder {
    without(name).header(name, value)
}

fn over_http2() -> Builder {
    http::Request::builder()
        .method(Method::CONNECT)
        .version(Version::HTTP_2)
        .extension(Protocol::from_static("websocket"))
        .header("sec-websocket-version", "13")
}

fn refused(request: Builder) -> Response {
    let (_client, server) = tokio::io::duplex(64);
    let mut parts = parts(request.extension(InProcessUpgrade::new(server)));
    SocketControl::open(&mut parts, Domain::real()).unwrap_err()
}

async fn body(response: Response) -> String {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[tokio::test]
async fn the_answer_proves_that_the_key_was_read() {
    let asked = ask(upgrade_request());
    let _socket = asked.control.upgrade().accept().await.unwrap();
    let answer = asked.answer.await.unwrap();
    assert_eq!(answer.status(), 101);
    assert_eq!(answer.headers()["connection"], "upgrade");
    assert_eq!(answer.headers()["upgrade"], "websocket");
    // RFC 6455, 1.3
    assert_eq!(
        answer.headers()["sec-websocket-accept"],
        "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
    );
    assert!(!answer.headers().contains_key("sec-websocket-protocol"));
}

#[tokio::test]
async fn over_http2_the_answer_is_200_and_carries_no_hop_by_hop_header() {
    let asked = ask(over_http2().header("sec-websocket-protocol", "chat"));
    let upgrade = asked.control.upgrade().protocols(["chat"]);
    let _socket = upgrade.accept().await.unwrap();
    let answer = asked.answer.await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["sec-websocket-protocol"], "chat");
    assert_eq!(answer.headers().len(), 1);
}

#[tokio::test]
async fn a_request_that_is_no_upgrade_is_told_to_upgrade() {
    for request in [
        without("upgrade"),
        without("connection"),
        with("connection", "keep-alive"),
        with("upgrade", "h2c"),
        upgrade_request().version(Version::HTTP_2),
        over_http2().extension(Protocol::from_static("connect-udp")),
    ] {
        let version = parts_version(&request);
        let answer = refused(request);
        assert_eq!(answer.status(), 426);
        assert_eq!(answer.headers()["sec-websocket-version"], "13");
        assert_eq!(
            answer.headers().contains_key("upgrade"),
            version <= Version::HTTP_11
        );
        assert_eq!(
            body(answer).await,
            r#"{"detail":"this route is a websocket; send an upgrade request"}"#
        );
    }
}

fn parts_version(request: &Builder) -> Version {
    *request.version_ref().unwrap()
}

#[tokio::test]
async fn another_version_of_the_protocol_is_told_the_right_one() {
    for request in [
        without("sec-websocket-version"),
        with("sec-websocket-version", "8"),
        upgrade_request().header("sec-websocket-version", "8"),
    ] {
        let answer = refused(request);
        assert_eq!(answer.status(), 426);
        assert_eq!(answer.headers()["sec-websocket-version"], "13");
        assert_eq!(
            body(answer).await,
            r#"{"detail":"sec-websocket-version must be 13"}"#
        );
    }
}

#[tokio::test]
async fn a_key_that_is_not_16_bytes_is_refused() {
    for request in [
        without("sec-websocket-key"),
        with("sec-websocket-key", "not base64!"),
        with("sec-websocket-key", "c2hvcnQ="),
        with("sec-websocket-key", ""),
        upgrade_request().header("sec-websocket-key", KEY),
    ] {
        let answer = refused(request);
        assert_eq!(answer.status(), 400);
        assert_eq!(
            body(answer).await,
            r#"{"detail":"sec-websocket-key must be 16 bytes in base64"}"#
        );
    }
}

#[tokio::test]
async fn the_method_is_that_of_the_http_version() {
    for request in [
        upgrade_request().method(Method::POST),
        over_http2().method(Method::GET),
    ] {
        assert_eq!(refused(request).status(), 400);
    }
}

#[tokio::test]
async fn a_connection_that_cannot_be_upgraded_is_told_so() {
    let mut parts = parts(upgrade_request());
    let answer = SocketControl::open(&mut parts, Domain::real()).unwrap_err();
    assert_eq!(answer.status(), 426);
    assert_eq!(
        body(answer).await,
        r#"{"detail":"this connection cannot be upgraded"}"#
    );
}

#[tokio::test]
async fn an_in_process_connection_serves_one_upgrade() {
    let (_client, server) = tokio::io::duplex(64);
    let request = upgrade_request().extension(InProcessUpgrade::new(server));
    let mut first = parts(request);
    let mut second = first.clone();
    assert!(SocketControl::open(&mut first, Domain::real()).is_ok());
    let answer = SocketControl::open(&mut second, Domain::real()).unwrap_err();
    assert_eq!(answer.status(), 426);
}

#[test]
fn an_upgrade_is_told_from_a_plain_request_even_when_it_is_faulty() {
    assert!(wants_websocket(&parts(upgrade_request())));
    assert!(wants_websocket(&parts(without("sec-websocket-key"))));
    assert!(wants_websocket(&parts(over_http2())));
    assert!(!wants_websocket(&parts(without("upgrade"))));
}

#[tokio::test]
async fn tokens_may_stand_on_several_lines() {
    let request = with("connection", "")
        .header("connection", "keep-alive")
        .header("connection", "upgrade")
        .header("sec-websocket-protocol", "a , b")
        .header("sec-websocket-protocol", ",c");
    let asked = ask(request);
    let upgrade = asked.control.upgrade();
    let offered: Vec<_> = upgrade.requested_protocols().collect();
    assert_eq!(offered, ["a", "b", "c"]);
}

#[tokio::test]
async fn the_first_of_our_protocols_that_the_client_offers_is_chosen() {
    for (ours, chosen) in [
        (["c", "a"], Some("c")),
        (["x", "b"], Some("b")),
        (["x", "y"], None),
    ] {
        let asked = ask(upgrade_request().header("sec-websocket-protocol", "a, b, c"));
        let socket = asked.control.upgrade().protocols(ours).accept().await;
        assert_eq!(socket.unwrap().protocol(), chosen);
        let answer = asked.answer.await.unwrap();
        let header = answer.headers().get("sec-websocket-protocol");
        assert_eq!(header.map(|value| value.to_str().unwrap()), chosen);
    }
}
