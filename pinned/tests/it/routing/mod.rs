//! Ids and routes (H1).
//!
//! Compile-time rules stand in `tests/ui`: a path without a slash, a synchronous handler, reserved parameter names
//! (H1.8, H1.9). Rust has no derived classes whose handlers replace others (H1.8).

mod ids;

use axum::Json;
use axum::extract::Path;
use http::{Method, StatusCode};
use pinned::{
    Auth, Connection, Context, Denied, HostOptions, Instance, PinnedHost, PinnedWorker, WebSocket,
    pinned_api, route,
};

use crate::app::{App, Board};
use crate::fences::Store;

#[derive(Default)]
struct Pad;

struct Everyone;

#[pinned_api]
impl Pad {
    #[authorize]
    async fn authorize(_ctx: &Context, conn: &Connection) -> Result<Everyone, Denied> {
        if conn.headers().contains_key("x-stranger") {
            return Err(Denied::http(
                StatusCode::IM_A_TEAPOT,
                "strangers are denied",
            ));
        }
        Ok(Everyone)
    }

    #[route::get("/")]
    async fn root(&self, ctx: Context) -> String {
        format!("root of {}", ctx.id())
    }

    #[route::get("/ping")]
    #[route::get("/pong")]
    async fn ping(&self, ctx: Context) -> String {
        ctx.id().to_owned()
    }

    #[route::post("/numbers")]
    async fn add(&self, _everyone: Auth<Everyone>, Json(numbers): Json<Vec<u64>>) -> Json<u64> {
        Json(numbers.iter().sum())
    }

    #[route::put("/numbers")]
    async fn put(&mut self) -> &'static str {
        "put"
    }

    #[route::patch("/numbers")]
    async fn patch(&mut self) -> &'static str {
        "patch"
    }

    #[route::delete("/numbers")]
    async fn delete(&mut self) -> &'static str {
        "delete"
    }

    #[route::get("/items/{name}")]
    async fn item(&self, Path(name): Path<String>) -> String {
        name
    }

    #[route::get("/folder/")]
    async fn folder(&self) -> &'static str {
        "folder"
    }

    #[route::get("/panic")]
    async fn panic(&self) -> &'static str {
        panic!("a secret of the handler");
    }

    #[route::websocket("/chat")]
    async fn chat(this: Instance<Self>, socket: WebSocket) {
        let _ = socket.send_text(this.id()).await;
    }
}

async fn pads() -> (App, PinnedHost<Pad>) {
    let app = App::start(PinnedWorker::builder().host::<Pad>("/pads")).await;
    let host = app.worker.hosted().expect("mounted");
    (app, host)
}

async fn placed_pads(options: HostOptions) -> (App, PinnedHost<Pad>) {
    let builder = PinnedWorker::builder()
        .host_with::<Pad>(options.namespace("/pads"))
        .placements(std::sync::Arc::new(Board::default()));
    let app = App::start(builder).await;
    let host = app.worker.hosted().expect("mounted");
    (app, host)
}

#[tokio::test(start_paused = true)]
async fn the_checks_come_in_their_order() {
    // H1.6: attestation, id, epoch, admission, authorization.
    let (app, host) = placed_pads(HostOptions::new().max_instances(1)).await;
    app.get("/pads/resident/ping")
        .attested()
        .send()
        .await
        .assert_ok("resident");

    let bad_id = "/pads/a$/ping";
    app.get(bad_id)
        .header("pinboard-epoch", "x")
        .send()
        .await
        .assert_error(403, "invalid attestation");
    app.get(bad_id)
        .attested()
        .header("pinboard-epoch", "x")
        .send()
        .await
        .assert_error(400, "id must contain only [A-Za-z0-9._~-]");
    app.get("/pads/a/ping")
        .attested()
        .header("pinboard-epoch", "x")
        .send()
        .await
        .assert_error(400, "malformed placement epoch");
    let stranger = app.get("/pads/a/ping").attested().header("x-stranger", "1");
    stranger
        .send()
        .await
        .assert_refused("instance capacity reached; retry");
    let stranger = app
        .get("/pads/resident/ping")
        .attested()
        .header("x-stranger", "1");
    stranger
        .send()
        .await
        .assert_error(418, "strangers are denied");
    assert_eq!(host.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_matches_no_route_constructs_nothing() {
    // H1.7, also with a bad id, and before anybody is asked who they are.
    let (app, host) = placed_pads(HostOptions::new()).await;
    for path in [
        "/pads/a/nowhere",
        "/pads/a$/nowhere",
        "/pads/a/ping/more",
        "/pads/a//ping",
        "/pads/a/items/",
    ] {
        let reply = app.get(path).send().await;
        assert_eq!(
            (reply.status.as_u16(), reply.body.as_str()),
            (404, r#"{"detail":"Not Found"}"#),
            "{path}"
        );
    }
    let reply = app.post("/pads/a/ping").send().await;
    reply.assert_error(405, "Method Not Allowed");
    assert_eq!(reply.header("allow"), Some("GET, HEAD"));
    let reply = app.get("/pads/a/numbers").send().await;
    reply.assert_error(405, "Method Not Allowed");
    assert_eq!(reply.header("allow"), Some("POST, PUT, PATCH, DELETE"));
    assert_eq!(
        app.request(Method::OPTIONS, "/pads/a/items/x")
            .send()
            .await
            .status,
        405
    );
    assert_eq!((host.len(), host.evictions()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn one_slash_more_or_less_at_the_end_redirects() {
    // H1.7
    let (app, host) = pads().await;
    for (path, location) in [
        ("/pads/a/ping/", "../ping"),
        ("/pads/a/ping/?x=1", "../ping?x=1"),
        ("/pads/a/folder", "./folder/"),
        ("/pads/a/items/x/", "../x"),
    ] {
        let reply = app.get(path).send().await;
        assert_eq!(
            (reply.status, reply.header("location")),
            (StatusCode::TEMPORARY_REDIRECT, Some(location))
        );
    }
    // Two would lead a client round and round.
    assert_eq!(
        app.get("/pads/a/folder//").send().await.status,
        StatusCode::NOT_FOUND
    );
    assert_eq!(
        app.get("/pads/a//").send().await.status,
        StatusCode::NOT_FOUND
    );
    assert_eq!(host.len(), 0);
    // The root answers with and without.
    app.get("/pads/a").send().await.assert_ok("root of a");
    app.get("/pads/a/").send().await.assert_ok("root of a");
    app.get("/pads/a/folder/").send().await.assert_ok("folder");
}

#[tokio::test(start_paused = true)]
async fn a_head_is_answered_where_a_get_is() {
    // H1.7, as decided: the head of the GET.
    let (app, _host) = pads().await;
    let reply = app.request(Method::HEAD, "/pads/alice/ping").send().await;
    assert_eq!((reply.status, &*reply.body), (StatusCode::OK, ""));
    assert_eq!(reply.header("content-length"), Some("5"));
    assert_eq!(
        app.request(Method::HEAD, "/pads/a/numbers")
            .send()
            .await
            .status,
        405
    );
}

#[tokio::test(start_paused = true)]
async fn each_verb_has_its_handler_and_a_handler_may_have_several_routes() {
    // H1.8
    let (app, _host) = pads().await;
    for (method, body) in [
        (Method::PUT, "put"),
        (Method::PATCH, "patch"),
        (Method::DELETE, "delete"),
    ] {
        app.request(method, "/pads/a/numbers")
            .send()
            .await
            .assert_ok(body);
    }
    app.get("/pads/a/ping").send().await.assert_ok("a");
    app.get("/pads/a/pong").send().await.assert_ok("a");
    let mut socket = app.get("/pads/a/chat").connect().await.expect("accepted");
    assert_eq!(crate::app::frame(&mut socket).await, "a");
}

#[tokio::test(start_paused = true)]
async fn values_are_encoded_as_json() {
    // H1.10
    let (app, _host) = pads().await;
    let reply = app.post("/pads/a/numbers").json("[1,2,3]").send().await;
    reply.assert_ok("6");
    assert_eq!(reply.header("content-type"), Some("application/json"));
}

#[tokio::test(start_paused = true)]
async fn a_bad_body_runs_no_handler_and_activates_nothing() {
    // H1.11, as decided: after authorization, before activation.
    let (app, host) = pads().await;
    assert_eq!(
        app.post("/pads/a/numbers").json("[1,").send().await.status,
        StatusCode::BAD_REQUEST
    );
    let reply = app.post("/pads/a/numbers").json(r#"["one"]"#).send().await;
    assert_eq!(reply.status, StatusCode::UNPROCESSABLE_ENTITY);
    let stranger = app
        .post("/pads/a/numbers")
        .json("[1,")
        .header("x-stranger", "1");
    assert_eq!(stranger.send().await.status, StatusCode::IM_A_TEAPOT);
    crate::app::settle().await;
    assert_eq!((host.len(), host.activations()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_fault_leaks_nothing() {
    // H1.12
    let (app, host) = pads().await;
    let reply = app.get("/pads/a/panic").send().await;
    assert_eq!(
        (reply.status, &*reply.body),
        (StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error")
    );
    assert!(
        reply
            .header("content-type")
            .unwrap()
            .starts_with("text/plain")
    );
    crate::app::settle().await;
    app.get("/pads/a/ping").send().await.assert_ok("a");
    assert_eq!(host.activations(), 2);
}

#[tokio::test(start_paused = true)]
async fn wake_is_a_route_only_where_there_is_a_store() {
    // H1.13
    let (app, host) = pads().await;
    app.post("/pads/a/_wake")
        .send()
        .await
        .assert_error(404, "Not Found");
    assert_eq!(host.len(), 0);
}

#[derive(Default)]
struct Waker;

#[pinned_api]
impl Waker {
    #[route::get("/_wake")]
    #[route::post("/_wake")]
    async fn wake(&self) -> &'static str {
        "my own"
    }

    #[route::post("/{name}")]
    async fn any(&self, Path(name): Path<String>) -> String {
        name
    }
}

#[tokio::test(start_paused = true)]
async fn where_there_is_a_store_wake_comes_before_the_routes_of_the_struct() {
    // H1.13
    let builder = || PinnedWorker::builder().host::<Waker>("/wakers");
    let app = App::start(builder().durability(std::sync::Arc::new(Store::default()))).await;
    let reply = app.post("/wakers/a/_wake").send().await;
    assert_eq!(
        (reply.status.as_u16(), &*reply.body),
        (202, r#"{"activating":true}"#)
    );
    app.post("/wakers/a/_wake")
        .send()
        .await
        .assert_ok(r#"{"ok":true}"#);
    app.get("/wakers/a/_wake").send().await.assert_ok("my own");
    app.post("/wakers/a/other").send().await.assert_ok("other");
    let app = App::start(builder()).await;
    app.post("/wakers/a/_wake").send().await.assert_ok("my own");
}

#[tokio::test(start_paused = true)]
async fn a_router_inside_a_router_serves_the_same_paths() {
    let worker = PinnedWorker::builder()
        .host::<Pad>("/pads")
        .build()
        .unwrap();
    let _running = worker.run_lifespan().await.unwrap();
    let outer = axum::Router::new().nest("/api", worker.into_router());
    for (path, status) in [
        ("/api/pads/alice/ping", 200),
        ("/api/pads/%61lice/ping", 200),
        ("/api/pads//ping", 400),
        ("/api/pads/a%2Fb/ping", 404),
        ("/pads/alice/ping", 404),
    ] {
        let request = http::Request::get(path)
            .body(axum::body::Body::empty())
            .unwrap();
        let response = tower::ServiceExt::oneshot(outer.clone(), request)
            .await
            .unwrap();
        assert_eq!(response.status(), status, "{path}");
    }
    assert_eq!(worker.hosted::<Pad>().unwrap().len(), 1);
}
