//! What the tests of lifecycles share: an instance that does as it is told, and the steps of its life in order.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Path;
use axum::response::Response;
use futures_util::future::BoxFuture;
use futures_util::{StreamExt, stream};
use http::Request;
use parking_lot::Mutex;
use pinned::durability::{Durability, EffectLog};
use pinned::{
    BoxError, Connection, Context, Denied, HostOptions, Instance, InstanceLeaseSettings,
    PinnedHost, PinnedWorker, Placements, WebSocket, WorkerBuilder, lifespan, pinned_api, route,
};
use tokio::task::JoinHandle;
use tower::ServiceExt;

use crate::app::{App, Call, Gate, Socket, spawn};

/// What happens in a test, where it is held up, and what is to fail.
#[derive(Clone, Default)]
pub(crate) struct Scene(Arc<SceneState>);

type Settings = Box<dyn Fn() -> InstanceLeaseSettings + Send + Sync>;

#[derive(Default)]
struct SceneState {
    steps: Mutex<Vec<String>>,
    gates: Mutex<HashMap<String, Gate>>,
    faults: Mutex<HashSet<&'static str>>,
    contexts: Mutex<Vec<Context>>,
    logs: Mutex<Vec<Weak<Log>>>,
    settings: Mutex<Option<Settings>>,
}

impl Scene {
    pub(crate) fn note(&self, step: impl Into<String>) {
        self.0.steps.lock().push(step.into());
    }

    /// What has happened since the last call.
    pub(crate) fn steps(&self) -> Vec<String> {
        std::mem::take(&mut self.0.steps.lock())
    }

    /// Holds up whoever comes to `place`, until the gate is opened.
    pub(crate) fn hold(&self, place: &str) -> Gate {
        let gate = Gate::closed();
        self.0.gates.lock().insert(place.to_owned(), gate.clone());
        gate
    }

    /// What comes to `place` fails there.
    pub(crate) fn fail(&self, place: &'static str) {
        self.0.faults.lock().insert(place);
    }

    /// Each setup configures its lease with these.
    pub(crate) fn configure(
        &self,
        settings: impl Fn() -> InstanceLeaseSettings + Send + Sync + 'static,
    ) {
        *self.0.settings.lock() = Some(Box::new(settings));
    }

    /// The context of the newest instance.
    pub(crate) fn context(&self) -> Context {
        self.0.contexts.lock().last().expect("an instance").clone()
    }

    /// How many instances are held by anything at all, once the scene lets go of them: each owns its log.
    pub(crate) fn held(&self) -> usize {
        self.0.contexts.lock().clear();
        let logs = self.0.logs.lock();
        logs.iter().filter(|log| log.strong_count() > 0).count()
    }

    async fn reach(&self, place: &str) -> Result<(), BoxError> {
        let gate = self.0.gates.lock().get(place).cloned();
        if let Some(gate) = gate {
            gate.pass().await;
        }
        if self.0.faults.lock().contains(place) {
            return Err(format!("{place} was told to fail").into());
        }
        Ok(())
    }

    /// Notes the end of what it guards, and whether that was cut off.
    fn guard(&self, what: &'static str) -> Guard {
        self.note(what);
        Guard {
            scene: self.clone(),
            what,
            done: false,
        }
    }

    /// A worker that hosts [`Actor`] at `/actors`.
    pub(crate) fn worker(&self, options: HostOptions) -> WorkerBuilder {
        PinnedWorker::builder()
            .state(self.clone())
            .host_with::<Actor>(options.namespace("/actors"))
    }

    /// The same with a control plane that places every id here, and a state store.
    pub(crate) fn placed_worker(&self, options: HostOptions) -> WorkerBuilder {
        self.worker(options)
            .placements(Arc::new(Plane(self.clone())))
            .durability(Arc::new(Store(self.clone())))
    }
}

/// `Guard::done` notes the end; dropped without it, it notes that the work was cut.
struct Guard {
    scene: Scene,
    what: &'static str,
    done: bool,
}

impl Guard {
    fn done(mut self) {
        self.done = true;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let end = if self.done { "done" } else { "cut" };
        self.scene.note(format!("{} {end}", self.what));
    }
}

/// An instance that does as its scene says.
pub(crate) struct Actor {
    scene: Scene,
    ctx: Context,
}

fn scene(ctx: &Context) -> Scene {
    Scene::clone(&ctx.state::<Scene>().expect("the worker shares its scene"))
}

#[pinned_api]
impl Actor {
    #[lifespan::setup]
    async fn setup(ctx: Context) -> Result<Self, BoxError> {
        let scene = scene(&ctx);
        scene.note("setup");
        if let Some(settings) = &*scene.0.settings.lock() {
            ctx.lease().configure(settings())?;
        }
        scene.0.contexts.lock().push(ctx.clone());
        scene.reach("setup").await?;
        Ok(Self { scene, ctx })
    }

    #[lifespan::teardown]
    async fn teardown(&mut self) -> Result<(), BoxError> {
        self.scene.note("teardown");
        self.scene.reach("teardown").await
    }

    #[authorize]
    async fn authorize(ctx: &Context, _conn: &Connection) -> Result<(), Denied> {
        scene(ctx)
            .reach("authorize")
            .await
            .map_err(|error| Denied::fault(error.to_string()))
    }

    #[stats]
    fn stats(&self) -> serde_json::Value {
        serde_json::json!({ "mood": "calm", "id": "forged", "namespace": "/forged" })
    }

    #[route::get("/")]
    async fn here(&self) -> &'static str {
        "here"
    }

    /// Works until the gate `work` opens.
    #[route::post("/work")]
    async fn work(this: Instance<Self>) -> String {
        let scene = scene(&this.context());
        let guard = scene.guard("work");
        let outcome = scene.reach("work").await;
        guard.done();
        outcome.map_or_else(|error| error.to_string(), |()| "worked".to_owned())
    }

    /// Spawns a task that ends when the gate `task` opens.
    #[route::post("/task")]
    async fn task(&self) {
        let scene = self.scene.clone();
        self.ctx.spawn(async move {
            let guard = scene.guard("task");
            scene.reach("task").await?;
            guard.done();
            Ok::<(), BoxError>(())
        });
    }

    /// Sends one chunk, and another when the gate `stream` opens.
    #[route::get("/stream")]
    async fn stream(&self) -> Body {
        let guard = self.scene.guard("stream");
        let chunks = stream::unfold(Some((self.scene.clone(), guard, true)), |state| async {
            let (scene, guard, first) = state?;
            if first {
                return Some((Ok(Bytes::from("one")), Some((scene, guard, false))));
            }
            let outcome = scene.reach("stream").await.map(|()| Bytes::from("two"));
            guard.done();
            Some((outcome, None))
        });
        Body::from_stream(chunks)
    }

    /// Echoes until the client leaves.
    #[route::websocket("/socket")]
    async fn socket(this: Instance<Self>, mut socket: WebSocket) {
        let guard = scene(&this.context()).guard("socket");
        while let Some(Ok(message)) = socket.recv().await {
            if socket.send(message).await.is_err() {
                break;
            }
        }
        guard.done();
    }

    /// Keeps the exclusive turn for as long as its client stays.
    #[route::websocket("/hog")]
    async fn hog(this: Instance<Self>, mut socket: WebSocket) {
        let Ok(_turn) = this.write().await else {
            return;
        };
        while let Some(Ok(_)) = socket.recv().await {}
    }

    /// Whether a handler waits at the gate `work`.
    #[route::get("/working")]
    async fn working(&self) -> String {
        self.scene
            .0
            .steps
            .lock()
            .iter()
            .any(|step| step == "work")
            .to_string()
    }

    /// Opens the gate `place`: for tests in another process.
    #[route::post("/open/{place}")]
    async fn open(&self, Path(place): Path<String>) {
        if let Some(gate) = self.scene.0.gates.lock().get(&place) {
            gate.open();
        }
    }
}

/// A control plane: notes each release, and acknowledges it when the gate `release` lets it.
struct Plane(Scene);

impl Placements for Plane {
    fn release(
        &self,
        namespace: &str,
        id: &str,
        epoch: Option<u64>,
    ) -> BoxFuture<'static, Result<(), BoxError>> {
        let scene = self.0.clone();
        let epoch = epoch.map_or_else(|| "none".to_owned(), |epoch| epoch.to_string());
        scene.note(format!("release {namespace}/{id} {epoch}"));
        Box::pin(async move {
            scene.reach("release").await?;
            scene.note("released");
            Ok(())
        })
    }

    fn session_audience(&self) -> Option<Arc<str>> {
        // That of `App::attestation`.
        Some("session-1".into())
    }
}

/// A state store whose log notes what the host asks of it.
struct Store(Scene);

impl Durability for Store {
    fn open(&self, _namespace: &str, id: &str, _epoch: u64) -> Arc<dyn EffectLog> {
        self.0.note(format!("open {id}"));
        let log = Arc::new(Log(self.0.clone()));
        self.0.0.logs.lock().push(Arc::downgrade(&log));
        log
    }
}

struct Log(Scene);

impl EffectLog for Log {
    fn advance_epoch(&self, epoch: u64) {
        self.0.note(format!("epoch {epoch}"));
    }

    fn wait(&self) -> BoxFuture<'static, Result<(), BoxError>> {
        let scene = self.0.clone();
        scene.note("flush");
        Box::pin(async move { scene.reach("flush").await })
    }

    fn dispose(&self) {
        self.0.note("dispose");
    }
}

/// Options with an idle timeout of 10 s and a sweep each second.
pub(crate) fn quick() -> HostOptions {
    HostOptions::new()
        .idle_timeout(seconds(10))
        .sweep_interval(seconds(1))
}

pub(crate) const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The typed handle of `/actors`.
pub(crate) fn actors(app: &App) -> PinnedHost<Actor> {
    app.worker.hosted::<Actor>().expect("hosted")
}

/// A request with the attestation that a control plane would add, where one is needed.
pub(crate) fn get(app: &App, path: &str) -> Call {
    app.get(path).attested()
}

/// As [`get`].
pub(crate) fn post(app: &App, path: &str) -> Call {
    app.post(path).attested()
}

/// The head of an answer, with its body still to come.
pub(crate) async fn open(app: &App, path: &str) -> Response {
    let request = Request::get(path)
        .header("pinboard-attestation", app.attestation())
        .body(Body::empty())
        .expect("a request");
    app.worker
        .into_router()
        .oneshot(request)
        .await
        .expect("infallible")
}

/// Answers the pings of the other end until this is aborted, which leaves without a word.
pub(crate) fn stay(mut socket: Socket) -> JoinHandle<()> {
    spawn(async move { while let Some(Ok(_)) = socket.next().await {} })
}

/// How many whole seconds are left until the newest instance is cut off.
pub(crate) fn seconds_left(ctx: &Context) -> Option<u64> {
    let deadline = ctx.lease().eviction_deadline()?;
    let left = deadline
        .duration_since(ctx.domain().now())
        .unwrap_or_default();
    Some(left.as_secs_f64().round() as u64)
}
