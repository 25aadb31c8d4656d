//! Calls from instance to instance within one worker (W14).
//!
//! Within a process nobody can forge who calls, so no token is minted (W14.5). There is no remote transport yet
//! (W14.6, W14.8), so every namespace is local or unknown (W14.2, W14.7); and a context outlives its host's interest
//! in it, so that a client is never unavailable.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, RawQuery};
use http::{HeaderMap, StatusCode};
use parking_lot::Mutex;
use pinned::{
    Attestation, ClusterError, Connection, Context, Denied, HostOptions, Instance, MAX_CALL_DEPTH,
    PinnedWorker, lifespan, pinned_api, route,
};

use crate::app::{App, Board, Gate, settle};

/// What was said where no answer can carry it.
#[derive(Clone, Default)]
struct Said(Arc<Mutex<String>>);

/// Calls `path` and says what came of it.
async fn call(ctx: &Context, path: &str) -> String {
    match ctx.cluster().get(path).send().await {
        Ok(reply) => {
            let status = reply.status().as_u16();
            format!("{status} {}", reply.text().await.unwrap())
        }
        Err(error) => error.to_string(),
    }
}

struct Node {
    ctx: Context,
    /// What came of a call in the setup.
    greeting: Option<String>,
}

#[pinned_api]
impl Node {
    #[lifespan::setup]
    async fn setup(ctx: Context) -> Self {
        let greeting = match ctx.id() {
            "greets" => Some(call(&ctx, "/peers/b/caller").await),
            "calls-itself" => Some(call(&ctx, "/nodes/calls-itself").await),
            _ => None,
        };
        Self { ctx, greeting }
    }

    #[lifespan::teardown]
    async fn teardown(&mut self) {
        if self.ctx.id() == "calls-itself-at-the-end" {
            let reply = call(&self.ctx, "/nodes/calls-itself-at-the-end").await;
            *self.ctx.state::<Said>().unwrap().0.lock() = reply;
        }
    }

    #[route::get("/")]
    async fn name(&self) -> String {
        self.ctx.id().to_owned()
    }

    #[route::get("/greeting")]
    async fn greeting(&self) -> String {
        self.greeting.clone().unwrap_or_default()
    }

    /// Calls what the rest of the path says, under the shared turn.
    #[route::get("/shared/{*target}")]
    async fn shared(&self, Path(target): Path<String>) -> String {
        call(&self.ctx, &format!("/{target}")).await
    }

    /// The same under the exclusive turn.
    #[route::get("/exclusive/{*target}")]
    async fn exclusive(&mut self, Path(target): Path<String>) -> String {
        call(&self.ctx, &format!("/{target}")).await
    }

    /// The same under the exclusive turn, and once more without it.
    #[route::get("/taken/{*target}")]
    async fn taken(this: Instance<Self>, Path(target): Path<String>) -> String {
        let path = format!("/{target}");
        let turn = this.write().await.unwrap();
        let held = call(&turn.ctx, &path).await;
        drop(turn);
        format!("{held}; {}", call(&this.context(), &path).await)
    }

    /// The same from a task of its own.
    #[route::get("/spawned/{*target}")]
    async fn spawned(&mut self, Path(target): Path<String>) -> String {
        let (ctx, told) = (self.ctx.clone(), Arc::new(Mutex::new(String::new())));
        let heard = Arc::clone(&told);
        let task = self.ctx.spawn(async move {
            let reply = call(&ctx, &format!("/{target}")).await;
            *told.lock() = reply;
        });
        let _ = task.await;
        std::mem::take(&mut *heard.lock())
    }

    #[route::get("/twice/{*target}")]
    async fn twice(&self, Path(target): Path<String>) -> String {
        let path = format!("/{target}");
        format!(
            "{}; {}",
            call(&self.ctx, &path).await,
            call(&self.ctx, &path).await
        )
    }

    #[route::get("/down/{left}")]
    async fn down(&self, Path(left): Path<u32>) -> String {
        match left {
            0 => "bottom".to_owned(),
            left => call(&self.ctx, &format!("/nodes/n{left}/down/{}", left - 1)).await,
        }
    }

    #[route::get("/waits")]
    async fn waits(&self) -> String {
        self.ctx.state::<Gate>().unwrap().pass().await;
        "waited".to_owned()
    }
}

#[derive(Default)]
struct Peer;

#[pinned_api]
impl Peer {
    #[route::get("/caller")]
    async fn caller(&self, caller: Attestation) -> String {
        match caller {
            Attestation::Instance { ns, id, depth } => format!("{ns}/{id} at {depth}"),
            other => format!("{other:?}"),
        }
    }

    #[route::get("/headers")]
    async fn headers(&self, headers: HeaderMap) -> String {
        let mut names: Vec<_> = headers.keys().map(|name| name.as_str()).collect();
        names.sort_unstable();
        names.join(",")
    }

    #[route::put("/echo")]
    async fn echo(&mut self, RawQuery(query): RawQuery, body: String) -> (StatusCode, String) {
        (
            StatusCode::CREATED,
            format!("{} {body}", query.unwrap_or_default()),
        )
    }

    #[route::get("/back/{*target}")]
    async fn back(&self, ctx: Context, Path(target): Path<String>) -> String {
        call(&ctx, &format!("/{target}")).await
    }

    #[route::get("/swap/{*target}")]
    async fn swap(&mut self, ctx: Context, Path(target): Path<String>) -> String {
        ctx.state::<Gate>().unwrap().pass().await;
        call(&ctx, &format!("/{target}")).await
    }

    #[route::get("/checks")]
    async fn checks(&self, ctx: Context) -> String {
        let put = ctx
            .cluster()
            .put("/peers/c/echo?x=1")
            .query(&[("y", "a b")])
            .header("x-mine", "kept")
            .body("the body")
            .send()
            .await
            .unwrap();
        let put = format!("{} {}", put.status().as_u16(), put.text().await.unwrap());
        let headers = ctx
            .cluster()
            .get("/peers/c/headers")
            .header("x-mine", "kept")
            .header("Host", "elsewhere")
            .header("pinboard-epoch", "x")
            .header("Pinboard-Attestation", "forged")
            .header("PINBOARD-FROM", "/peers/eve")
            .send()
            .await
            .unwrap();
        format!("{put}; {}", headers.text().await.unwrap())
    }

    #[route::get("/mistakes")]
    async fn mistakes(&self, ctx: Context) -> String {
        let cluster = ctx.cluster();
        let mut said = Vec::new();
        for path in ["peers/c/caller", "", "/peers/c/a b"] {
            said.push(matches!(
                cluster.get(path).send().await,
                Err(ClusterError::InvalidRequest(_))
            ));
        }
        let bad_header = cluster
            .get("/peers/c/caller")
            .header("x y", "1")
            .send()
            .await;
        said.push(matches!(bad_header, Err(ClusterError::InvalidRequest(_))));
        format!("{said:?}")
    }

    #[route::get("/impatient")]
    async fn impatient(&self, ctx: Context) -> String {
        let call = ctx
            .cluster()
            .get("/nodes/a/waits")
            .timeout(Duration::from_secs(2));
        call.send().await.unwrap_err().to_string()
    }
}

/// Its authorizer calls the next of its kind, which is authorized by a call, and so on.
#[derive(Default)]
struct Loop;

#[pinned_api]
impl Loop {
    #[authorize]
    async fn authorize(ctx: &Context, _conn: &Connection) -> Result<(), Denied> {
        let next = ctx.id().parse::<u32>().unwrap() + 1;
        match ctx.cluster().get(format!("/loops/{next}")).send().await {
            Ok(reply) => Err(Denied::http(reply.status(), "denied further down")),
            Err(error) => {
                *ctx.state::<Said>().unwrap().0.lock() = format!("{next}: {error}");
                Err(Denied::http(StatusCode::IM_A_TEAPOT, "denied"))
            }
        }
    }

    #[route::get("/")]
    async fn open(&self) {}
}

/// Its authorizer relays the answer of another instance.
#[derive(Default)]
struct Relay;

#[pinned_api]
impl Relay {
    #[authorize]
    async fn authorize(ctx: &Context, _conn: &Connection) -> Result<(), Denied> {
        let reply = ctx.cluster().get("/peers/b/caller").send().await?;
        let headers = reply.headers().clone();
        Err(Denied::response((
            reply.status(),
            headers,
            reply.into_body(),
        )))
    }

    #[route::get("/")]
    async fn open(&self) {}
}

#[tokio::test(start_paused = true)]
async fn a_relayed_refusal_makes_no_promise_for_the_one_who_relays_it() {
    // H3.5: the marker would send pinboard elsewhere with the wrong id.
    let full = HostOptions::new().namespace("/peers").max_instances(1);
    let builder = PinnedWorker::builder()
        .host_with::<Peer>(full)
        .host::<Relay>("/relays");
    let app = App::start(builder).await;
    app.get("/peers/a/caller")
        .send()
        .await
        .assert_ok("Anonymous");
    let reply = app.get("/relays/r").send().await;
    reply.assert_error(503, "instance capacity reached; retry");
    assert_eq!(reply.header("pinned-refusal"), None);
    assert_eq!(reply.header("retry-after"), Some("1"));
}

/// Its authorizer calls a node.
#[derive(Default)]
struct Checked;

#[pinned_api]
impl Checked {
    #[authorize]
    async fn authorize(ctx: &Context, _conn: &Connection) -> Result<String, Denied> {
        Ok(call(ctx, "/nodes/a").await)
    }

    #[route::get("/")]
    async fn open(&self, said: pinned::Auth<String>) -> String {
        String::clone(&said)
    }
}

fn hosts() -> pinned::WorkerBuilder {
    PinnedWorker::builder()
        .host::<Node>("/nodes")
        .host::<Peer>("/peers")
        .host::<Loop>("/loops")
        .host::<Checked>("/checked")
        .state(Gate::closed())
}

async fn local() -> App {
    App::start(hosts().state(Said::default())).await
}

#[tokio::test(start_paused = true)]
async fn the_caller_is_attested() {
    // W14.1, W14.5
    let app = local().await;
    app.get("/nodes/a/shared/peers/b/caller")
        .send()
        .await
        .assert_ok("200 /nodes/a at 1");
    // A sibling namespace, in the other direction.
    app.get("/peers/b/back/nodes/a")
        .send()
        .await
        .assert_ok("200 a");
}

#[tokio::test(start_paused = true)]
async fn method_query_and_body_arrive_and_the_status_comes_back() {
    // W14.4, W14.5
    let app = local().await;
    app.get("/peers/b/checks")
        .send()
        .await
        .assert_ok("201 x=1&y=a+b the body; x-mine");
    app.get("/nodes/a/shared/peers/b/nowhere")
        .send()
        .await
        .assert_ok(r#"404 {"detail":"Not Found"}"#);
    app.get("/nodes/a/shared/peers/a%24/caller")
        .send()
        .await
        .assert_ok(r#"400 {"detail":"id must contain only [A-Za-z0-9._~-]"}"#);
}

#[tokio::test(start_paused = true)]
async fn a_mistake_in_a_call_is_an_error_before_anything_is_sent() {
    let app = local().await;
    app.get("/peers/b/mistakes")
        .send()
        .await
        .assert_ok("[true, true, true, true]");
}

#[tokio::test(start_paused = true)]
async fn an_unknown_namespace_is_an_error_that_says_why() {
    // W14.7
    let app = local().await;
    let text = app.get("/nodes/a/shared/elsewhere/x/y").text().await;
    assert!(
        text.contains("unknown cluster target /elsewhere/x/y"),
        "{text}"
    );
    assert!(text.contains("no pinboard configured"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_call_to_oneself_is_reentrant() {
    // W14.5
    let app = local().await;
    app.get("/nodes/a/shared/nodes/a")
        .send()
        .await
        .assert_ok("200 a");
    app.get("/nodes/a/shared/peers/b/back/nodes/a")
        .send()
        .await
        .assert_ok("200 200 a");
}

#[tokio::test(start_paused = true)]
async fn a_registered_worker_attests_its_own_calls() {
    // W14.2, W14.5
    let app = App::start(hosts().placements(Arc::new(Board::default()))).await;
    let reply = app
        .get("/nodes/a/shared/peers/b/caller")
        .attested()
        .send()
        .await;
    reply.assert_ok("200 /nodes/a at 1");
}

#[tokio::test(start_paused = true)]
async fn a_caller_sees_the_refusal_of_a_closing_instance() {
    // W14.5
    let board = Board::default();
    let acknowledged = Gate::closed();
    board.hold(&acknowledged);
    let app = App::start(hosts().placements(Arc::new(board))).await;
    app.get("/nodes/b").attested().send().await.assert_ok("b");
    app.worker.hosted::<Node>().unwrap().abort("b");
    acknowledged.reached(1).await;
    let reply = app.get("/nodes/a/shared/nodes/b").attested().send().await;
    reply.assert_ok(r#"503 {"detail":"instance closing; retry"}"#);
}

#[tokio::test(start_paused = true)]
async fn calls_go_fifty_deep_and_no_deeper() {
    // W14.3
    let app = local().await;
    let reply = app
        .get(&format!("/nodes/top/down/{MAX_CALL_DEPTH}"))
        .text()
        .await;
    assert!(reply.ends_with("200 bottom"), "{reply}");
    let reply = app
        .get(&format!("/nodes/top/down/{}", MAX_CALL_DEPTH + 1))
        .text()
        .await;
    assert!(
        reply.ends_with("cluster calls may be 50 deep; this one would be deeper"),
        "{reply}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_depth_is_that_of_the_request() {
    // W14.3
    let app = App::start(hosts().placements(Arc::new(Board::default()))).await;
    let at = |path: &str, depth| {
        let claims = app.claims().with_caller("/far/away", depth);
        let token = pinned::wire::attestation::mint(app.worker.secret(), &claims);
        app.get(path).header("pinboard-attestation", token)
    };
    // Adopted from the token, and sequential calls do not add up.
    let reply = at("/nodes/a/twice/peers/b/caller", 7).send().await;
    reply.assert_ok("200 /nodes/a at 8; 200 /nodes/a at 8");
    at("/nodes/a/shared/peers/b/caller", 49)
        .send()
        .await
        .assert_ok("200 /nodes/a at 50");
    for depth in [50, 51, u64::from(u32::MAX), u64::MAX] {
        let text = at("/nodes/a/shared/peers/b/caller", depth).text().await;
        assert!(text.contains("50 deep"), "{text}");
    }
    // Whoever is nobody's call starts at 0.
    app.get("/nodes/a/shared/peers/b/caller")
        .attested()
        .send()
        .await
        .assert_ok("200 /nodes/a at 1");
    // A task inherits it, and so does a setup.
    at("/nodes/a/spawned/peers/b/caller", 7)
        .send()
        .await
        .assert_ok("200 /nodes/a at 8");
    at("/nodes/greets/greeting", 7)
        .send()
        .await
        .assert_ok("200 /nodes/greets at 8");
}

#[tokio::test(start_paused = true)]
async fn authorizers_that_call_each_other_come_to_an_end() {
    // W14.3
    let said = Said::default();
    let app = App::start(hosts().state(said.clone())).await;
    let reply = app.get("/loops/0").send().await;
    assert_eq!(reply.status, StatusCode::IM_A_TEAPOT);
    assert_eq!(
        *said.0.lock(),
        "51: cluster calls may be 50 deep; this one would be deeper"
    );
    settle().await;
    assert_eq!(app.worker.hosted::<Loop>().unwrap().len(), 0);
}

/// A refusal of a call that would wait for its own ancestor.
fn chain(links: &str) -> String {
    format!("508 {{\"detail\":\"call chain would deadlock: {links}\"}}")
}

#[tokio::test(start_paused = true)]
async fn a_chain_that_comes_back_to_a_held_turn_is_refused_by_name() {
    let app = local().await;
    let cases = [
        (
            "/nodes/a/exclusive/nodes/a",
            chain("/nodes/a (exclusive) -> /nodes/a (shared)"),
        ),
        (
            "/nodes/a/shared/nodes/a/exclusive/nodes/b",
            chain("/nodes/a (shared) -> /nodes/a (exclusive)"),
        ),
        (
            "/nodes/a/exclusive/peers/b/back/nodes/a",
            format!(
                "200 {}",
                chain("/nodes/a (exclusive) -> /peers/b (shared) -> /nodes/a (shared)")
            ),
        ),
        // An authorizer is a link as well.
        (
            "/nodes/a/exclusive/checked/x",
            format!(
                "200 {}",
                chain("/nodes/a (exclusive) -> /checked/x (no turn) -> /nodes/a (shared)")
            ),
        ),
    ];
    for (path, said) in cases {
        app.get(path).send().await.assert_ok(&said);
    }
    // A turn that was given back is in nobody's way.
    let said = app.get("/nodes/a/taken/nodes/a").text().await;
    assert_eq!(
        said,
        format!(
            "{}; 200 a",
            chain("/nodes/a (exclusive) -> /nodes/a (shared)")
        )
    );
}

#[tokio::test(start_paused = true)]
async fn a_setup_or_teardown_that_calls_its_own_instance_is_refused_by_name() {
    let at_the_end = Said::default();
    let app = App::start(hosts().state(at_the_end.clone())).await;
    let said = app.get("/nodes/calls-itself/greeting").text().await;
    let links = "/nodes/calls-itself (exclusive) -> /nodes/calls-itself (exclusive)";
    assert_eq!(said, chain(links));

    app.get("/nodes/calls-itself-at-the-end")
        .send()
        .await
        .assert_ok("calls-itself-at-the-end");
    app.worker
        .hosted::<Node>()
        .unwrap()
        .abort("calls-itself-at-the-end");
    settle().await;
    let links =
        "/nodes/calls-itself-at-the-end (exclusive) -> /nodes/calls-itself-at-the-end (exclusive)";
    assert_eq!(*at_the_end.0.lock(), chain(links));
    // Torn down all the same, and there again for whoever asks next.
    app.get("/nodes/calls-itself-at-the-end")
        .send()
        .await
        .assert_ok("calls-itself-at-the-end");
}

#[tokio::test(start_paused = true)]
async fn two_chains_that_wait_for_each_other_end_at_the_turn_timeout() {
    // No chain holds what it asks for, so that neither is refused at once.
    let gate = Gate::closed();
    let options = HostOptions::new()
        .namespace("/peers")
        .turn_timeout(Duration::from_secs(5));
    let app = App::start(
        PinnedWorker::builder()
            .host_with::<Peer>(options)
            .state(gate.clone()),
    )
    .await;
    let there = app.get("/peers/a/swap/peers/b/caller").begin().await;
    let back = app.get("/peers/b/swap/peers/a/caller").begin().await;
    gate.reached(2).await;
    gate.open();
    let said = [there.await.unwrap().body, back.await.unwrap().body];
    assert!(
        said.iter()
            .any(|said| said.contains("turn timed out; retry")),
        "{said:?}"
    );
    app.get("/peers/a/caller")
        .send()
        .await
        .assert_ok("Anonymous");
    app.get("/peers/b/caller")
        .send()
        .await
        .assert_ok("Anonymous");
}

#[tokio::test(start_paused = true)]
async fn a_caller_may_give_up() {
    let app = local().await;
    let said = app.get("/peers/b/impatient").text().await;
    assert_eq!(said, "no answer within 2s");
    // The handler that was called goes on; nothing waits for anything.
    app.get("/nodes/a").send().await.assert_ok("a");
}
