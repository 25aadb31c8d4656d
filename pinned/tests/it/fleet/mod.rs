//! The worker in a fleet (`spec/worker-wire.md`), against a scripted control plane on a paused clock.

mod across;
mod answers;
mod calls;
mod clocks;
mod echo;
mod heartbeats;
mod lease;
mod messages;
mod readiness;
mod refusals;
mod registering;
mod releases;
mod routes;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::StatusCode;
use parking_lot::Mutex;
use pinned::wire::attestation::{Claims, mint};
use pinned::{BoxError, ControlAnswer, ControlPlane, HostOptions, WorkerBuilder};
use serde_json::{Value, json};

use crate::app::{App, Call, Gate, pass};
use crate::scene::{Scene, quick};

const REGISTER: &str = "/registry/register";
const HEARTBEAT: &str = "/registry/heartbeat";
const RELEASE: &str = "/registry/release";
const DEREGISTER: &str = "/registry/deregister";

/// A control plane that answers by script, and otherwise says yes.
#[derive(Clone, Default)]
struct Script(Arc<ScriptState>);

#[derive(Default)]
struct ScriptState {
    calls: Mutex<Vec<(&'static str, Value)>>,
    answers: Mutex<HashMap<&'static str, VecDeque<Answer>>>,
    gates: Mutex<HashMap<&'static str, Gate>>,
    sessions: Mutex<u32>,
}

enum Answer {
    Of(u16, Option<&'static str>, Value),
    /// The connection breaks.
    Broken,
}

impl Script {
    /// What was sent to `path` so far.
    fn sent(&self, path: &str) -> Vec<Value> {
        let calls = self.0.calls.lock();
        let sent = calls.iter().filter(|(to, _)| *to == path);
        sent.map(|(_, body)| body.clone()).collect()
    }

    /// The paths of all calls so far, in order.
    fn order(&self) -> Vec<&'static str> {
        self.0.calls.lock().iter().map(|(path, _)| *path).collect()
    }

    fn count(&self, path: &str) -> usize {
        self.sent(path).len()
    }

    fn last(&self, path: &str) -> Value {
        self.sent(path).pop().expect("a call")
    }

    /// The next answer to `path` that has none yet.
    fn answer(&self, path: &'static str, status: u16, body: Value) {
        self.push(path, Answer::Of(status, None, body));
    }

    fn defer(&self, path: &'static str, retry_after: &'static str) {
        self.push(path, Answer::Of(503, Some(retry_after), json!({})));
    }

    fn break_off(&self, path: &'static str) {
        self.push(path, Answer::Broken);
    }

    fn push(&self, path: &'static str, answer: Answer) {
        self.0
            .answers
            .lock()
            .entry(path)
            .or_default()
            .push_back(answer);
    }

    /// Answers to `path` wait for the gate from now on.
    fn hold(&self, path: &'static str) -> Gate {
        let gate = Gate::closed();
        self.0.gates.lock().insert(path, gate.clone());
        gate
    }

    fn default_answer(&self, path: &str) -> Value {
        match path {
            REGISTER => {
                let mut sessions = self.0.sessions.lock();
                *sessions += 1;
                json!({ "sessionId": format!("session-{sessions}"), "expiresInMs": 15_000 })
            }
            HEARTBEAT => json!({ "expiresInMs": 15_000, "draining": false }),
            _ => json!({}),
        }
    }

    /// A worker of this control plane that hosts [`Actor`](crate::scene::Actor) at `/actors`.
    fn builder(&self, scene: &Scene, options: HostOptions) -> WorkerBuilder {
        scene
            .worker(options)
            .advertise_url("http://10.0.0.7:8000")
            .headroom(|| 512)
            .control_plane(Arc::new(self.clone()))
    }

    /// The same, running and registered.
    async fn start(&self, scene: &Scene) -> App {
        let app = App::start(self.builder(scene, quick())).await;
        pass(1).await;
        assert_eq!(self.count(REGISTER), 1);
        app
    }
}

impl ControlPlane for Script {
    fn post(
        &self,
        path: &'static str,
        body: Vec<u8>,
    ) -> BoxFuture<'static, Result<ControlAnswer, BoxError>> {
        let body = serde_json::from_slice(&body).expect("JSON");
        self.0.calls.lock().push((path, body));
        let gate = self.0.gates.lock().get(path).cloned();
        let script = self.clone();
        Box::pin(async move {
            if let Some(gate) = gate {
                gate.pass().await;
            }
            let answer = script
                .0
                .answers
                .lock()
                .get_mut(path)
                .and_then(VecDeque::pop_front);
            match answer {
                Some(Answer::Broken) => Err("the connection broke".into()),
                Some(Answer::Of(status, retry_after, body)) => Ok(ControlAnswer {
                    status: StatusCode::from_u16(status)?,
                    retry_after: retry_after.map(str::to_owned),
                    body: body.to_string().into(),
                }),
                None => Ok(ControlAnswer {
                    status: StatusCode::OK,
                    retry_after: None,
                    body: script.default_answer(path).to_string().into(),
                }),
            }
        })
    }
}

/// The request as pinboard would send it under `session`.
fn attested(app: &App, call: Call, session: &str) -> Call {
    let claims = Claims::new(session, app.worker.domain().now());
    call.header("pinboard-attestation", mint(app.worker.secret(), &claims))
}

/// Has `/actors/<id>` live, placed by `session` at `epoch`.
async fn touch(app: &App, id: &str, session: &str, epoch: u64) {
    let call = app.get(&format!("/actors/{id}")).epoch(epoch);
    attested(app, call, session).text().await;
}

fn sorted_keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect();
    keys.sort_unstable();
    keys
}
