//! The type that these tests host.

use axum::body::Body;
use axum::extract::RawQuery;
use futures_util::StreamExt as _;
use http::HeaderMap;
use pinned::ws::{Message, SocketError};
use pinned::{Context, Instance, Json, WebSocketUpgrade, pinned_api, route};
use pinned_testing::Gate;
use serde_json::{Value, json};

#[derive(Default)]
pub(crate) struct Room {
    pub(crate) count: u64,
}

#[pinned_api]
impl Room {
    #[route::post("/increment")]
    async fn increment(&mut self) -> Json<u64> {
        self.count += 1;
        Json(self.count)
    }

    #[route::post("/gated")]
    async fn gated(&mut self, ctx: Context) -> Json<u64> {
        if let Some(gate) = ctx.state::<Gate>() {
            gate.pass().await;
        }
        self.count += 1;
        Json(self.count)
    }

    #[route::put("/echo")]
    async fn echo(
        &self,
        RawQuery(query): RawQuery,
        headers: HeaderMap,
        body: Json<Value>,
    ) -> Json<Value> {
        let trace = headers.get("x-trace").and_then(|trace| trace.to_str().ok());
        Json(json!({ "query": query, "trace": trace, "body": body.0 }))
    }

    #[route::get("/numbers")]
    async fn numbers(&self) -> Body {
        let ended = futures_util::stream::iter(["1", "2", "3"]).map(Ok::<_, std::io::Error>);
        Body::from_stream(ended)
    }

    #[route::get("/silence")]
    async fn silence(&self) -> Body {
        Body::from_stream(futures_util::stream::pending::<
            Result<String, std::io::Error>,
        >())
    }

    #[route::get("/frontier")]
    async fn frontier(&self, ctx: Context) -> Result<(), http::StatusCode> {
        let frontier = ctx
            .frontier()
            .map_err(|_| http::StatusCode::NOT_IMPLEMENTED)?;
        frontier
            .wait()
            .await
            .map_err(|_| http::StatusCode::BAD_GATEWAY)
    }

    #[route::post("/abort")]
    async fn abort(&self, ctx: Context) {
        ctx.abort();
    }

    /// Echoes; passes the gate once its client has left without a word.
    #[route::websocket("/chat")]
    async fn chat(
        _this: Instance<Self>,
        ctx: Context,
        upgrade: WebSocketUpgrade,
    ) -> Result<(), SocketError> {
        let mut socket = upgrade.protocols(["chat.v2"]).accept().await?;
        while let Some(message) = socket.recv().await {
            match message {
                Ok(Message::Text(text)) => socket.send_text(text).await?,
                Ok(_) => {}
                Err(SocketError::ClientLeft) => {
                    if let Some(gate) = ctx.state::<Gate>() {
                        gate.pass().await;
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    #[route::websocket("/never")]
    async fn never(_this: Instance<Self>, upgrade: WebSocketUpgrade) {
        upgrade.refuse((http::StatusCode::PAYMENT_REQUIRED, "not for free"));
    }
}
