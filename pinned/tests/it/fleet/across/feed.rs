//! An instance with sockets of many kinds.

use std::time::Duration;

use axum::extract::RawQuery;
use axum::response::IntoResponse;
use http::{HeaderMap, StatusCode};
use pinned::ws::{CloseFrame, Message, SocketError, WebSocket, WebSocketUpgrade};
use pinned::{Attestation, Context, Instance, pinned_api, route};

use super::{Gates, call};

/// The next thing that is heard on a socket.
pub(super) async fn heard(socket: &mut WebSocket) -> String {
    match socket.recv().await {
        Some(Ok(Message::Text(text))) => text.to_string(),
        Some(Ok(Message::Binary(bytes))) => format!("{bytes:?}"),
        Some(Ok(Message::Close(Some(frame)))) => format!("closed {} {}", frame.code, frame.reason),
        Some(Ok(other)) => format!("{other:?}"),
        Some(Err(error)) => error.to_string(),
        None => "the end".to_owned(),
    }
}

#[derive(Default)]
pub(super) struct Feed;

fn gates(ctx: &Context) -> Gates {
    Gates::clone(&ctx.state::<Gates>().expect("shared"))
}

#[pinned_api]
impl Feed {
    #[route::get("/plain")]
    async fn plain(&self) -> &'static str {
        "no socket"
    }

    /// Gives back what it gets: text in capitals, bytes backwards. It leaves as it is told to.
    #[route::websocket("/echo")]
    async fn echo(_this: Instance<Self>, mut socket: WebSocket) -> Result<(), pinned::BoxError> {
        while let Some(message) = socket.recv().await {
            match message? {
                Message::Text(text) if text == "end" => return Ok(()),
                Message::Text(text) if text == "fail" => return Err("as told".into()),
                Message::Text(text) if text == "close" => {
                    let frame = CloseFrame::new(4001, "as told");
                    socket.close(Some(frame)).await?;
                }
                Message::Text(text) => socket.send_text(text.to_uppercase()).await?,
                Message::Binary(bytes) => {
                    let back: Vec<u8> = bytes.iter().rev().copied().collect();
                    socket.send(back).await?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Says who asked, and with what.
    #[route::websocket("/who")]
    async fn who(
        _this: Instance<Self>,
        caller: Attestation,
        RawQuery(query): RawQuery,
        headers: HeaderMap,
        upgrade: WebSocketUpgrade,
    ) -> Result<(), SocketError> {
        let offered: Vec<_> = upgrade.requested_protocols().map(str::to_owned).collect();
        let socket = upgrade.protocols(["v2", "v1"]).accept().await?;
        let caller = match caller {
            Attestation::Instance { ns, id, depth } => format!("{ns}/{id} at {depth}"),
            other => format!("{other:?}"),
        };
        let private = headers
            .keys()
            .filter(|name| name.as_str().starts_with("pinboard-"))
            .filter(|name| !matches!(name.as_str(), "pinboard-attestation" | "pinboard-epoch"))
            .count();
        let mine = headers.get("x-mine").and_then(|mine| mine.to_str().ok());
        let said = format!(
            "{caller}; {offered:?}; {query:?}; {mine:?}; {private} private; {:?}",
            socket.protocol()
        );
        socket.send_text(said).await
    }

    /// Hears nothing before the gate `hear` opens; says then how many messages there were, and how it ended.
    #[route::websocket("/deaf")]
    async fn deaf(this: Instance<Self>, mut socket: WebSocket) {
        let gates = gates(&this.context());
        gates.named("hear").pass().await;
        let mut messages = 0;
        loop {
            match socket.recv().await {
                Some(Ok(Message::Text(_) | Message::Binary(_))) => messages += 1,
                Some(Ok(Message::Close(frame))) => {
                    let frame = frame.map(|frame| format!("{} {}", frame.code, frame.reason));
                    return gates.say(format!("{messages}, closed {frame:?}"));
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return gates.say(format!("{messages}, {error}")),
                None => return gates.say(format!("{messages}, no close")),
            }
        }
    }

    /// Does not answer before the gate `answer` opens.
    #[route::websocket("/slow")]
    async fn slow(this: Instance<Self>, upgrade: WebSocketUpgrade) -> Result<(), SocketError> {
        gates(&this.context()).named("answer").pass().await;
        upgrade.accept().await?;
        Ok(())
    }

    #[route::websocket("/refuses")]
    async fn refuses(_this: Instance<Self>, upgrade: WebSocketUpgrade) {
        let refusal = (StatusCode::CONFLICT, [("x-why", "full")], "taken");
        upgrade.refuse(refusal.into_response());
    }

    /// Calls node `a` once it is open, and says what came of that.
    #[route::websocket("/calls-back")]
    async fn calls_back(this: Instance<Self>, socket: WebSocket) -> Result<(), SocketError> {
        let ctx = this.context();
        gates(&ctx).named("called").pass().await;
        let said = call(&ctx, "/nodes/a").await;
        ctx.domain().sleep(Duration::from_millis(1)).await;
        socket.send_text(said).await
    }
}
