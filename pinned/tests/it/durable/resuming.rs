//! Work that comes back without a request (D8.7, local mode).

use std::sync::Arc;

use http::StatusCode;
use parking_lot::Mutex;
use pinned::durability::{Claim, Doc, InstanceKey, MemoryStore, StateStore, TrayKey};
use pinned::{
    Context, Dispatch, HostOptions, Instance, PersistentQueue, SetupError, Tray, lifespan,
    pinned_api,
};

use crate::app::{App, Gate, pass};
use crate::observe::Logs;
use crate::wind_down::begin_drain;

#[derive(Tray)]
struct Tasks {
    queue: PersistentQueue<u64>,
}

/// What the instances do, and what they have done.
#[derive(Clone)]
struct Plan {
    gate: Gate,
    done: Arc<Mutex<Vec<String>>>,
    failed: Arc<Mutex<usize>>,
}

struct Worker;

#[pinned_api]
impl Worker {
    /// Those whose id begins with `held` wait at the gate, and those with `bad` fail.
    #[lifespan::setup]
    async fn setup(ctx: Context) -> Result<Self, SetupError> {
        let plan = ctx.state::<Plan>().expect("a plan");
        if ctx.id().starts_with("held") {
            plan.gate.pass().await;
        }
        if ctx.id().starts_with("bad") {
            *plan.failed.lock() += 1;
            return Err(SetupError::http(StatusCode::IM_A_TEAPOT, "bad"));
        }
        Ok(Self)
    }

    #[tray]
    async fn tasks(this: Instance<Self>, _task: u64, _dispatch: Dispatch<Tasks>) {
        let plan = this.context().state::<Plan>().expect("a plan");
        plan.done.lock().push(this.id().to_owned());
    }
}

struct World {
    app: App,
    plan: Plan,
    disk: MemoryStore,
}

/// A worker that finds work of these instances.
async fn world(ids: &[String], options: HostOptions) -> World {
    let disk = MemoryStore::new();
    mark(&disk, "/workers", ids).await;
    let plan = Plan {
        gate: Gate::closed(),
        done: Arc::default(),
        failed: Arc::default(),
    };
    let builder = pinned::PinnedWorker::builder()
        .host_with::<Worker>(options.namespace("/workers"))
        .state(plan.clone())
        .store(disk.clone());
    World {
        app: App::start(builder).await,
        plan,
        disk,
    }
}

async fn mark(disk: &MemoryStore, namespace: &str, ids: &[String]) {
    for id in ids {
        let claim = Claim::new(InstanceKey::new(namespace, &**id), 0);
        let doc = Doc::parse(r#"{"queue":[1]}"#).expect("an object");
        let set = disk.set_tray(claim, TrayKey::new("tasks", "~"), true, doc);
        set.await.expect("set");
    }
}

fn ids(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("{prefix}-{n:04}")).collect()
}

fn wide() -> HostOptions {
    HostOptions::new().max_concurrent_activations(1_000)
}

impl World {
    fn done(&self) -> Vec<String> {
        let mut done = self.plan.done.lock().clone();
        done.sort();
        done
    }

    async fn marked(&self) -> usize {
        let marked = self.disk.marked_instances(None, 10_000).await;
        marked.expect("the marked").len()
    }
}

#[tokio::test(start_paused = true)]
async fn all_of_it_comes_back_once() {
    let world = world(&ids("good", 600), wide()).await;
    pass(5_000).await;
    assert_eq!(world.done(), ids("good", 600));
    assert_eq!(world.marked().await, 0);
}

#[tokio::test(start_paused = true)]
async fn so_many_at_one_time_and_no_more() {
    let world = world(&ids("held", 100), wide()).await;
    world.plan.gate.reached(64).await;
    pass(1_000).await;
    let host = world.app.worker.hosted::<Worker>().expect("mounted");
    assert_eq!(host.len(), 64);
    world.plan.gate.open();
    pass(5_000).await;
    assert_eq!(world.done(), ids("held", 100));
}

#[tokio::test(start_paused = true)]
async fn those_that_always_fail_do_not_keep_the_others_waiting() {
    let all = [ids("bad", 300), ids("good", 5)].concat();
    let world = world(&all, wide()).await;
    pass(2_000).await;
    assert_eq!(world.done(), ids("good", 5));
    // They are tried again, once with each look.
    assert_eq!(*world.plan.failed.lock(), 300);
    pass(10_000).await;
    let failed = *world.plan.failed.lock();
    assert!((600..=1_500).contains(&failed), "{failed}");
    assert_eq!(world.marked().await, 300);
}

#[tokio::test(start_paused = true)]
async fn those_that_never_come_up_do_not_keep_the_others_waiting_for_ever() {
    let all = [ids("held", 70), ids("later", 5)].concat();
    let world = world(&all, wide()).await;
    pass(120_000).await;
    assert_eq!(world.done(), ids("later", 5));
    // Nor those whose work comes later still.
    mark(&world.disk, "/workers", &ids("latest", 1)).await;
    pass(120_000).await;
    assert_eq!(world.done().len(), 6);
}

#[tokio::test(start_paused = true)]
async fn work_for_nobody_here_is_told_of_once() {
    let logs = Logs::capture();
    let world = world(&ids("good", 1), wide()).await;
    mark(&world.disk, "/strangers", &ids("a", 3)).await;
    mark(&world.disk, "/others", &ids("a", 1)).await;
    pass(20_000).await;
    let told = logs.events("WARN", "the state store has work for a namespace");
    let mut told: Vec<&str> = told.iter().map(|event| event.field("namespace")).collect();
    told.sort_unstable();
    assert_eq!(told, ["/others", "/strangers"]);
    assert_eq!(world.done(), ids("good", 1));
}

#[tokio::test(start_paused = true)]
async fn a_drain_brings_nothing_back() {
    let world = world(&[], wide()).await;
    let _drain = begin_drain(&world.app.worker, None).await;
    mark(&world.disk, "/workers", &ids("good", 3)).await;
    pass(20_000).await;
    assert_eq!((world.done(), world.marked().await), (vec![], 3));
}

#[tokio::test(start_paused = true)]
async fn more_than_fit_at_one_time_come_back_one_after_the_other() {
    let options = wide()
        .max_instances(10)
        .idle_timeout(std::time::Duration::from_secs(2))
        .sweep_interval(std::time::Duration::from_secs(1));
    let world = world(&ids("good", 45), options).await;
    pass(1_000).await;
    assert_eq!(world.done().len(), 10);
    pass(60_000).await;
    assert_eq!(world.done(), ids("good", 45));
    assert_eq!(world.marked().await, 0);
}

#[tokio::test(start_paused = true)]
async fn with_few_activations_at_a_time_all_come_back_all_the_same() {
    let world = world(
        &ids("good", 100),
        HostOptions::new().max_concurrent_activations(1),
    )
    .await;
    pass(5_000).await;
    assert_eq!(world.done(), ids("good", 100));
}

#[tokio::test(start_paused = true)]
async fn with_a_control_plane_the_worker_leaves_it_to_that() {
    let disk = MemoryStore::new();
    mark(&disk, "/workers", &ids("good", 1)).await;
    let plan = Plan {
        gate: Gate::closed(),
        done: Arc::default(),
        failed: Arc::default(),
    };
    let builder = pinned::PinnedWorker::builder()
        .host::<Worker>("/workers")
        .state(plan.clone())
        .placements(Arc::new(crate::app::Board::default()))
        .store(disk);
    let _app = App::start(builder).await;
    pass(20_000).await;
    assert!(plan.done.lock().is_empty());
}
