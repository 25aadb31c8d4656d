use std::{
    convert::Infallible,
    net::{Ipv4Addr, SocketAddr},
    process::Command,
    sync::{Arc, Mutex},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use futures_util::{StreamExt, stream};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    Request, Response, StatusCode,
    body::{Bytes, Frame, Incoming},
    header::{self, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{
    node::TOKEN,
    process::{Process, free_port},
};
use crate::Result;

/// What starts this program as a backend.
const ARGUMENT: &str = "--backend";

/// A worker that answers every request with `1` at once and looks at nothing: what is measured is in front of it. It
/// registers `/counters` with a pinboard and sends its heartbeats.
pub struct Backend {
    process: Process,
    addr: SocketAddr,
}

impl Backend {
    /// Starts one, and waits until requests for `/counters/<id>` reach it through `pinboard`.
    ///
    /// # Errors
    /// When it does not come up within 30 s.
    pub fn start(pinboard: SocketAddr) -> Result<Self> {
        let port = free_port()?;
        let program = std::env::current_exe()?;
        let mut command = Command::new(program);
        command.args([ARGUMENT, &port.to_string(), &pinboard.to_string()]);
        let backend = Self {
            process: Process::start(&mut command)?,
            addr: (Ipv4Addr::LOCALHOST, port).into(),
        };
        let deadline = Instant::now() + Duration::from_secs(30);
        while ureq::get(format!("http://{pinboard}/counters/probe"))
            .call()
            .is_err()
        {
            if Instant::now() > deadline {
                return Err("the backend cannot be reached through pinboard".into());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(backend)
    }

    /// Its own address.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }
}

/// Serves as a backend until it is killed, where this program was started as one.
///
/// # Errors
/// When it cannot listen.
pub fn serve_if_started_as_backend() -> Result<bool> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [argument, port, pinboard] = arguments.as_slice() else {
        return Ok(false);
    };
    if argument != ARGUMENT {
        return Ok(false);
    }
    let (port, pinboard) = (port.parse()?, pinboard.clone());
    let challenge = Arc::new(Mutex::new(Challenge::default()));
    let beats = Arc::clone(&challenge);
    std::thread::spawn(move || keep_registered(&pinboard, port, &beats));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(serve(port, challenge))?;
    Ok(true)
}

#[derive(Default)]
struct Challenge {
    value: String,
}

async fn serve(port: u16, challenge: Arc<Mutex<Challenge>>) -> Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let challenge = Arc::clone(&challenge);
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let answer = answer(request, &challenge);
                async move { Ok::<_, Infallible>(answer) }
            });
            // A client that leaves is no concern of a backend.
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .with_upgrades()
                .await;
        });
    }
}

type Body = UnsyncBoxBody<Bytes, Infallible>;

fn answer(request: Request<Incoming>, challenge: &Mutex<Challenge>) -> Response<Body> {
    let path = request.uri().path();
    if path == "/_pinned/challenge" {
        let known = challenge.lock().expect("no panics");
        return json_answer(json!({ "value": known.value }).to_string().into());
    }
    if path.ends_with("/events") {
        return events();
    }
    if request.headers().contains_key(header::UPGRADE) {
        return upgraded(request);
    }
    json_answer(Bytes::from_static(b"1"))
}

fn json_answer(body: Bytes) -> Response<Body> {
    let mut response = Response::new(Full::new(body).boxed_unsync());
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

/// Ten events a second, each with the moment at which it was sent, in microseconds since the Unix epoch.
fn events() -> Response<Body> {
    let mut ticks = tokio::time::interval(Duration::from_millis(100));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let events = stream::unfold(ticks, |mut ticks| async {
        ticks.tick().await;
        let event = format!("data: {}\n\n", unix_micros());
        Some((Ok(Frame::data(Bytes::from(event))), ticks))
    });
    let mut response = Response::new(StreamBody::new(events.fuse()).boxed_unsync());
    let stream = HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, stream);
    response
}

/// Becomes whatever was asked for, and says nothing until the other side leaves.
fn upgraded(request: Request<Incoming>) -> Response<Body> {
    let mut response = Response::new(Full::default().boxed_unsync());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    tokio::spawn(async move {
        if let Ok(upgraded) = hyper::upgrade::on(request).await {
            let mut silent = TokioIo::new(upgraded);
            let _ = tokio::io::copy(&mut silent, &mut tokio::io::sink()).await;
        }
    });
    response
}

/// Now, as all processes of this machine see it.
pub fn unix_micros() -> u128 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_micros()
}

/// Registers, and sends heartbeats, for ever.
fn keep_registered(pinboard: &str, port: u16, challenge: &Mutex<Challenge>) {
    let mut session: Option<String> = None;
    let mut round = 0_u64;
    loop {
        round += 1;
        let value = format!("value-{round:020}");
        challenge
            .lock()
            .expect("no panics")
            .value
            .clone_from(&value);
        let (path, body) = match &session {
            None => (
                "/registry/register",
                json!({
                    "clientId": format!("{:032x}", port), "secret": "00".repeat(32), "namespaces": ["/counters"],
                    "advertiseUrl": format!("http://127.0.0.1:{port}"), "headroom": 1024, "draining": false,
                    "challenge": format!("challenge-{round:020}"), "challengeValue": value,
                }),
            ),
            Some(session) => (
                "/registry/heartbeat",
                json!({ "sessionId": session, "headroom": 1024, "draining": false }),
            ),
        };
        let answer = ureq::post(format!("http://{pinboard}{path}"))
            .header("authorization", format!("Bearer {TOKEN}"))
            .send_json(&body)
            .and_then(|mut answer| answer.body_mut().read_json::<Value>());
        match answer {
            Ok(answer) => {
                if let Some(id) = answer["sessionId"].as_str() {
                    session = Some(id.to_owned());
                }
                std::thread::sleep(Duration::from_secs(1));
            }
            Err(error) => {
                eprintln!("backend: {path}: {error}");
                session = None;
                std::thread::sleep(Duration::from_millis(100));
            }
        }
    }
}
