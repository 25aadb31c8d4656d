//! What instances do.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Incoming;
use parking_lot::Mutex;
use pinned_domain::{Domain, Event};
use pinned_wire::attestation::Caller;
use serde_json::{Value, json};

use super::InstanceKey;
use super::body::{WorkerBody, full};
use super::core::Core;
use super::ledger::Ledger;
use super::refusal::{detail, json_response};
use super::work::OpenStream;

/// What the instances of a worker do with requests that were admitted.
pub trait WorkerHandler: Send + Sync + 'static {
    /// Answers one. Dropping the future is an abort.
    fn handle(&self, call: WorkerCall) -> BoxFuture<'static, Response<WorkerBody>>;
}

/// A request that was admitted.
pub struct WorkerCall {
    /// The instance.
    pub instance: Arc<WorkerInstance>,
    /// What comes after the id in the path, from its slash on; `/` when nothing does.
    pub path: String,
    /// Who is calling, as the attestation says.
    pub caller: Caller,
    /// The request as it came; upgrades are up to the handler.
    pub request: Request<Incoming>,
    /// The world.
    pub domain: Domain,
    pub(super) core: Arc<Core>,
    pub(super) serial: u64,
    pub(super) closed: Event,
}

impl WorkerCall {
    /// Keeps the instance busy beyond the answer: for what a handler goes on with after an upgrade.
    #[must_use]
    pub fn stream(&self) -> OpenStream {
        OpenStream::new(
            &self.core,
            &self.instance.key,
            self.serial,
            self.closed.clone(),
        )
    }
}

impl fmt::Debug for WorkerCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerCall")
            .field("instance", &self.instance)
            .field("path", &self.path)
            .field("caller", &self.caller)
            .field("request", &self.request)
            .finish_non_exhaustive()
    }
}

/// One activation, as its handlers see it.
#[derive(Debug)]
pub struct WorkerInstance {
    /// Which.
    pub key: InstanceKey,
    /// The name of its worker.
    pub worker: Arc<str>,
    epoch: AtomicU64,
    count: Mutex<u64>,
}

impl WorkerInstance {
    pub(super) fn new(key: InstanceKey, worker: Arc<str>, epoch: Option<u64>) -> Self {
        Self {
            key,
            worker,
            epoch: AtomicU64::new(epoch.unwrap_or_default()),
            count: Mutex::new(0),
        }
    }

    /// The highest placement epoch that a request for it has brought; 0 when none did.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::SeqCst)
    }

    pub(super) fn adopt(&self, epoch: u64) {
        self.epoch.fetch_max(epoch, Ordering::SeqCst);
    }
}

/// Counters, and whatever else a test of a proxy asks for.
///
/// | request | answer |
/// |---|---|
/// | `POST /increment` | the count, one higher |
/// | `GET /` | the count |
/// | `GET /stream?n=3&every=1000` | `n` server-sent events, one every so many milliseconds |
/// | `/echo` | the body and the trailers of the request, as they come |
/// | `GET /headers` | the headers of the request, as a list of pairs |
/// | `GET /target` | the request target, as it came |
/// | `GET /caller` | who is calling |
/// | `GET /sleep?ms=1000` | `"slept"`, so many milliseconds later |
/// | `GET /status?code=404` | that status |
///
/// Counts are gone with their activation, unless there is a [`Ledger`]: then each increment is a write under the placement
/// epoch, and one that is fenced answers 409.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    ledger: Option<Ledger>,
}

impl Counters {
    /// Counters without a ledger.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Counters that are kept in `ledger`.
    #[must_use]
    pub fn kept_in(ledger: Ledger) -> Self {
        Self {
            ledger: Some(ledger),
        }
    }

    fn count(&self, instance: &WorkerInstance, by: u64) -> Response<WorkerBody> {
        let counted = match &self.ledger {
            None => {
                let mut count = instance.count.lock();
                *count += by;
                Ok(*count)
            }
            Some(ledger) if by == 0 => ledger.acquire(&instance.key, instance.epoch()),
            Some(ledger) => ledger.append(&instance.key, instance.epoch(), &instance.worker),
        };
        match counted {
            Ok(count) => json_response(StatusCode::OK, &json!(count)),
            Err(fenced) => detail(StatusCode::CONFLICT, &fenced.to_string()),
        }
    }
}

impl WorkerHandler for Counters {
    fn handle(&self, call: WorkerCall) -> BoxFuture<'static, Response<WorkerBody>> {
        let counters = self.clone();
        Box::pin(async move {
            let method = call.request.method().clone();
            let query = Query::of(&call.request);
            match (method, call.path.as_str()) {
                (Method::POST, "/increment") => counters.count(&call.instance, 1),
                (Method::GET | Method::HEAD, "/") => counters.count(&call.instance, 0),
                (Method::GET, "/stream") => {
                    let every = Duration::from_millis(query.number("every", 0));
                    events(call.domain, query.number("n", 3), every)
                }
                (_, "/echo") => echo(call.request),
                (Method::GET, "/headers") => {
                    let headers = pairs(call.request.headers());
                    json_response(StatusCode::OK, &headers)
                }
                (Method::GET, "/target") => {
                    let target = call.request.uri().to_string();
                    json_response(StatusCode::OK, &json!(target))
                }
                (Method::GET, "/caller") => json_response(StatusCode::OK, &caller(&call.caller)),
                (Method::GET, "/sleep") => {
                    let slept = Duration::from_millis(query.number("ms", 0));
                    call.domain.sleep(slept).await;
                    json_response(StatusCode::OK, &json!("slept"))
                }
                (Method::GET, "/status") => {
                    let code = u16::try_from(query.number("code", 200)).unwrap_or_default();
                    let status = StatusCode::from_u16(code).unwrap_or(StatusCode::BAD_REQUEST);
                    json_response(status, &json!(code))
                }
                _ => detail(StatusCode::NOT_FOUND, "Not Found"),
            }
        })
    }
}

fn events(domain: Domain, n: u64, every: Duration) -> Response<WorkerBody> {
    let events = stream::unfold(0, move |sent| {
        let domain = domain.clone();
        async move {
            if sent == n {
                return None;
            }
            domain.sleep(every).await;
            let event = Bytes::from(format!("data: {sent}\n\n"));
            Some((Ok(Frame::data(event)), sent + 1))
        }
    });
    let mut response = Response::new(StreamBody::new(Box::pin(events)).boxed_unsync());
    let sse = HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, sse);
    response
}

fn echo(request: Request<Incoming>) -> Response<WorkerBody> {
    let (head, body) = request.into_parts();
    let mut response = Response::new(body.map_err(std::io::Error::other).boxed_unsync());
    for name in [header::CONTENT_TYPE, header::CONTENT_ENCODING] {
        if let Some(value) = head.headers.get(&name) {
            response.headers_mut().insert(name, value.clone());
        }
    }
    response
}

fn pairs(headers: &HeaderMap) -> Value {
    let pair = |(name, value): (&http::HeaderName, &HeaderValue)| {
        json!([name.as_str(), String::from_utf8_lossy(value.as_bytes())])
    };
    headers.iter().map(pair).collect()
}

fn caller(caller: &Caller) -> Value {
    match caller {
        Caller::Instance { ns, id, depth } => {
            json!({ "instance": format!("{ns}/{id}"), "depth": depth })
        }
        Caller::Account(account) => json!({
            "account": account.sub,
            "scopes": account.scopes,
            "claims": account.claims,
        }),
        Caller::Anonymous => json!("anonymous"),
    }
}

/// The query of a request; only numbers are asked of it.
struct Query(String);

impl Query {
    fn of<B>(request: &Request<B>) -> Self {
        Self(request.uri().query().unwrap_or_default().to_owned())
    }

    fn number(&self, name: &str, default: u64) -> u64 {
        let mut pairs = self.0.split('&').filter_map(|pair| pair.split_once('='));
        let value = pairs.find(|(key, _)| *key == name);
        value
            .and_then(|(_, value)| value.parse().ok())
            .unwrap_or(default)
    }
}

/// An answer with a text body, for handlers of tests.
pub fn text(status: StatusCode, body: impl Into<String>) -> Response<WorkerBody> {
    let mut response = Response::new(full(body.into()));
    *response.status_mut() = status;
    response
}
