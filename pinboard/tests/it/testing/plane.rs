//! As much of a control plane as a worker needs: the registry's routes over a store, and requests with attestations.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use pinboard::store::{
    Claim, Claimed, Drain, EndMode, Expected, HeartbeatOutcome, NewSession, PlacementKey,
    Reclaimed, RegistryStore, Release, SessionId, SessionRecord, SessionUpdate,
};
use pinboard::testing::{RegistryAnswer, RegistryTransport, ScriptedWorker, WorkerOptions};
use pinned_domain::Domain;
use pinned_wire::attestation::{Claims, mint};
use pinned_wire::headers::{ATTESTATION, EPOCH, PROXY_SECRET, REFUSAL};
use pinned_wire::registry::{
    CHALLENGE_PATH, ControlMessage, DEREGISTER_PATH, Deadline, Deregister, HEARTBEAT_PATH,
    Heartbeat, HeartbeatAck, InstanceRef, REGISTER_PATH, RELEASE_PATH, Refusal, Register,
    RegisterAck, Secret, Takeover, WindDown,
};
use serde::Serialize;

/// A control plane of one node.
#[derive(Clone)]
pub(super) struct Plane {
    shared: Arc<Shared>,
}

struct Shared {
    domain: Domain,
    store: Arc<dyn RegistryStore>,
    lease_ttl: Duration,
    /// By advertised URL.
    workers: Mutex<BTreeMap<String, ScriptedWorker>>,
}

/// Who holds an id.
pub(super) struct Holder {
    pub(super) worker: ScriptedWorker,
    pub(super) session: SessionId,
    pub(super) epoch: u64,
    url: String,
}

/// The path of an advertised URL.
fn prefix(url: &str) -> &str {
    let host = url.find("://").map_or(0, |at| at + 3);
    url[host..].find('/').map_or("", |at| &url[host + at..])
}

/// An answer, read whole.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Answer {
    pub(super) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("text")
    }

    pub(super) fn refusal(&self) -> Option<&str> {
        let refusal = self.headers.get(REFUSAL)?;
        refusal.to_str().ok()
    }
}

/// What a worker of one namespace said when it registered.
pub(super) fn record(client_id: &str, url: &str) -> SessionRecord {
    SessionRecord {
        client_id: client_id.to_owned(),
        secret: Secret::new("secret"),
        namespaces: vec!["/counters".into()],
        advertise_url: url.to_owned(),
        addresses: Vec::new(),
        hostname: PlacementKey::SINGLE.into(),
        env: PlacementKey::SINGLE.into(),
        envs: BTreeMap::new(),
        takeover: Takeover::default(),
        binding_epoch: 0,
        registered_at: 0,
        update: SessionUpdate {
            headroom: 1024,
            draining: false,
            reachable: true,
            moved_to: None,
        },
    }
}

/// Sends a request to a worker over a pipe of its own.
pub(super) async fn send(
    domain: &Domain,
    worker: &ScriptedWorker,
    request: Request<Full<Bytes>>,
) -> io::Result<Response<Incoming>> {
    let (near, far) = tokio::io::duplex(16 << 10);
    let worker = worker.clone();
    domain.spawn(async move { worker.serve_connection(far).await });
    let handshake = http1::handshake(TokioIo::new(near)).await;
    let (mut sender, connection) = handshake.map_err(io::Error::other)?;
    domain.spawn(connection);
    sender.send_request(request).await.map_err(io::Error::other)
}

/// Sends one, and reads the answer.
pub(super) async fn ask(
    domain: &Domain,
    worker: &ScriptedWorker,
    request: Request<Full<Bytes>>,
) -> io::Result<Answer> {
    let (head, body) = send(domain, worker, request).await?.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?;
    Ok(Answer {
        status: head.status,
        headers: head.headers,
        body: body.to_bytes(),
    })
}

/// A request for an instance, vouched for.
pub(super) fn request(
    worker: &ScriptedWorker,
    session: &str,
    now: SystemTime,
    epoch: Option<u64>,
    (method, path): (&str, &str),
) -> Request<Full<Bytes>> {
    let token = mint(worker.secret().expose(), &Claims::new(session, now));
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "test");
    let request = request.header(ATTESTATION, token);
    let request = match epoch {
        Some(epoch) => request.header(EPOCH, epoch.to_string()),
        None => request,
    };
    request.body(Full::default()).expect("a request")
}

impl Plane {
    pub(super) fn new(store: Arc<dyn RegistryStore>, lease_ttl: Duration, domain: Domain) -> Self {
        Self {
            shared: Arc::new(Shared {
                domain,
                store,
                lease_ttl,
                workers: Mutex::default(),
            }),
        }
    }

    /// A worker of this control plane, on `domain`; it does nothing yet.
    pub(super) fn worker(
        &self,
        options: WorkerOptions,
        url: &str,
        domain: Domain,
    ) -> ScriptedWorker {
        let worker = ScriptedWorker::new(options, self.clone(), domain);
        let mut workers = self.shared.workers.lock();
        workers.insert(url.to_owned(), worker.clone());
        worker
    }

    /// Says who is behind a URL.
    pub(super) fn know(&self, url: &str, worker: &ScriptedWorker) {
        let mut workers = self.shared.workers.lock();
        workers.insert(url.to_owned(), worker.clone());
    }

    fn behind(&self, url: &str) -> io::Result<ScriptedWorker> {
        let worker = self.shared.workers.lock().get(url).cloned();
        worker.ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Asks whether a URL is the worker's own (P2.3).
    async fn proves(&self, url: &str, secret: &Secret, pair: (&str, &Secret)) -> io::Result<bool> {
        let request = Request::builder()
            .uri(format!(
                "{}{CHALLENGE_PATH}?challenge={}",
                prefix(url),
                pair.0
            ))
            .header("host", "test")
            .header(PROXY_SECRET, secret.expose())
            .body(Full::default())
            .expect("a request");
        let worker = self.behind(url)?;
        let asked = ask(&self.shared.domain, &worker, request);
        let answer = self.shared.domain.timeout(Duration::from_secs(5), asked);
        let answer = answer.await.map_err(io::Error::other)??;
        let value = serde_json::from_slice::<serde_json::Value>(&answer.body).ok();
        let value = value.as_ref().and_then(|v| v["value"].as_str());
        Ok(value.is_some_and(|value| pair.1.is(value.as_bytes())))
    }

    async fn register(&self, register: Register) -> Result<RegisterAck, Outcome> {
        let (store, domain) = (&self.shared.store, &self.shared.domain);
        let pair = (register.challenge.as_str(), &register.challenge_value);
        match self
            .proves(&register.advertise_url, &register.secret, pair)
            .await
        {
            Ok(true) => {}
            Ok(false) => return Err(Outcome::Forbidden),
            Err(_) => return Err(Outcome::Later),
        }
        let id = SessionId::new(domain.token_hex(16));
        let namespaces = register.namespaces.iter().map(|ns| ns.as_str().into());
        let session = NewSession {
            id: id.clone(),
            record: SessionRecord {
                secret: register.secret,
                namespaces: namespaces.collect(),
                update: update(register.headroom, register.draining),
                ..record(&register.client_id, &register.advertise_url)
            },
        };
        let registered = store.register(session).await.map_err(|_| Outcome::Later)?;
        let previous = register.prev_session_id.map(SessionId::new);
        let previous: Vec<_> = registered
            .earlier
            .clone()
            .into_iter()
            .chain(previous)
            .collect();
        let instances = register.instances.unwrap_or_default();
        let keys = instances.iter().flat_map(|(ns, ids)| {
            ids.iter()
                .map(|id| PlacementKey::single(ns.as_str(), id.as_str()))
        });
        let keys: Vec<_> = keys.collect();
        let reclaimed = store.reclaim(&id, &previous, &keys).await;
        let reclaimed = reclaimed.map_err(|_| Outcome::Later)?;
        if let Some(earlier) = &registered.earlier {
            let ended = store.end_session(earlier, EndMode::Now).await;
            ended.map_err(|_| Outcome::Later)?;
        }
        let duplicates = keys.iter().zip(reclaimed);
        let duplicates = duplicates.filter(|(_, reclaimed)| *reclaimed == Reclaimed::Duplicate);
        let (draining, drain_deadline) = told(registered.drain);
        Ok(RegisterAck {
            session_id: id.as_str().to_owned(),
            expires_in_ms: self.lease_ms(),
            draining,
            drain_deadline,
            duplicates: duplicates
                .map(|(key, _)| InstanceRef {
                    ns: key.ns.to_string(),
                    id: key.id.to_string(),
                })
                .collect(),
        })
    }

    async fn heartbeat(&self, heartbeat: Heartbeat) -> Result<HeartbeatAck, Outcome> {
        let heartbeat = pinboard::store::Heartbeat {
            session: SessionId::new(heartbeat.session_id),
            update: update(heartbeat.headroom, heartbeat.draining),
            acks: heartbeat.acks.unwrap_or_default(),
        };
        let beat = self.shared.store.heartbeat(heartbeat).await;
        match beat.map_err(|_| Outcome::Later)? {
            HeartbeatOutcome::Renewed { drain, messages } => {
                let (draining, drain_deadline) = told(drain);
                let messages = messages.into_iter().map(|message| {
                    ControlMessage::WindDown(WindDown {
                        msg_id: Some(message.id),
                        ns: Some(message.body.key.ns.to_string()),
                        id: message.body.key.id.to_string(),
                        deadline: Deadline(message.body.deadline),
                    })
                });
                Ok(HeartbeatAck {
                    expires_in_ms: self.lease_ms(),
                    draining,
                    drain_deadline,
                    messages: messages.collect(),
                })
            }
            HeartbeatOutcome::Unknown => Err(Outcome::Unknown),
            HeartbeatOutcome::Superseded => Err(Outcome::Forbidden),
        }
    }

    async fn release(&self, release: pinned_wire::registry::Release) -> Result<(), Outcome> {
        let releases = release.into_items().into_iter().map(|item| Release {
            session: SessionId::new(item.session_id),
            key: PlacementKey::single(item.namespace, item.id),
            epoch: item.epoch.and_then(|epoch| epoch.parse().ok()),
        });
        let releases: Vec<_> = releases.collect();
        let released = self.shared.store.release(&releases).await;
        released.map(drop).map_err(|_| Outcome::Later)
    }

    fn lease_ms(&self) -> u64 {
        u64::try_from(self.shared.lease_ttl.as_millis()).expect("a short lease")
    }

    // --- Requests ---

    /// Who holds an id, placing it when nobody who lives does.
    pub(super) async fn resolve(&self, key: &PlacementKey) -> Option<Holder> {
        let store = &self.shared.store;
        let sessions = store.sessions_since(0).await.ok()?.changed;
        let mut candidates: Vec<_> = sessions
            .iter()
            .filter(|view| view.drain.is_none() && !view.record.update.draining && !view.ending)
            .collect();
        candidates.sort_by(|a, b| a.id.cmp(&b.id));
        let drawn = self.shared.domain.rng("plane").expect("a label").u64();
        let drawn = usize::try_from(drawn % 1_000).expect("small");
        let candidate = candidates.get(drawn % candidates.len().max(1))?.id.clone();
        let mut expected = Expected::Vacant;
        let (session, epoch) = loop {
            let claim = Claim {
                key: key.clone(),
                candidate: candidate.clone(),
                expected: expected.clone(),
                above: 0,
            };
            match store.claim(claim).await.ok()? {
                Claimed::Placed { epoch, .. } => break (candidate, epoch),
                Claimed::Held(row) if sessions.iter().any(|view| view.id == row.session) => {
                    break (row.session, row.epoch);
                }
                Claimed::Held(row) => {
                    expected = Expected::HeldByDead {
                        session: row.session,
                        epoch: row.epoch,
                    }
                }
                Claimed::Preferred(_) => expected = Expected::VacantForAnyone,
                Claimed::CandidateGone | Claimed::Quarantined { .. } => return None,
            }
        };
        let view = sessions.iter().find(|view| view.id == session)?;
        let url = view.record.advertise_url.clone();
        Some(Holder {
            worker: self.behind(&url).ok()?,
            session,
            epoch,
            url,
        })
    }

    /// Sends a request to whoever holds the id.
    pub(super) async fn ask(&self, id: &str, method: &str, path: &str) -> Option<Answer> {
        let key = PlacementKey::single("/counters", id);
        let holder = self.resolve(&key).await?;
        let now = self.shared.domain.now();
        let path = format!("{}/counters/{id}{path}", prefix(&holder.url));
        let (worker, session) = (&holder.worker, holder.session.as_str());
        let request = request(worker, session, now, Some(holder.epoch), (method, &path));
        ask(&self.shared.domain, worker, request).await.ok()
    }
}

/// What the registry answers when it does not accept.
#[derive(Debug)]
enum Outcome {
    Forbidden,
    Later,
    Unknown,
}

impl RegistryTransport for Plane {
    fn call(
        &self,
        path: &'static str,
        body: Bytes,
    ) -> BoxFuture<'static, io::Result<RegistryAnswer>> {
        let plane = self.clone();
        Box::pin(async move {
            Ok(match path {
                REGISTER_PATH => answer(plane.register(parsed(&body)).await),
                HEARTBEAT_PATH => answer(plane.heartbeat(parsed(&body)).await),
                RELEASE_PATH => answer(plane.release(parsed(&body)).await),
                DEREGISTER_PATH => {
                    let body: Deregister = parsed(&body);
                    let session = SessionId::new(body.session_id);
                    let ended = plane.shared.store.end_session(&session, EndMode::Now);
                    answer(ended.await.map(|_| ()).map_err(|_| Outcome::Later))
                }
                other => panic!("no such route: {other}"),
            })
        })
    }
}

fn parsed<T: serde::de::DeserializeOwned>(body: &Bytes) -> T {
    serde_json::from_slice(body).expect("a body as the wire has it")
}

fn answer(outcome: Result<impl Serialize, Outcome>) -> RegistryAnswer {
    let (status, body) = match outcome {
        Ok(body) => (StatusCode::OK, serde_json::to_vec(&body)),
        Err(outcome) => {
            let (status, refusal) = match outcome {
                Outcome::Forbidden => (StatusCode::FORBIDDEN, Refusal::new("forbidden")),
                Outcome::Later => (StatusCode::SERVICE_UNAVAILABLE, Refusal::new("later")),
                Outcome::Unknown => (StatusCode::CONFLICT, Refusal::reregister("unknown")),
            };
            (status, serde_json::to_vec(&refusal))
        }
    };
    let later = status == StatusCode::SERVICE_UNAVAILABLE;
    RegistryAnswer {
        status,
        retry_after: later.then(|| "1".to_owned()),
        body: body.expect("plain JSON").into(),
    }
}

fn told(drain: Option<Drain>) -> (bool, Option<f64>) {
    match drain {
        None => (false, None),
        Some(Drain::Cordon) => (true, None),
        Some(Drain::By { left }) => (true, Some(left.as_secs_f64())),
    }
}

fn update(headroom: u64, draining: bool) -> SessionUpdate {
    SessionUpdate {
        headroom,
        draining,
        reachable: true,
        moved_to: None,
    }
}
