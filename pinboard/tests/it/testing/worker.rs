//! The scripted worker, item by item.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use http_body_util::{BodyExt as _, Full};
use pinboard::store::{
    Drain, EndMode, Fence, MemoryStore, MessageBody, PlacementKey, RegistryStore as _, SessionId,
    StoreOptions,
};
use pinboard::testing::{
    ActivationLog, ChallengeAnswer, Counters, InstanceKey, Ledger, RefusalReason, RegistryFailure,
    ScriptedWorker, WorkerOptions,
};
use pinned_domain::Domain;
use pinned_testing::sim::Sim;
use pinned_wire::headers::PROXY_SECRET;
use serde_json::{Value, json};

use super::plane::{Answer, Plane, ask, request, send};

const TTL: Duration = Duration::from_secs(15);

struct World {
    domain: Domain,
    store: MemoryStore,
    plane: Plane,
    log: ActivationLog,
}

impl World {
    fn new(sim: &Sim) -> Self {
        let domain = sim.domain();
        let options = StoreOptions {
            lease_ttl: TTL,
            quarantine: Duration::ZERO,
            shards: 1,
        };
        let store = MemoryStore::new(options, domain.clone());
        let plane = Plane::new(Arc::new(store.node()), TTL, domain.clone());
        Self {
            domain,
            store,
            plane,
            log: ActivationLog::new(),
        }
    }

    fn worker(&self, name: &str) -> ScriptedWorker {
        self.worker_with(name, |options| options)
    }

    fn worker_with(
        &self,
        name: &str,
        set: impl FnOnce(WorkerOptions) -> WorkerOptions,
    ) -> ScriptedWorker {
        let url = format!("http://{name}/base");
        let options = WorkerOptions::new(name, &url).log(self.log.clone());
        self.plane.worker(set(options), &url, self.domain.clone())
    }

    /// Asks a worker by the session that it has.
    async fn ask(&self, worker: &ScriptedWorker, epoch: Option<u64>, path: &str) -> Answer {
        let session = worker.session().expect("registered");
        self.ask_as(worker, &session, epoch, path).await
    }

    async fn ask_as(
        &self,
        worker: &ScriptedWorker,
        session: &str,
        epoch: Option<u64>,
        path: &str,
    ) -> Answer {
        let path = format!("/base{path}");
        let request = request(worker, session, self.domain.now(), epoch, ("GET", &path));
        ask(&self.domain, worker, request).await.expect("an answer")
    }
}

fn key(id: &str) -> InstanceKey {
    InstanceKey::new("/counters", id)
}

fn refused(answer: &Answer, status: u16, reason: Option<&str>, detail: &str) {
    let body: Value = serde_json::from_slice(&answer.body).expect("JSON");
    assert_eq!(
        (answer.status.as_u16(), answer.refusal(), &body["detail"]),
        (status, reason, &json!(detail))
    );
}

// W3.1, W2.2, W10.2
#[test]
fn it_registers_proves_its_url_and_keeps_its_session() {
    Sim::run(1, |sim| async move {
        let world = World::new(&sim);
        let worker = world.worker("worker-1");
        worker.start();
        worker.registered().await;
        let session = worker.session();
        sim.advance(10 * TTL).await;
        assert_eq!(worker.session(), session);
        assert!(!worker.is_expired());
        let sessions = world.store.sessions_since(0).await.expect("sessions");
        assert_eq!(sessions.changed.len(), 1);

        worker.shutdown().await;
        let sessions = world.store.sessions_since(0).await.expect("sessions");
        assert!(sessions.changed.is_empty(), "W3.16");
    });
}

// P2.3
#[test]
fn what_it_answers_to_challenges_is_up_to_the_test() {
    Sim::run(1, |sim| async move {
        let world = World::new(&sim);
        let worker = world.worker("worker-1");
        worker.knobs().challenge(ChallengeAnswer::Wrong);
        let refused = worker.register().await;
        let forbidden = StatusCode::FORBIDDEN;
        assert!(
            matches!(&refused, Err(RegistryFailure::Rejected { status, .. }) if *status == forbidden),
            "{refused:?}"
        );
        worker.knobs().challenge(ChallengeAnswer::Silence);
        let later = worker.register().await;
        // The worker gives up when the registry does.
        assert!(
            matches!(
                later,
                Err(RegistryFailure::Deferred { .. } | RegistryFailure::Transport(_))
            ),
            "{later:?}"
        );
        worker.knobs().challenge(ChallengeAnswer::Right);
        worker.register().await.expect("registered");
    });
}

// W10.1, W10.2, W10.3
#[test]
fn its_own_routes_are_for_the_control_plane() {
    Sim::run(1, |sim| async move {
        let world = World::new(&sim);
        let worker = world.worker("worker-1");
        worker.register().await.expect("registered");
        world.ask(&worker, Some(1), "/counters/alice").await;
        let get = |path: &str, secret: &str| {
            http::Request::builder()
                .uri(format!("/base{path}"))
                .header(PROXY_SECRET, secret)
                .body(Full::default())
                .expect("a request")
        };
        let of = |request| async {
            ask(&world.domain, &worker, request)
                .await
                .expect("an answer")
        };
        let secret = worker.secret().expose();
        for path in ["/_pinned/stats", "/_pinned/challenge?challenge=x"] {
            let answer = of(get(path, "not the secret")).await;
            refused(&answer, 403, None, "invalid proxy secret");
        }
        let answer = of(get("/_pinned/challenge?challenge=x", secret)).await;
        refused(&answer, 404, None, "unknown challenge");
        let stats = of(get("/_pinned/stats", secret)).await;
        let stats: Value = serde_json::from_slice(&stats.body).expect("JSON");
        assert_eq!(stats["instances"][0]["id"], "alice");
        assert_eq!(stats["namespaces"]["/counters"]["activations"], 1);
        // An attestation will do.
        let stats = world.ask(&worker, None, "/_pinned/stats").await;
        assert_eq!(stats.status, 200);
    });
}

// W8.6, H1.5, H12.1
#[test]
fn it_serves_what_is_vouched_for_under_its_session_alone() {
    Sim::run(1, |sim| async move {
        let world = World::new(&sim);
        let worker = world.worker("worker-1");
        let answer = world.ask_as(&worker, "", Some(1), "/counters/alice").await;
        refused(&answer, 403, None, "invalid attestation");
        worker.register().await.expect("registered");
        let first = worker.session().expect("registered");
        let answer = world.ask(&worker, Some(1), "/counters/alice").await;
        assert_eq!((answer.status.as_u16(), answer.text()), (200, "0"));

        worker.register().await.expect("registered again");
        let answer = world
            .ask_as(&worker, &first, Some(1), "/counters/alice")
            .await;
        refused(&answer, 403, None, "invalid attestation");
        let answer = world.ask(&worker, Some(1), "/counters/%24").await;
        assert_eq!(answer.status, 400);
        let answer = world.ask(&worker, Some(1), "/others/alice").await;
        assert_eq!(answer.status, 404);
    });
}

// H12.3, H12.4, H3.11
#[test]
fn epochs_fence_what_was_handed_back() {
    Sim::run(1, |sim| async move {
        let world = World::new(&sim);
        let worker = world.worker("worker-1");
        worker.register().await.expect("registered");
        let get = |epoch| world.ask(&worker, Some(epoch), "/counters/alice");
        assert_eq!(get(5).await.status, 200);
        let stale = "stale placement epoch; retry";
        refused(&get(4).await, 503, Some("stale-epoch"), stale);
        assert_eq!(get(7).await.status, 200);
        refused(&get(5).await, 503, Some("stale-epoch"), stale);
        assert!(worker.abort(&key("alice")).await);
        let released = "released placement epoch; retry";
        refused(&get(7).await, 503, Some("released-epoch"), released);
        assert_eq!(get(8).await.status, 200);
        let epochs: Vec<_> = world.log.activations().iter().map(|a| a.epoch).collect();
        assert_eq!(epochs, [Some(5), Some(8)]);
        world.log.assert_no_overlap();
    });
}

// W7.3, W7.4, H3.2, H3.4, P5.9
#[test]
fn its_lease_decides_what_it_serves() {
    Sim::run(1, |sim| async move {
        let world = World::new(&sim);
        let worker = world.worker("worker-1");
        worker.register().await.expect("registered");
        let get = |path| world.ask(&worker, None, path);
        assert_eq!(get("/counters/alice").await.status, 200);
        sim.advance(Duration::from_secs(10)).await;
        assert_eq!(get("/counters/alice").await.status, 200, "it is resident");
        let unhealthy = "lease unhealthy; refusing new activations";
        refused(
            &get("/counters/bob").await,
            503,
            Some("lease-unhealthy"),
            unhealthy,
        );
        sim.advance(Duration::from_secs(5)).await;
        let expired = "lease expired; not serving";
        refused(
            &get("/counters/bob").await,
            503,
            Some("lease-expired"),
            expired,
        );
        // It is resident, and serves again with the next renewal: nobody may place it elsewhere on this word.
        refused(&get("/counters/alice").await, 503, None, expired);
        assert!(worker.is_expired());
        assert_eq!(worker.instances(), [key("alice")]);
        assert!(matches!(
            worker.heartbeat().await,
            Err(RegistryFailure::Lost)
        ));
        worker.register().await.expect("registered");
        assert_eq!(get("/counters/alice").await.status, 200);
        assert_eq!(world.log.activations().len(), 1, "it is the same instance");
    });
}

// W12.3, H10.5, H10.7
#[test]
fn drains_of_operators_reach_it_with_heartbeats() {
    Sim::run(1, |sim| async move {
        let world = World::new(&sim);
        let worker = world.worker("worker-1");
        worker.start();
        worker.registered().await;
        world.ask(&worker, Some(1), "/counters/alice").await;
        let order = |drain| world.store.order_drain(worker.client_id(), drain);
        order(Some(Drain::Cordon)).await.expect("ordered");
        sim.advance(Duration::from_secs(4)).await;
        assert!(worker.is_draining() && worker.instances().is_empty());
        let answer = world.ask(&worker, Some(2), "/counters/bob").await;
        refused(&answer, 503, Some("draining"), "host draining; retry");
        order(None).await.expect("lifted");
        sim.advance(Duration::from_secs(4)).await;
        // The control plane has taken the id elsewhere on that word (P5.9), and asks for it under a higher epoch.
        for (epoch, status) in [(2, 503), (3, 200)] {
            let answer = world.ask(&worker, Some(epoch), "/counters/bob").await;
            assert_eq!(answer.status, status, "under {epoch}");
        }
    });
}

// W5.2, W5.5, H10.8
#[test]
fn control_messages_are_applied_and_confirmed() {
    Sim::run(1, |sim| async move {
        let world = World::new(&sim);
        let worker = world.worker("worker-1");
        worker.start();
        worker.registered().await;
        world.ask(&worker, Some(1), "/counters/idle").await;
        let busy = world.domain.spawn({
            let (domain, worker) = (world.domain.clone(), worker.clone());
            let session = worker.session().expect("registered");
            let path = ("GET", "/base/counters/busy/sleep?ms=60000");
            let request = request(&worker, &session, domain.now(), Some(1), path);
            async move { ask(&domain, &worker, request).await }
        });
        sim.advance(Duration::from_secs(1)).await;
        let session = SessionId::new(worker.session().expect("registered"));
        let messages = ["idle", "busy", "elsewhere"].map(|id| MessageBody {
            key: PlacementKey::single("/counters", id),
            deadline: Some(Duration::from_secs(20)),
        });
        let queued = world
            .store
            .queue_messages(&session, messages.to_vec())
            .await;
        assert!(queued.expect("queued"));
        sim.advance(Duration::from_secs(7)).await;
        assert_eq!(
            worker.instances(),
            [key("busy")],
            "what is idle goes at once"
        );
        let answer = busy.await.expect("not aborted").expect("an answer");
        refused(&answer, 503, None, "instance aborted");
        let at = sim.elapsed();
        let deadline = Duration::from_secs(21);
        assert!(
            at >= deadline && at < deadline + Duration::from_secs(4),
            "{at:?}"
        );
        let ack = worker.heartbeat().await.expect("renewed");
        assert!(ack.messages.is_empty(), "all are confirmed: {ack:?}");
    });
}

// W3.7, W3.8, P2.5
#[test]
fn duplicates_go_before_the_lease_is_renewed() {
    Sim::run(1, |sim| async move {
        let world = World::new(&sim);
        let (one, two) = (world.worker("worker-1"), world.worker("worker-2"));
        one.register().await.expect("registered");
        let answer = world.plane.ask("alice", "GET", "/").await.expect("placed");
        assert_eq!(answer.status, 200);
        sim.advance(2 * TTL).await;
        two.register().await.expect("registered");
        let answer = world.plane.ask("alice", "GET", "/").await.expect("placed");
        assert_eq!(answer.status, 200);
        assert_eq!(two.instances(), [key("alice")]);
        assert_eq!(one.instances(), [key("alice")], "it was not told yet");
        assert!(matches!(one.heartbeat().await, Err(RegistryFailure::Lost)));
        let ack = one.register().await.expect("registered");
        assert_eq!(ack.duplicates.len(), 1);
        sim.advance(Duration::ZERO).await;
        assert!(one.instances().is_empty());
        // Its row is the other's.
        let row = world
            .store
            .row(&PlacementKey::single("/counters", "alice"))
            .await;
        let holder = row.expect("a row").expect("held").session;
        assert_eq!(Some(holder.as_str()), two.session().as_deref());
        world.log.assert_no_overlap();
    });
}

// W3.11, W3.13, H8
#[test]
fn what_is_idle_is_handed_back() {
    Sim::run(1, |sim| async move {
        let world = World::new(&sim);
        let idle = Duration::from_secs(60);
        let worker = world.worker_with("worker-1", |options| options.idle_timeout(idle));
        worker.start();
        worker.registered().await;
        world.plane.ask("alice", "GET", "/").await.expect("placed");
        sim.advance(idle - Duration::from_secs(1)).await;
        world.plane.ask("alice", "GET", "/").await.expect("placed");
        sim.advance(Duration::from_secs(2)).await;
        assert_eq!(worker.instances(), [key("alice")]);
        sim.advance(idle).await;
        assert!(worker.instances().is_empty());
        let key = PlacementKey::single("/counters", "alice");
        assert_eq!(world.store.row(&key).await.expect("a row"), None);

        // Without a session it waits for the next one.
        world.plane.ask("bob", "GET", "/").await.expect("placed");
        worker.knobs().isolate(true);
        sim.advance(idle + TTL).await;
        worker.knobs().isolate(false);
        sim.advance(Duration::from_secs(40)).await;
        assert!(worker.session().is_some());
        let key = PlacementKey::single("/counters", "bob");
        let row = world.store.row(&key).await.expect("a row");
        let held = row.map(|row| row.session.as_str().to_owned());
        assert_ne!(held.as_deref(), worker.session().as_deref());
    });
}

// H11.8
#[test]
fn streams_end_after_the_release() {
    Sim::run(1, |sim| async move {
        let world = World::new(&sim);
        let worker = world.worker("worker-1");
        worker.start();
        worker.registered().await;
        let session = worker.session().expect("registered");
        let path = ("GET", "/base/counters/alice/stream?n=1000&every=1000");
        let request = request(&worker, &session, world.domain.now(), Some(1), path);
        let response = send(&world.domain, &worker, request)
            .await
            .expect("an answer");
        let mut body = response.into_body();
        let first = body.frame().await.expect("a frame").expect("it goes on");
        assert_eq!(first.into_data().expect("data"), "data: 0\n\n");
        worker.drain(None);
        let rest = body.collect().await.expect("a good end").to_bytes();
        assert!(rest.len() < 100, "it is cut: {rest:?}");
        assert!(worker.instances().is_empty());
        assert!(
            sim.elapsed() < Duration::from_secs(5),
            "{:?}",
            sim.elapsed()
        );
    });
}

// P5.9
#[test]
fn it_refuses_what_the_test_wants_refused() {
    Sim::run(1, |sim| async move {
        let world = World::new(&sim);
        let worker = world.worker("worker-1");
        worker.register().await.expect("registered");
        let get = |path| world.ask(&worker, None, path);
        worker.knobs().refuse_next(RefusalReason::Capacity);
        assert_eq!(get("/counters/alice").await.refusal(), Some("capacity"));
        assert_eq!(get("/counters/alice").await.status, 200);
        let bob = key("bob");
        worker
            .knobs()
            .refuse(move |key| (*key == bob).then_some(RefusalReason::Busy));
        assert_eq!(get("/counters/bob").await.refusal(), Some("busy"));
        assert_eq!(get("/counters/alice").await.status, 200);
        worker.knobs().admit();
        assert_eq!(get("/counters/bob").await.status, 200);
    });
}

// P12.2
#[test]
fn frozen_past_its_lease_it_serves_nothing() {
    Sim::run(1, |sim| async move {
        let world = World::new(&sim);
        let (one, two) = (world.worker("worker-1"), world.worker("worker-2"));
        one.start();
        one.registered().await;
        world.plane.ask("alice", "GET", "/").await.expect("placed");
        one.knobs().freeze();
        let late = world.domain.spawn({
            let (domain, worker) = (world.domain.clone(), one.clone());
            let session = worker.session().expect("registered");
            let path = ("POST", "/base/counters/alice/increment");
            let request = request(&worker, &session, domain.now(), None, path);
            async move { ask(&domain, &worker, request).await }
        });
        sim.advance(2 * TTL).await;
        two.start();
        two.registered().await;
        world.plane.ask("alice", "GET", "/").await.expect("placed");
        assert_eq!(two.instances(), [key("alice")]);
        assert!(!late.is_finished());
        one.knobs().thaw();
        let late = late.await.expect("not aborted").expect("an answer");
        assert_ne!(late.status, 200, "{late:?}");
        sim.advance(TTL).await;
        assert!(one.instances().is_empty(), "it was told of the duplicate");
        world.log.assert_no_overlap();
    });
}

// P4.6
#[test]
fn a_worker_that_has_lost_its_clock_serves_on_and_the_ledger_stops_it() {
    Sim::run(1, |sim| async move {
        let world = World::new(&sim);
        let ledger = Ledger::new();
        let kept = || Counters::kept_in(ledger.clone());
        let one = world.worker_with("worker-1", |options| options.handler(kept()));
        let two = world.worker_with("worker-2", |options| options.handler(kept()));
        one.register().await.expect("registered");
        let first = world
            .plane
            .resolve(&PlacementKey::single("/counters", "alice"))
            .await
            .expect("placed");
        let increment = |worker: &ScriptedWorker, session: &str, epoch| {
            let path = ("POST", "/base/counters/alice/increment");
            let request = request(worker, session, world.domain.now(), Some(epoch), path);
            let (domain, worker) = (world.domain.clone(), worker.clone());
            async move { ask(&domain, &worker, request).await.expect("an answer") }
        };
        let answer = increment(&one, first.session.as_str(), first.epoch).await;
        assert_eq!((answer.status.as_u16(), answer.text()), (200, "1"));
        ledger.acknowledge(&key("alice"), 1);

        one.knobs().stop_clock();
        sim.advance(2 * TTL).await;
        assert!(!one.is_expired(), "as far as it knows");
        two.register().await.expect("registered");
        let second = world
            .plane
            .resolve(&PlacementKey::single("/counters", "alice"))
            .await
            .expect("placed");
        let session = second.worker.session();
        assert_eq!(session.as_deref(), Some(second.session.as_str()));
        let answer = increment(&two, second.session.as_str(), second.epoch).await;
        assert_eq!((answer.status.as_u16(), answer.text()), (200, "2"));
        ledger.acknowledge(&key("alice"), 2);
        let answer = increment(&one, first.session.as_str(), first.epoch).await;
        assert_eq!(answer.status, 409, "its write is fenced: {answer:?}");
        assert_eq!(ledger.count(&key("alice")), 2);
        ledger.assert_nothing_lost();
        // Outside of what it was granted it does not count as live.
        world.log.assert_no_overlap();

        one.knobs().start_clock();
        assert!(!one.is_expired());
        sim.advance(TTL).await;
        assert!(one.is_expired(), "it goes on from where it was");
    });
}

#[test]
fn a_crash_ends_everything_and_tells_nobody() {
    Sim::run(1, |sim| async move {
        let world = World::new(&sim);
        let worker = world.worker("worker-1");
        worker.start();
        worker.registered().await;
        world.plane.ask("alice", "GET", "/").await.expect("placed");
        let session = worker.session().expect("registered");
        let path = ("GET", "/base/counters/alice/sleep?ms=60000");
        let request = request(&worker, &session, world.domain.now(), None, path);
        let hung = send(&world.domain, &worker, request);
        let (hung, ()) = tokio::join!(hung, async {
            sim.advance(Duration::from_secs(1)).await;
            worker.crash();
        });
        assert!(hung.is_err(), "{hung:?}");
        assert!(world.log.running().is_empty());
        let key = PlacementKey::single("/counters", "alice");
        assert!(world.store.row(&key).await.expect("a row").is_some());
        sim.advance(TTL).await;
        let sessions = world.store.sessions_since(0).await.expect("sessions");
        assert!(sessions.changed.is_empty(), "its lease has passed");
    });
}

#[test]
fn connections_drop_and_requests_hang_when_the_test_says_so() {
    Sim::run(1, |sim| async move {
        let world = World::new(&sim);
        let worker = world.worker("worker-1");
        worker.register().await.expect("registered");
        let session = worker.session().expect("registered");
        let get = || {
            let path = ("GET", "/base/counters/alice");
            let request = request(&worker, &session, world.domain.now(), None, path);
            let (domain, worker) = (world.domain.clone(), worker.clone());
            async move { ask(&domain, &worker, request).await }
        };
        worker.knobs().hang(true);
        let hung = world.domain.spawn(get());
        sim.advance(Duration::from_secs(1)).await;
        assert!(!hung.is_finished() && worker.instances().is_empty());
        worker.knobs().drop_connections();
        assert!(hung.await.expect("not aborted").is_err());
        worker.knobs().hang(false);
        worker.knobs().refuse_connections(true);
        assert!(get().await.is_err());
        worker.knobs().refuse_connections(false);
        assert!(get().await.is_ok());
    });
}

// P3.5
#[test]
fn a_wind_down_ends_within_its_fence() {
    Sim::run(1, |sim| async move {
        let world = World::new(&sim);
        let (one, two) = (world.worker("worker-1"), world.worker("worker-2"));
        one.start();
        one.registered().await;
        world.plane.ask("alice", "GET", "/").await.expect("placed");
        two.start();
        two.registered().await;
        let session = SessionId::new(one.session().expect("registered"));
        let key = PlacementKey::single("/counters", "alice");
        let fence = Fence {
            starts_in: TTL,
            ends_in: 2 * TTL,
        };
        world.store.fence(&key, Some(fence)).await.expect("fenced");
        let message = MessageBody {
            key: key.clone(),
            deadline: Some(TTL),
        };
        let queued = world.store.queue_messages(&session, vec![message]).await;
        assert!(queued.expect("queued"));
        sim.advance(Duration::from_secs(4)).await;
        assert_eq!(
            world.store.row(&key).await.expect("a row"),
            None,
            "handed back"
        );
        world.plane.ask("alice", "GET", "/").await.expect("placed");
        world
            .store
            .end_session(&session, EndMode::Now)
            .await
            .expect("ended");
        world.log.assert_no_overlap();
    });
}
