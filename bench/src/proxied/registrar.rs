use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use axum::{Json, Router, extract::State, routing::get};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::node::TOKEN;
use crate::Result;

/// Registers workers that are all behind one address, which proves only that they are there.
pub struct Registrar {
    addr: SocketAddr,
    /// What the worker that registers now answers its challenge with.
    value: Arc<Mutex<String>>,
}

impl Registrar {
    /// Listens for challenges.
    ///
    /// # Errors
    /// When it cannot listen.
    pub async fn start() -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let addr = listener.local_addr()?;
        let value = Arc::new(Mutex::new(String::new()));
        let answer = |State(value): State<Arc<Mutex<String>>>| async move {
            Json(json!({ "value": *value.lock().expect("no panics") }))
        };
        let router = Router::new()
            .route("/_pinned/challenge", get(answer))
            .with_state(Arc::clone(&value));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self { addr, value })
    }

    /// Registers so many workers one after the other; their sessions.
    ///
    /// # Errors
    /// When one is refused.
    pub async fn register(&self, pinboard: SocketAddr, workers: u32) -> Result<Vec<String>> {
        let mut sessions = Vec::new();
        for worker in 0..workers {
            let value = format!("value-{worker:020}");
            self.value.lock().expect("no panics").clone_from(&value);
            let body = json!({
                "clientId": format!("{worker:032x}"), "secret": "00".repeat(32), "namespaces": ["/counters"],
                "advertiseUrl": format!("http://{}", self.addr), "headroom": 1024, "draining": false,
                "challenge": format!("challenge-{worker:020}"), "challengeValue": value,
            });
            let answered = tokio::task::spawn_blocking(move || -> Result<Value, ureq::Error> {
                ureq::post(format!("http://{pinboard}/registry/register"))
                    .header("authorization", format!("Bearer {TOKEN}"))
                    .send_json(&body)?
                    .body_mut()
                    .read_json()
            });
            let answer = answered.await??;
            let session = answer["sessionId"].as_str();
            sessions.push(session.ok_or("no session in the answer")?.to_owned());
        }
        Ok(sessions)
    }
}
