use std::{
    net::{Ipv4Addr, SocketAddr},
    process::Command,
    time::{Duration, Instant},
};

use axum::http::{HeaderName, Request};
use http_body_util::BodyExt;
use pinned::{Context, Json, PinnedWorker, pinned_api, route};
use tokio::{net::TcpListener, sync::OnceCell};
use tower::ServiceExt;

use super::{
    node::{Node, TOKEN},
    process::{Process, free_port},
};
use crate::{
    Result,
    pinned_server::{self, Counter},
};

/// What starts this program as a worker.
const ARGUMENT: &str = "--worker";

/// What a worker serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Serves {
    /// `/counters`.
    Counters,
    /// `/callers`, whose instances call counters and say how long that takes.
    Callers,
    /// Both.
    Both,
}

impl Serves {
    fn name(self) -> &'static str {
        match self {
            Self::Counters => "counters",
            Self::Callers => "callers",
            Self::Both => "both",
        }
    }

    fn named(name: &str) -> Result<Self> {
        [Self::Counters, Self::Callers, Self::Both]
            .into_iter()
            .find(|serves| serves.name() == name)
            .ok_or_else(|| format!("a worker serves no {name:?}").into())
    }
}

/// A worker of pinned in a process of its own.
pub struct Worker {
    process: Process,
    addr: SocketAddr,
}

impl Worker {
    /// Starts one, behind `node` or alone, and waits until it answers.
    ///
    /// # Errors
    /// When it does not come up within 30 s.
    pub fn start(serves: Serves, node: Option<&Node>) -> Result<Self> {
        let port = free_port()?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args([ARGUMENT, serves.name(), &port.to_string()]);
        command.env("RUST_LOG", "warn");
        if let Some(node) = node {
            command
                .env("PINBOARD_URL", node.url(""))
                .env("PINBOARD_TOKEN", TOKEN)
                .env("ADVERTISE_URL", format!("http://127.0.0.1:{port}"));
        }
        let worker = Self {
            process: Process::start(&mut command)?,
            addr: (Ipv4Addr::LOCALHOST, port).into(),
        };
        let deadline = Instant::now() + Duration::from_secs(30);
        while ureq::get(format!("http://{}/readyz", worker.addr))
            .call()
            .is_err()
        {
            if Instant::now() > deadline {
                return Err("a worker does not become ready".into());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(worker)
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

/// Serves as a worker until it is killed, where this program was started as one.
///
/// # Errors
/// When it cannot listen.
pub fn serve_if_started_as_worker() -> Result<bool> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [argument, serves, port] = arguments.as_slice() else {
        return Ok(false);
    };
    if argument != ARGUMENT {
        return Ok(false);
    }
    let (serves, port) = (Serves::named(serves)?, port.parse()?);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(serve(serves, port))?;
    Ok(true)
}

async fn serve(serves: Serves, port: u16) -> Result<()> {
    let mut worker = PinnedWorker::builder().environment();
    if serves != Serves::Callers {
        worker = worker.host_with::<Counter>(pinned_server::options());
    }
    if serves != Serves::Counters {
        worker = worker.host::<Caller>("/callers");
    }
    let worker = worker.build()?;
    let router = worker.into_router();
    ROUTER.set(router)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    Ok(worker.serve_on(listener).await?)
}

/// All that this worker serves, for dispatches within the process.
static ROUTER: OnceCell<axum::Router> = OnceCell::const_new();

/// Calls counters, and says how long it takes.
#[derive(Default)]
struct Caller {
    client: Option<reqwest::Client>,
}

#[pinned_api]
impl Caller {
    /// Nanoseconds of each of so many calls through `Context::cluster`, one after the other.
    #[route::post("/cluster/{target}/{calls}")]
    async fn cluster(
        &self,
        ctx: Context,
        axum::extract::Path((target, calls)): axum::extract::Path<(String, u32)>,
    ) -> Json<Vec<u64>> {
        let path = format!("/counters/{target}/increment");
        let mut took = Vec::new();
        for _ in 0..calls {
            let began = Instant::now();
            let answer = ctx.cluster().post(&path).send().await;
            let count = answer.expect("an answer").json::<u64>().await;
            count.expect("the count");
            took.push(nanos(began));
        }
        Json(took)
    }

    /// The same for dispatches to the router of this process.
    #[route::post("/direct/{target}/{calls}")]
    async fn direct(
        &self,
        axum::extract::Path((target, calls)): axum::extract::Path<(String, u32)>,
    ) -> Json<Vec<u64>> {
        let path = format!("/counters/{target}/increment");
        let router = ROUTER.get().expect("it is set before anything is served");
        let mut took = Vec::new();
        for _ in 0..calls {
            let began = Instant::now();
            let request = Request::post(&path)
                .header(HeaderName::from_static("content-length"), "0")
                .body(axum::body::Body::empty())
                .expect("a request");
            let answer = router.clone().oneshot(request).await.expect("an answer");
            let body = answer.into_body().collect().await.expect("its body");
            serde_json::from_slice::<u64>(&body.to_bytes()).expect("the count");
            took.push(nanos(began));
        }
        Json(took)
    }

    /// The same for requests to a server at a port of 127.0.0.1.
    #[route::post("/port/{port}/{target}/{calls}")]
    async fn port(
        &mut self,
        axum::extract::Path((port, target, calls)): axum::extract::Path<(u16, String, u32)>,
    ) -> Json<Vec<u64>> {
        let client = self.client.get_or_insert_default();
        let url = format!("http://127.0.0.1:{port}/counters/{target}/increment");
        let mut took = Vec::new();
        for _ in 0..calls {
            let began = Instant::now();
            let answer = client.post(&url).send().await.expect("an answer");
            let body = answer.bytes().await.expect("its body");
            serde_json::from_slice::<u64>(&body).expect("the count");
            took.push(nanos(began));
        }
        Json(took)
    }
}

fn nanos(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
