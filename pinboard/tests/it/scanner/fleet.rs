//! Waking through placement: what is sent, and what is made of the answers.

use std::collections::VecDeque;
use std::future::ready;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{HeaderMap, Method, StatusCode};
use parking_lot::Mutex;
use pinboard::events::Events;
use pinboard::placement::{NotPlaced, Placement};
use pinboard::scanner::{Attempt, EpochFloor, Fleet as _, Holder, PlacedFleet};
use pinboard::settings::Settings;
use pinboard::store::{
    EndMode, MemoryStore, NewSession, PlacementKey, RegistryStore as _, SessionId, SessionRecord,
    SessionUpdate,
};
use pinboard::upstream::{Fetch, FetchError, Fetched, Fetcher};
use pinboard::workers::Workers;
use pinned_domain::Domain;
use pinned_wire::attestation;
use pinned_wire::registry::{Secret, Takeover};

use super::fakes::{key, store};

/// What a worker answers to one wake; `None` is nothing at all.
type Answer = Option<(u16, Option<&'static str>)>;

#[derive(Default)]
struct Answers {
    answers: Mutex<VecDeque<Answer>>,
    asked: Mutex<Vec<Fetch>>,
}

impl Fetcher for Answers {
    fn fetch(&self, fetch: Fetch) -> BoxFuture<'static, Result<Fetched, FetchError>> {
        self.asked.lock().push(fetch);
        let Some((status, refusal)) = self.answers.lock().pop_front().expect("an answer") else {
            let refused = std::io::ErrorKind::ConnectionRefused.into();
            return ready(Err(FetchError::Connect(refused))).boxed();
        };
        let mut headers = HeaderMap::new();
        if let Some(reason) = refusal {
            headers.insert("pinned-refusal", reason.parse().expect("a header"));
        }
        ready(Ok(Fetched {
            status: StatusCode::from_u16(status).expect("a status"),
            headers,
            body: Bytes::new(),
        }))
        .boxed()
    }
}

struct Scene {
    store: MemoryStore,
    workers: Workers,
    fleet: PlacedFleet,
    answers: Arc<Answers>,
}

impl Scene {
    /// A fleet of these workers, with their headrooms.
    async fn new(workers: &[(&str, u64)], answers: &[Answer]) -> Self {
        let (store, domain, settings) = (store(), Domain::real(), Settings::default());
        store.prepare().await.expect("memory");
        for (name, headroom) in workers {
            store
                .register(session(name, *headroom))
                .await
                .expect("memory");
        }
        let shared = Arc::new(store.clone());
        let known = Workers::new(shared.clone(), domain.clone(), &settings);
        known.refresh_now().await.expect("memory");
        let placement = Placement::new(
            shared.clone(),
            known.clone(),
            Events::new(),
            domain,
            &settings,
        );
        let answers = Arc::new(Answers {
            answers: Mutex::new(answers.iter().copied().collect()),
            ..Answers::default()
        });
        let fleet = PlacedFleet {
            store: shared,
            workers: known.clone(),
            placement,
            floor: EpochFloor::default(),
            fetcher: answers.clone(),
        };
        Self {
            store,
            workers: known,
            fleet,
            answers,
        }
    }

    fn asked(&self) -> Vec<Fetch> {
        self.answers.asked.lock().clone()
    }
}

fn session(name: &str, headroom: u64) -> NewSession {
    NewSession {
        id: SessionId::new(name),
        record: SessionRecord {
            client_id: format!("client-{name}"),
            secret: Secret::new(format!("secret-{name}")),
            namespaces: vec!["/rooms".into()],
            advertise_url: format!("http://{name}.internal:8000/base/"),
            addresses: vec![([10, 0, 0, 1], 8000).into()],
            hostname: "*".into(),
            env: "*".into(),
            envs: Default::default(),
            takeover: Takeover::default(),
            binding_epoch: 0,
            registered_at: 0,
            update: SessionUpdate {
                headroom,
                draining: false,
                reachable: true,
                moved_to: None,
            },
        },
    }
}

// P8.2
#[tokio::test(start_paused = true)]
async fn a_wake_goes_to_the_holder_attested_and_with_its_epoch() {
    let scene = Scene::new(&[("w1", 100)], &[Some((202, None)), Some((200, None))]).await;
    let blue = key("blue");
    assert_eq!(scene.fleet.holder(&blue).await.expect("memory"), None);
    assert_eq!(scene.fleet.wake(&blue, 0).await, Attempt::Activating);
    let holder = scene.fleet.holder(&blue).await.expect("memory");
    let holder = holder.expect("a holder");
    assert_eq!(holder.session, SessionId::new("w1"));
    assert_eq!(
        scene.fleet.wake(&blue, 0).await,
        Attempt::Awake(holder.clone())
    );

    for wake in scene.asked() {
        assert_eq!(wake.method, Method::POST);
        assert_eq!(
            wake.url.as_str(),
            "http://w1.internal:8000/base/rooms/blue/_wake"
        );
        assert_eq!(wake.addresses, Some(vec![([10, 0, 0, 1], 8000).into()]));
        assert_eq!(wake.headers["pinboard-epoch"], holder.epoch.to_string());
        // P6.2
        assert!(!wake.headers.contains_key("pinboard-proxy-secret"));
        let token = wake.headers["pinboard-attestation"].to_str().expect("text");
        let claims = attestation::verify("secret-w1", &["w1"], Domain::real().now(), token);
        let claims = claims.expect("attested");
        assert!(claims.caller.is_none() && claims.acct.is_none());
    }
}

// P4.3
#[tokio::test(start_paused = true)]
async fn a_new_epoch_is_above_that_of_the_durable_store() {
    let scene = Scene::new(&[("w1", 100)], &[Some((200, None))]).await;
    let above = 1 << 60;
    let Attempt::Awake(holder) = scene.fleet.wake(&key("blue"), above).await else {
        panic!("it is awake");
    };
    assert!(holder.epoch > above);
}

// P8.2, P5.9
#[tokio::test(start_paused = true)]
async fn a_worker_that_does_not_take_it_is_passed_over() {
    for reason in [
        "lease-unhealthy",
        "draining",
        "capacity",
        "activation-queue",
    ] {
        let answers = [Some((503, Some(reason))), Some((200, None))];
        let scene = Scene::new(&[("w1", 1_000), ("w2", 1)], &answers).await;
        let woken = scene.fleet.wake(&key("blue"), 0).await;
        let Attempt::Awake(Holder { session, .. }) = woken else {
            panic!("{reason}: {woken:?}");
        };
        assert_eq!(session, SessionId::new("w2"), "{reason}");
        let hosts: Vec<_> = scene
            .asked()
            .iter()
            .map(|wake| wake.url.to_string())
            .collect();
        assert!(
            hosts[0].contains("w1") && hosts[1].contains("w2"),
            "{hosts:?}"
        );
    }
}

// P8.2
#[tokio::test(start_paused = true)]
async fn what_else_a_worker_says_is_for_later() {
    for (answer, expected) in [
        (Some((503, Some("busy"))), Attempt::Refused),
        (Some((503, Some("closing"))), Attempt::Refused),
        (Some((503, Some("some-new-reason"))), Attempt::Refused),
        (Some((503, None)), Attempt::Refused),
        (Some((404, None)), Attempt::Failed { status: 404 }),
        (Some((302, None)), Attempt::Failed { status: 302 }),
        (None, Attempt::Unreachable),
    ] {
        let scene = Scene::new(&[("w1", 100)], &[answer]).await;
        assert_eq!(scene.fleet.wake(&key("blue"), 0).await, expected);
        assert_eq!(scene.asked().len(), 1);
        // P5.11: the id stays with its holder.
        let holder = scene.fleet.holder(&key("blue")).await.expect("memory");
        assert!(holder.is_some(), "{answer:?}");
    }
}

// P8.2
#[tokio::test(start_paused = true)]
async fn a_dead_holder_is_none_and_its_id_is_placed_elsewhere() {
    let scene = Scene::new(
        &[("w1", 1_000), ("w2", 1)],
        &[Some((202, None)), Some((200, None))],
    )
    .await;
    let blue = key("blue");
    assert_eq!(scene.fleet.wake(&blue, 0).await, Attempt::Activating);
    let ended = scene
        .store
        .end_session(&SessionId::new("w1"), EndMode::Now)
        .await;
    assert!(ended.expect("memory"));
    scene.workers.refresh_now().await.expect("memory");
    assert_eq!(scene.fleet.holder(&blue).await.expect("memory"), None);
    let woken = scene.fleet.wake(&blue, 0).await;
    assert!(matches!(woken, Attempt::Awake(holder) if holder.session == SessionId::new("w2")));
}

#[tokio::test(start_paused = true)]
async fn without_workers_nothing_is_sent() {
    let scene = Scene::new(&[("w1", 100)], &[]).await;
    let nobody = PlacementKey::single("/nobody", "blue");
    let unknown = Attempt::NotPlaced(NotPlaced::UnknownNamespace);
    assert_eq!(scene.fleet.wake(&nobody, 0).await, unknown);
    // Another environment's rows are not this mode's.
    let elsewhere = PlacementKey::new("staging", "/rooms", "blue");
    assert_eq!(scene.fleet.wake(&elsewhere, 0).await, unknown);
}
