//! How the scripted worker takes the answers of a registry, and how it reaches one.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1 as client;
use hyper::server::conn::http1 as server;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use pinboard::testing::{
    HttpRegistry, RegistryAnswer, RegistryFailure, RegistryTransport, ScriptedWorker, WorkerOptions,
};
use pinned_domain::Domain;
use pinned_testing::sim::Sim;
use pinned_wire::headers::PROXY_SECRET;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};

/// When, where to, and what.
type Told = (Duration, &'static str, Value);

/// The status, `Retry-After` and the body.
type Said = (u16, Option<&'static str>, Value);

/// A registry that says what the test has it say, and notes what it was told.
#[derive(Clone)]
struct Script {
    domain: Domain,
    told: Arc<Mutex<Vec<Told>>>,
    answers: Arc<Mutex<VecDeque<Said>>>,
    start: tokio::time::Instant,
}

impl Script {
    fn new(domain: &Domain) -> Self {
        Self {
            domain: domain.clone(),
            told: Arc::default(),
            answers: Arc::default(),
            start: domain.monotonic(),
        }
    }

    /// What comes next; what is not said is a good answer.
    fn say(&self, status: u16, retry_after: Option<&'static str>, body: Value) {
        let mut answers = self.answers.lock();
        answers.push_back((status, retry_after, body));
    }

    fn worker(&self) -> ScriptedWorker {
        let options = WorkerOptions::new("worker-1", "http://worker-1");
        ScriptedWorker::new(options, self.clone(), self.domain.clone())
    }

    /// What was told since the last look.
    fn told(&self) -> Vec<Told> {
        std::mem::take(&mut *self.told.lock())
    }
}

impl RegistryTransport for Script {
    fn call(
        &self,
        path: &'static str,
        body: Bytes,
    ) -> BoxFuture<'static, io::Result<RegistryAnswer>> {
        let body = serde_json::from_slice(&body).expect("JSON");
        let at = self.domain.monotonic() - self.start;
        self.told.lock().push((at, path, body));
        let good = json!({ "sessionId": "session-1", "expiresInMs": 15_000, "released": 0 });
        let next = self.answers.lock().pop_front();
        let (status, retry_after, body) = next.unwrap_or((200, None, good));
        let answer = RegistryAnswer {
            status: StatusCode::from_u16(status).expect("a status"),
            retry_after: retry_after.map(str::to_owned),
            body: body.to_string().into(),
        };
        Box::pin(async move { Ok(answer) })
    }
}

// W3.1, W4.1, W2.2
#[test]
fn bodies_are_as_the_wire_has_them() {
    Sim::run(1, |sim| async move {
        let script = Script::new(&sim.domain());
        let worker = script.worker();
        worker.register().await.expect("registered");
        worker.heartbeat().await.expect("renewed");
        worker.deregister().await.expect("ended");
        let told = script.told();
        let members = |n: usize| {
            let body = told[n].2.as_object().expect("an object");
            body.keys().map(String::as_str).collect::<Vec<_>>()
        };
        assert_eq!(
            members(0),
            [
                "advertiseUrl",
                "challenge",
                "challengeValue",
                "clientId",
                "draining",
                "headroom",
                "namespaces",
                "secret"
            ]
        );
        assert_eq!(
            members(1),
            [
                "challenge",
                "challengeValue",
                "draining",
                "headroom",
                "sessionId"
            ]
        );
        assert_eq!(told[2].2, json!({ "sessionId": "session-1" }));
        assert_ne!(told[0].2["challenge"], told[1].2["challenge"]);
        assert_eq!(told[0].2["clientId"].as_str().map(str::len), Some(32));
        assert_eq!(told[0].2["secret"].as_str().map(str::len), Some(64));
    });
}

// W3.10, W4.6
#[test]
fn each_refusal_is_told_apart() {
    Sim::run(1, |sim| async move {
        let script = Script::new(&sim.domain());
        let worker = script.worker();
        script.say(401, None, json!({ "error": "unauthorized" }));
        let said = worker.register().await;
        assert!(matches!(said, Err(RegistryFailure::Unauthorized)));
        script.say(503, Some("1.5"), json!({}));
        let said = worker.register().await;
        let after = Some(Duration::from_millis(1_500));
        assert!(
            matches!(said, Err(RegistryFailure::Deferred { retry_after }) if retry_after == after)
        );
        script.say(409, None, json!({ "error": "bound elsewhere" }));
        let said = worker.register().await.expect_err("refused");
        assert!(said.to_string().contains("bound elsewhere"), "{said}");
        script.say(200, None, json!({ "sessionId": "session-1" }));
        let said = worker.register().await;
        assert!(matches!(said, Err(RegistryFailure::Malformed(_))));
        assert_eq!(worker.session(), None);

        worker.register().await.expect("registered");
        script.say(409, None, json!({ "error": "unknown", "reregister": true }));
        let said = worker.heartbeat().await;
        assert!(matches!(said, Err(RegistryFailure::Lost)));
        let said = worker.heartbeat().await;
        assert!(matches!(said, Err(RegistryFailure::NoSession)));
        script.told();
        worker.register().await.expect("registered");
        // W3.4
        assert_eq!(script.told()[0].2["prevSessionId"], "session-1");
        script.say(
            409,
            None,
            json!({ "error": "displaced", "superseded": true }),
        );
        let said = worker.heartbeat().await;
        assert!(matches!(said, Err(RegistryFailure::Superseded)));
        assert!(worker.is_superseded());
        let said = worker.register().await;
        assert!(matches!(said, Err(RegistryFailure::NoSession)), "for good");
    });
}

// W6.2, W6.3
#[test]
fn it_comes_back_later_and_later_but_not_before_it_was_asked_to() {
    Sim::run(3, |sim| async move {
        let script = Script::new(&sim.domain());
        script.say(503, Some("4"), json!({}));
        for _ in 0..6 {
            script.say(500, None, json!({}));
        }
        script.worker().start();
        sim.advance(Duration::from_secs(300)).await;
        let told = script.told();
        let pauses: Vec<_> = told.windows(2).map(|two| two[1].0 - two[0].0).collect();
        let second = Duration::from_secs(1);
        assert!(
            pauses[0] >= 4 * second && pauses[0] <= 30 * second,
            "{pauses:?}"
        );
        for (n, pause) in pauses[1..7].iter().enumerate() {
            let full =
                (3 * second * 2_u32.pow(u32::try_from(n).expect("small") + 2)).min(30 * second);
            assert!(*pause <= full && *pause >= full * 3 / 10, "{n}: {pauses:?}");
        }
        // Then it has its session, and a heartbeat every three seconds (W4.2).
        assert!(
            pauses[7..].iter().all(|pause| *pause == 3 * second),
            "{pauses:?}"
        );
    });
}

// W4.7, W4.11
#[test]
fn a_lost_session_and_a_drain_are_answered_at_once() {
    Sim::run(1, |sim| async move {
        let script = Script::new(&sim.domain());
        let worker = script.worker();
        worker.start();
        worker.registered().await;
        let lost = json!({ "error": "unknown", "reregister": true });
        script.say(409, None, lost);
        sim.advance(Duration::from_millis(3_500)).await;
        worker.drain(None);
        sim.advance(Duration::from_millis(500)).await;
        let told = script.told();
        let seen: Vec<_> = told
            .iter()
            .map(|(at, path, body)| (at.as_millis(), *path, body["draining"] == true))
            .collect();
        assert_eq!(
            seen,
            [
                (0, "/registry/register", false),
                (3_000, "/registry/heartbeat", false),
                (3_000, "/registry/register", false),
                (3_500, "/registry/heartbeat", true),
            ]
        );
    });
}

// W2.3, P2.3
#[tokio::test]
async fn over_tcp_it_is_as_over_anything() {
    let domain = Domain::real();
    let (registry, listener) = (listener().await, listener().await);
    let address = registry.local_addr().expect("an address");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let transport = HttpRegistry::tcp(address, "token", domain.clone());
    let options = WorkerOptions::new("worker-1", &url);
    let worker = ScriptedWorker::new(options, transport, domain.clone());
    let asked = domain.spawn(serve_one(registry, domain.clone()));
    let serving = domain.spawn({
        let worker = worker.clone();
        async move { worker.serve(listener).await }
    });
    worker.register().await.expect("registered");
    assert_eq!(worker.session().as_deref(), Some("session-1"));
    asked.await.expect("one call");
    worker.crash();
    serving.await.expect("ended").expect("without an error");
}

async fn listener() -> TcpListener {
    let bound = TcpListener::bind("127.0.0.1:0").await;
    bound.expect("a free port on loopback")
}

/// Answers one registration, after the challenge.
async fn serve_one(listener: TcpListener, domain: Domain) {
    let (stream, _) = listener.accept().await.expect("a connection");
    let service = service_fn(move |request: Request<Incoming>| {
        let domain = domain.clone();
        async move { Ok::<_, Infallible>(registered(request, domain).await) }
    });
    let served = server::Builder::new()
        .header_read_timeout(None)
        .serve_connection(TokioIo::new(stream), service);
    // The worker closes as soon as it has its answer.
    let _ = served.await;
}

async fn registered(request: Request<Incoming>, domain: Domain) -> Response<Full<Bytes>> {
    assert_eq!(request.uri().path(), "/registry/register");
    assert_eq!(request.headers()["authorization"], "Bearer token");
    let body = request.into_body().collect().await.expect("a body");
    let body: Value = serde_json::from_slice(&body.to_bytes()).expect("JSON");
    let text = |name: &str| body[name].as_str().expect("text").to_owned();
    let authority = text("advertiseUrl").replace("http://", "");
    let stream = TcpStream::connect(&authority).await.expect("the worker");
    let (mut sender, connection) = client::handshake(TokioIo::new(stream)).await.expect("HTTP");
    let connection = domain.spawn(connection);
    let challenge = Request::builder()
        .uri(format!(
            "/_pinned/challenge?challenge={}",
            text("challenge")
        ))
        .header("host", authority)
        .header(PROXY_SECRET, text("secret"))
        .body(Full::<Bytes>::default())
        .expect("a request");
    let answer = sender.send_request(challenge).await.expect("an answer");
    let answer = answer
        .into_body()
        .collect()
        .await
        .expect("a body")
        .to_bytes();
    let answer: Value = serde_json::from_slice(&answer).expect("JSON");
    assert_eq!(answer["value"], body["challengeValue"]);
    connection.abort();
    let ack = json!({ "sessionId": "session-1", "expiresInMs": 15_000 });
    Response::new(Full::from(ack.to_string()))
}
