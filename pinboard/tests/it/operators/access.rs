//! Who may ask (P2, P3).

use http::{Method, StatusCode, header};
use serde_json::json;

use crate::sessions::rig::{OPERATOR, ROOMS, WORKER, World, request};

const GETS: [&str; 5] = ["workers", "stats", "overview", "health", "events"];
const POSTS: [&str; 3] = ["drain", "undrain", "wind_down"];

#[tokio::test(start_paused = true)]
async fn every_route_needs_the_token_of_an_operator() {
    let world = World::new().await;
    let node = world.node();
    for (method, names) in [(Method::GET, &GETS[..]), (Method::POST, &POSTS[..])] {
        for name in names {
            let path = format!("/registry/{name}");
            for (token, status, error) in [
                ("", 401, "unauthorized"),
                ("token-of-nobody", 401, "unauthorized"),
                (WORKER, 403, "forbidden"),
            ] {
                let call = request(method.clone(), &path, token, "nonsense".into());
                let answer = node.send(call).await;
                answer.refuses(status, error);
                assert_eq!(answer.json(), json!({"error": error}));
            }
        }
    }
    for name in GETS {
        node.get(&format!("/registry/{name}"), OPERATOR).await.ok();
    }
    for name in POSTS {
        let path = format!("/registry/{name}");
        node.post_text(&path, OPERATOR, "nonsense")
            .await
            .malformed();
        let too_long = " ".repeat((1 << 20) + 1);
        node.post_text(&path, OPERATOR, &too_long)
            .await
            .refuses(413, "the body is longer than 1048576 bytes");
    }
}

#[tokio::test(start_paused = true)]
async fn a_route_takes_its_own_method_and_no_other_route_is_there() {
    let world = World::new().await;
    let node = world.node();
    for name in GETS {
        let call = request(
            Method::POST,
            &format!("/registry/{name}"),
            OPERATOR,
            "{}".into(),
        );
        let answer = node.send(call).await;
        assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(answer.headers[header::ALLOW], "GET, HEAD");
        answer.refuses(405, "method not allowed, use GET, HEAD");
    }
    for name in POSTS {
        let answer = node.get(&format!("/registry/{name}"), OPERATOR).await;
        answer.refuses(405, "method not allowed, use POST");
    }
    for path in [
        "/registry",
        "/registry/",
        "/registry/x",
        "/registry/workers/",
        "/registry/a/b",
    ] {
        node.get(path, OPERATOR).await.refuses(404, "not found");
    }
}

// P3.6
#[tokio::test(start_paused = true)]
async fn the_metrics_need_claims_without_bounds() {
    let world = World::new().await;
    let node = world.node();
    node.get("/metrics", "").await.refuses(401, "unauthorized");
    node.get("/metrics", WORKER).await.refuses(403, "forbidden");
    node.get("/metrics", ROOMS).await.refuses(403, "forbidden");
    let answer = node.get("/metrics", OPERATOR).await;
    assert_eq!(
        (answer.status, &*answer.text),
        (StatusCode::OK, "pinboard_workers 1\n")
    );
    assert_eq!(
        answer.headers[header::CONTENT_TYPE],
        "text/plain; version=0.0.4; charset=utf-8"
    );
}
