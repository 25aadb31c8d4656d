//! What a person sees.

use std::env;
use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{Method, Request, StatusCode};
use http_body_util::BodyExt;
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use pinned::domain::Domain;
use serde::Deserialize;
use tokio::signal::unix::{SignalKind, signal};

use crate::family::{HOST, Member};

/// The counters that are shown; with two workers, both get some.
const NAMES: [&str; 6] = ["alice", "bob", "carol", "dave", "erin", "frank"];
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Deserialize)]
struct Count {
    count: u64,
    worker: u32,
}

pub(crate) async fn guide() -> Result<(), Box<dyn Error>> {
    let mut interrupted = signal(SignalKind::interrupt())?;
    let mut terminated = signal(SignalKind::terminate())?;
    let first: u16 = match env::var("PORT") {
        Ok(port) => port.parse()?,
        Err(_) => 8080,
    };
    let folder = Folder::make()?;
    let store = folder.0.join("counters.db");
    let fleet = Fleet::new(format!("http://{HOST}:{first}"));

    let mut pinboard = Member::pinboard(first)?;
    let mut workers = Vec::new();
    for port in [first + 1, first + 2] {
        workers.push(Member::worker(port, &fleet.url, &store)?);
    }
    println!("pinboard on {}", fleet.url);
    for worker in &workers {
        println!(
            "worker   on http://{HOST}:{} (process {})",
            worker.port,
            worker.pid().unwrap_or_default()
        );
    }
    println!("waiting for the workers to register ..");
    let everyone = workers.iter_mut().chain([&mut pinboard]);
    fleet.wait_until_served(everyone.collect()).await?;

    println!("\nTry:\n");
    println!("  curl -X POST {}/counters/alice/increment", fleet.url);
    println!("  curl {}/counters/alice", fleet.url);
    println!(
        "  curl -H 'authorization: Bearer {}' {}/registry/workers",
        crate::family::TOKEN,
        fleet.url
    );
    println!("\nEach id lives in one of the two workers:\n");
    for name in NAMES {
        let count = fleet.increment(name).await?;
        println!("  {name:<6} {} in process {}", count.count, count.worker);
    }
    println!("\nCtrl-C drains one worker and ends the fleet.");
    tokio::select! {
        _ = interrupted.recv() => {}
        _ = terminated.recv() => {}
    }

    let leaving = workers.remove(0);
    println!(
        "\nSIGTERM to the worker on port {}: it hands its counters over and exits.",
        leaving.port
    );
    leaving.terminate().await?;
    println!("It has exited. The same counters, at the worker that is left:\n");
    for name in NAMES {
        let count = fleet.read(name).await?;
        println!("  {name:<6} {} in process {}", count.count, count.worker);
    }
    for worker in workers {
        worker.terminate().await?;
    }
    pinboard.terminate().await?;
    println!("\nAll have exited.");
    Ok(())
}

/// The fleet, as its clients see it: one address.
struct Fleet {
    url: String,
    client: Client<HttpConnector, Body>,
}

impl Fleet {
    fn new(url: String) -> Self {
        Self {
            url,
            client: Client::builder(TokioExecutor::new()).build_http(),
        }
    }

    async fn increment(&self, name: &str) -> Result<Count, Box<dyn Error>> {
        let path = format!("/counters/{name}/increment");
        parse(self.send(Method::POST, &path).await?)
    }

    async fn read(&self, name: &str) -> Result<Count, Box<dyn Error>> {
        parse(self.send(Method::GET, &format!("/counters/{name}")).await?)
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
    ) -> Result<(StatusCode, Bytes), Box<dyn Error>> {
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url))
            .body(Body::empty())?;
        let answer = self.client.request(request).await?;
        let status = answer.status();
        Ok((status, answer.into_body().collect().await?.to_bytes()))
    }

    /// Waits until two workers are registered and ids can be placed.
    async fn wait_until_served(&self, mut members: Vec<&mut Member>) -> Result<(), Box<dyn Error>> {
        let domain = Domain::real();
        let registered = async {
            loop {
                for member in &mut members {
                    member.check()?;
                }
                if self.workers().await == Some(2)
                    && matches!(
                        self.send(Method::GET, "/counters/probe").await,
                        Ok((StatusCode::OK, _))
                    )
                {
                    return Ok::<(), Box<dyn Error>>(());
                }
                domain.sleep(Duration::from_millis(100)).await;
            }
        };
        domain
            .timeout(PATIENCE, registered)
            .await
            .map_err(|_| "the workers do not register")?
    }

    /// How many workers are registered; `None` while nobody answers.
    async fn workers(&self) -> Option<usize> {
        #[derive(Deserialize)]
        struct Listed {
            workers: Vec<serde_json::Value>,
        }
        let request = Request::get(format!("{}/registry/workers", self.url))
            .header("authorization", format!("Bearer {}", crate::family::TOKEN))
            .body(Body::empty())
            .ok()?;
        let answer = self.client.request(request).await.ok()?;
        let body = answer.into_body().collect().await.ok()?.to_bytes();
        let listed: Listed = serde_json::from_slice(&body).ok()?;
        Some(listed.workers.len())
    }
}

fn parse((status, body): (StatusCode, Bytes)) -> Result<Count, Box<dyn Error>> {
    if status.is_success() {
        Ok(serde_json::from_slice(&body)?)
    } else {
        Err(format!("{status}: {}", String::from_utf8_lossy(&body)).into())
    }
}

/// Where the counts are kept, for as long as the fleet lives.
struct Folder(PathBuf);

impl Folder {
    fn make() -> std::io::Result<Self> {
        let path = env::temp_dir().join(format!("pinned-fleet-{}", std::process::id()));
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that stays behind harms nobody.
        let _ = fs::remove_dir_all(&self.0);
    }
}
