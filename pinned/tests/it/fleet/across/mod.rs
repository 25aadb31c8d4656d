//! Calls from worker to worker (W14), with a control plane between them that does what pinboard does with a call (P5.8).

mod calls;
mod chains;
mod desk;
mod feed;
mod sockets;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Path;
use axum::response::Response;
use futures_util::future::BoxFuture;
use http::{HeaderMap, Request};
use parking_lot::Mutex;
use pinned::wire::attestation::{Claims, mint};
use pinned::wire::chain;
use pinned::{
    BoxError, ClusterError, ClusterResponse, Context, DataPlane, HostOptions, Instance,
    PinnedWorker, Refusal, lifespan, pinned_api, route,
};
use tower::ServiceExt;

use super::Script;
use crate::app::{App, Call, Gate, pass, spawn};

/// The control plane between workers: each id has a home, and is called there with an attestation.
#[derive(Clone, Default)]
struct Exchange(Arc<State>);

#[derive(Default)]
struct State {
    workers: Mutex<Vec<App>>,
    /// Which worker an id lives on, and under which epoch: the first one, unless it says otherwise.
    homes: Mutex<HashMap<String, (usize, u64)>>,
    /// Workers that tell of no chain, and pass none on.
    other_edition: Mutex<HashSet<usize>>,
    /// Workers that say that nobody has called whoever calls.
    forgetful: Mutex<HashSet<usize>>,
    gates: Gates,
    /// The heads of all calls so far, as their workers sent them.
    calls: Mutex<Vec<(String, HeaderMap)>>,
}

impl Exchange {
    /// A fleet of `count` workers.
    async fn start(count: usize) -> Self {
        let exchange = Self::default();
        for _ in 0..count {
            let app = App::start(exchange.worker()).await;
            exchange.0.workers.lock().push(app);
        }
        pass(1).await;
        exchange
    }

    fn worker(&self) -> pinned::WorkerBuilder {
        let options = HostOptions::new().namespace("/nodes");
        PinnedWorker::builder()
            .host_with::<Node>(options)
            .host::<feed::Feed>("/feeds")
            .host::<desk::Desk>("/desks")
            .state(self.0.gates.clone())
            .advertise_url("http://10.0.0.7:8000")
            .headroom(|| 512)
            .control_plane(Arc::new(Script::default()))
            .data_plane(Arc::new(self.clone()))
    }

    fn app(&self, worker: usize) -> App {
        self.0.workers.lock()[worker].clone()
    }

    /// `/nodes/<id>` lives on `worker` from here on, under a new epoch.
    fn place(&self, id: &str, worker: usize) {
        self.place_at(&format!("/nodes/{id}"), worker);
    }

    fn place_at(&self, path: &str, worker: usize) {
        let mut homes = self.0.homes.lock();
        let home = homes.entry(path.to_owned()).or_insert((worker, 1));
        *home = (worker, home.1 + 1);
    }

    fn home(&self, path: &str) -> (usize, u64) {
        let segments: Vec<&str> = path.splitn(4, '/').collect();
        let key = segments[..segments.len().min(3)].join("/");
        self.0.homes.lock().get(&key).copied().unwrap_or((0, 1))
    }

    /// A request from outside to wherever `path` leads.
    fn get(&self, path: &str) -> Call {
        let (worker, epoch) = self.home(path);
        let app = self.app(worker);
        let call = app.get(path).epoch(epoch);
        super::attested(&app, call, "session-1")
    }

    /// What worker `index` does, another edition does as well, but for the chain.
    fn other_edition(&self, index: usize) {
        self.0.other_edition.lock().insert(index);
    }

    /// Worker `index` says of each of its calls that it is the first of its chain.
    fn forgets_depth(&self, index: usize) {
        self.0.forgetful.lock().insert(index);
    }

    /// The header `name` of the last call to `path`.
    fn header(&self, path: &str, name: &str) -> Option<String> {
        let calls = self.0.calls.lock();
        let (_, headers) = calls.iter().rev().find(|(to, _)| to == path)?;
        Some(headers.get(name)?.to_str().ok()?.to_owned())
    }
}

impl DataPlane for Exchange {
    fn call(&self, mut request: Request<Body>) -> BoxFuture<'static, Result<Response, BoxError>> {
        let path = request.uri().path().to_owned();
        let sent = request.headers().clone();
        self.0.calls.lock().push((path.clone(), sent.clone()));
        let said = |name: &str| sent.get(name).and_then(|value| value.to_str().ok());
        let sender = {
            let secret = said("pinboard-session-secret").expect("a secret");
            let workers = self.0.workers.lock();
            workers
                .iter()
                .position(|app| app.worker.secret() == secret)
                .expect("a worker of this fleet")
        };
        let (home, epoch) = self.home(&path);
        let target = self.app(home);
        let depth = match self.0.forgetful.lock().contains(&sender) {
            true => "1",
            false => said("pinboard-subrequest-depth").expect("a depth"),
        };
        let mut claims = Claims::new("session-1", target.worker.domain().now()).with_caller(
            said("pinboard-from").expect("a caller"),
            depth.parse().expect("a number"),
        );
        let tells = !self.0.other_edition.lock().contains(&sender);
        if let Some(links) = said("pinboard-chain").filter(|_| tells) {
            let links = chain::read(links).expect("a chain");
            claims = claims.with_chain(links.into_iter().map(str::to_owned).collect());
        }
        let token = mint(target.worker.secret(), &claims);
        let headers = request.headers_mut();
        for name in sent.keys() {
            if name.as_str().starts_with("pinboard-") {
                headers.remove(name);
            }
        }
        headers.insert("pinboard-attestation", token.try_into().expect("ASCII"));
        headers.insert("pinboard-epoch", epoch.into());
        // In a task of its own, as on another machine: nothing of the caller's is there but what it sent.
        let answer = spawn(target.router().oneshot(request));
        Box::pin(async move { Ok(answer.await??) })
    }
}

/// Where instances wait, and what they say where no answer can carry it, by name.
#[derive(Clone, Default)]
struct Gates {
    gates: Arc<Mutex<HashMap<String, Gate>>>,
    said: Arc<Mutex<Vec<String>>>,
    contexts: Arc<Mutex<HashMap<String, Context>>>,
}

impl Gates {
    fn named(&self, name: &str) -> Gate {
        let mut gates = self.gates.lock();
        let gate = gates.entry(name.to_owned()).or_insert_with(Gate::closed);
        gate.clone()
    }

    /// Whoever comes to `name` waits again.
    fn close_gate(&self, name: &str) {
        self.gates.lock().remove(name);
    }

    fn say(&self, what: impl Into<String>) {
        self.said.lock().push(what.into());
    }

    /// What was said since this was asked last.
    fn take_said(&self) -> Vec<String> {
        std::mem::take(&mut self.said.lock())
    }

    /// The context of a node that has been set up.
    fn context(&self, id: &str) -> Context {
        self.contexts.lock()[id].clone()
    }
}

impl std::ops::Deref for Exchange {
    type Target = Gates;

    fn deref(&self) -> &Gates {
        &self.0.gates
    }
}

/// Calls `path` and says what came of it.
async fn call(ctx: &Context, path: &str) -> String {
    said(ctx.cluster().get(path).send().await).await
}

async fn said(answer: Result<ClusterResponse, ClusterError>) -> String {
    match answer {
        Ok(answer) => {
            let status = answer.status().as_u16();
            format!("{status} {}", answer.text().await.expect("text"))
        }
        Err(error) => error.to_string(),
    }
}

/// An instance that calls what its path says.
struct Node {
    ctx: Context,
    /// What came of a call in the setup.
    greeting: String,
}

#[pinned_api]
impl Node {
    #[lifespan::setup]
    async fn setup(ctx: Context) -> Self {
        let greeting = match ctx.id() {
            "greets" => call(&ctx, "/nodes/b/shared/nodes/greets").await,
            _ => String::new(),
        };
        let gates = ctx.state::<Gates>().expect("shared");
        gates
            .contexts
            .lock()
            .insert(ctx.id().to_owned(), ctx.clone());
        Self { ctx, greeting }
    }

    #[lifespan::teardown]
    async fn teardown(&mut self) {
        if self.ctx.id() == "parts" {
            let said = call(&self.ctx, "/nodes/b/shared/nodes/parts").await;
            self.gates().say(said);
        }
    }

    #[route::get("/")]
    async fn name(&self) -> String {
        self.ctx.id().to_owned()
    }

    #[route::get("/greeting")]
    async fn greeting(&self) -> String {
        self.greeting.clone()
    }

    #[route::get("/shared/{*target}")]
    async fn shared(&self, Path(target): Path<String>) -> String {
        call(&self.ctx, &format!("/{target}")).await
    }

    #[route::get("/exclusive/{*target}")]
    async fn exclusive(&mut self, Path(target): Path<String>) -> String {
        call(&self.ctx, &format!("/{target}")).await
    }

    /// Calls under the exclusive turn, and once more without it.
    #[route::get("/taken/{*target}")]
    async fn taken(this: Instance<Self>, Path(target): Path<String>) -> Result<String, Refusal> {
        let target = format!("/{target}");
        let turn = this.write().await?;
        let within = call(&turn.ctx, &target).await;
        drop(turn);
        let after = call(&this.context(), &target).await;
        Ok(format!("{within}; {after}"))
    }

    /// Calls, and gives the turn back while the call is under way.
    #[route::get("/given-back/{*target}")]
    async fn given_back(
        this: Instance<Self>,
        Path(target): Path<String>,
    ) -> Result<String, Refusal> {
        let turn = this.write().await?;
        let gates = turn.gates();
        let ctx = this.context();
        let target = format!("/{target}");
        let gives_back = async {
            gates.named("called").reached(1).await;
            drop(turn);
            gates.named("called").open();
        };
        let (said, ()) = tokio::join!(call(&ctx, &target), gives_back);
        Ok(said)
    }

    /// Calls under the exclusive turn, and waits for two seconds only.
    #[route::get("/impatient/{*target}")]
    async fn impatient(&mut self, Path(target): Path<String>) -> String {
        let call = self.ctx.cluster().get(format!("/{target}"));
        let answer = call.timeout(Duration::from_secs(2)).send().await;
        said(answer).await
    }

    /// Waits at the gate `called` before it calls.
    #[route::get("/gated/{*target}")]
    async fn gated(&self, Path(target): Path<String>) -> String {
        self.gates().named("called").pass().await;
        let said = call(&self.ctx, &format!("/{target}")).await;
        self.gates().say(said.clone());
        said
    }

    #[route::get("/waits")]
    async fn waits(&self) -> String {
        self.gates().named("waits").pass().await;
        "waited".to_owned()
    }

    /// Queues for the exclusive turn.
    #[route::get("/alone")]
    async fn alone(&mut self) -> String {
        "alone".to_owned()
    }

    /// Opens a socket, and says what came of it.
    #[route::get("/opens/{*target}")]
    async fn opens(&mut self, Path(target): Path<String>) -> String {
        let asked = self.ctx.cluster().websocket(format!("/{target}"));
        match asked.connect().await {
            Ok(mut socket) => feed::heard(&mut socket).await,
            Err(error) => error.to_string(),
        }
    }

    /// Opens a socket under the exclusive turn, which it gives back while the socket stays open.
    #[route::get("/opens-first/{*target}")]
    async fn opens_first(
        this: Instance<Self>,
        Path(target): Path<String>,
    ) -> Result<String, Refusal> {
        let turn = this.write().await?;
        let asked = turn.ctx.cluster().websocket(format!("/{target}"));
        let mut socket = asked.connect().await.expect("a socket");
        turn.gates().named("called").reached(1).await;
        turn.gates().named("called").open();
        pass(100).await;
        drop(turn);
        Ok(feed::heard(&mut socket).await)
    }

    #[route::get("/down/{left}")]
    async fn down(&self, Path(left): Path<u32>) -> String {
        match left {
            0 => "bottom".to_owned(),
            left => call(&self.ctx, &format!("/nodes/n{left}/down/{}", left - 1)).await,
        }
    }
}

impl Node {
    fn gates(&self) -> Gates {
        Gates::clone(&self.ctx.state::<Gates>().expect("shared"))
    }
}
