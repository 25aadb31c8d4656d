//! An instance that calls others and opens sockets to them.

use pinned::axum::extract::Path;
use pinned::ws::{CloseFrame, Message, WebSocket};
use pinned::{
    Attestation, BoxError, Context, Instance, Json, Refusal, lifespan, pinned_api, route,
};
use serde_json::{Value, json};

pub(crate) struct Link {
    ctx: Context,
    /// How the last socket ended that another instance had opened.
    ended: Option<String>,
}

#[pinned_api]
impl Link {
    #[lifespan::setup]
    async fn setup(ctx: Context) -> Self {
        Self { ctx, ended: None }
    }

    #[route::get("/who")]
    async fn who(&self) -> Json<Value> {
        Json(json!({ "pid": std::process::id() }))
    }

    /// Calls what the rest of the path says, under the shared turn.
    #[route::get("/shared/{*target}")]
    async fn shared(&self, Path(target): Path<String>) -> Json<Value> {
        Json(call(&self.ctx, &target).await)
    }

    /// The same under the exclusive turn.
    #[route::get("/exclusive/{*target}")]
    async fn exclusive(&mut self, Path(target): Path<String>) -> Json<Value> {
        Json(call(&self.ctx, &target).await)
    }

    /// Gives text back in capitals and bytes backwards. The first text says who is asking.
    #[route::websocket("/echo")]
    async fn echo(
        this: Instance<Self>,
        caller: Attestation,
        socket: pinned::ws::WebSocketUpgrade,
    ) -> Result<(), BoxError> {
        let mut socket = socket.protocols(["v2"]).accept().await?;
        if let Attestation::Instance { ns, id, depth } = caller {
            socket.send_text(format!("{ns}/{id} at {depth}")).await?;
        }
        while let Some(message) = socket.recv().await {
            match message? {
                Message::Text(text) if text == "close" => {
                    socket.close(Some(CloseFrame::new(4001, "as told"))).await?;
                }
                Message::Text(text) => socket.send_text(text.to_uppercase()).await?,
                Message::Binary(bytes) => {
                    let back: Vec<u8> = bytes.iter().rev().copied().collect();
                    socket.send(back).await?;
                }
                Message::Close(frame) => {
                    let ended = frame.map(|frame| format!("{} {}", frame.code, frame.reason));
                    this.write().await?.ended = ended;
                }
                _ => {}
            }
        }
        Ok(())
    }

    #[route::get("/ended")]
    async fn ended(&self) -> Json<Value> {
        Json(json!({ "ended": self.ended }))
    }

    /// Opens a socket to what the rest of the path says, and tells what is heard there.
    #[route::get("/talk/{*target}")]
    async fn talk(&self, Path(target): Path<String>) -> Json<Value> {
        match talk(&self.ctx, &target).await {
            Ok(heard) => Json(heard),
            Err(error) => Json(json!({ "error": error.to_string() })),
        }
    }

    /// The same, but for saying anything: a task holds the socket from here on.
    #[route::get("/hold/{*target}")]
    async fn hold(
        this: Instance<Self>,
        Path(target): Path<String>,
    ) -> Result<Json<Value>, Refusal> {
        let ctx = this.context();
        let asked = ctx.cluster().websocket(format!("/{target}"));
        match asked.connect().await {
            Ok(mut socket) => {
                ctx.spawn(async move { while socket.recv().await.is_some() {} });
                Ok(Json(json!({ "open": true })))
            }
            Err(error) => Ok(Json(json!({ "error": error.to_string() }))),
        }
    }
}

async fn call(ctx: &Context, target: &str) -> Value {
    match ctx.cluster().get(format!("/{target}")).send().await {
        Ok(answer) => {
            let status = answer.status().as_u16();
            let body = answer.json::<Value>().await.unwrap_or_default();
            json!({ "status": status, "body": body })
        }
        Err(error) => json!({ "error": error.to_string() }),
    }
}

async fn talk(ctx: &Context, target: &str) -> Result<Value, BoxError> {
    let mut socket = ctx
        .cluster()
        .websocket(format!("/{target}"))
        .protocols(["v1", "v2"])
        .connect()
        .await?;
    let caller = next(&mut socket).await?;
    socket.send_text("hello").await?;
    let text = next(&mut socket).await?;
    // More than any buffer on the way, and told apart from text.
    let bytes: Vec<u8> = (0..1_000_000_u32).map(|n| n as u8).collect();
    socket.send(bytes.clone()).await?;
    let Some(Message::Binary(back)) = socket.recv().await.transpose()? else {
        return Err("no bytes came back".into());
    };
    let whole = back.iter().eq(bytes.iter().rev());
    socket.send_text("close").await?;
    let closed = match socket.recv().await.transpose()? {
        Some(Message::Close(Some(frame))) => format!("{} {}", frame.code, frame.reason),
        other => format!("{other:?}"),
    };
    let protocol = socket.protocol().map(str::to_owned);
    Ok(json!({
        "caller": caller, "text": text, "whole": whole, "closed": closed, "protocol": protocol,
    }))
}

async fn next(socket: &mut WebSocket) -> Result<String, BoxError> {
    match socket.recv().await.transpose()? {
        Some(Message::Text(text)) => Ok(text.to_string()),
        other => Err(format!("expected text, and not {other:?}").into()),
    }
}
