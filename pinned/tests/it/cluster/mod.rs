//! Calls from instance to instance within one worker (W14).
//!
//! Within a process nobody can forge who calls, so no token is minted (W14.5). Every namespace is local or unknown here
//! (W14.2, W14.7); calls to other workers (W14.6) are shown in `fleet::across`. A context outlives its host's interest in
//! it, so that a client is never unavailable.

mod calls;
mod chains;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, RawQuery};
use http::{HeaderMap, StatusCode};
use parking_lot::Mutex;
use pinned::{
    Attestation, ClusterError, Connection, Context, Denied, HostOptions, Instance, MAX_CALL_DEPTH,
    PinnedHost, PinnedWorker, lifespan, pinned_api, route,
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

/// The nodes of the worker, for its own instances.
#[derive(Clone, Default)]
struct Nodes(Arc<Mutex<Option<PinnedHost<Node>>>>);

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
            "slow" => {
                ctx.state::<Gate>().unwrap().pass().await;
                Some(call(&ctx, "/nodes/a").await)
            }
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

    /// The same under the exclusive turn, for two seconds.
    #[route::get("/impatient/{*target}")]
    async fn impatient(&mut self, Path(target): Path<String>) -> String {
        let call = self.ctx.cluster().get(format!("/{target}"));
        let reply = call.timeout(Duration::from_secs(2)).send().await;
        reply.unwrap_err().to_string()
    }

    /// Waits for another node of this worker under the exclusive turn, for two seconds.
    #[route::get("/awaits/{node}")]
    async fn awaits(&mut self, Path(node): Path<String>) -> String {
        let nodes = self.ctx.state::<Nodes>().unwrap().0.lock().clone().unwrap();
        let domain = self.ctx.domain().clone();
        let wait = domain.timeout(Duration::from_secs(2), nodes.instance(&node));
        format!("{}", wait.await.is_ok())
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
        let reply = call(&ctx, &format!("/{target}")).await;
        if let Some(said) = ctx.state::<Said>() {
            said.0.lock().clone_from(&reply);
        }
        reply
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
