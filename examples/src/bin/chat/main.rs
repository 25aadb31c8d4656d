//! Chat rooms: a page, a WebSocket, server-sent events and plain posts, all on one live instance per room.
//!
//! ```sh
//! cargo run --release -p examples --bin chat
//!
//! # Talk: open http://localhost:8000/rooms/lobby in two tabs.
//!
//! # Listen from a terminal, and say something from another.
//! curl -N localhost:8000/rooms/lobby/events
//! curl -i localhost:8000/rooms/lobby/messages --json '{"from": "ada", "text": "hello"}'
//! ```
//!
//! A room remembers its last [`HISTORY`] messages for as long as it lives: it is evicted ten minutes after the last
//! listener left and the last message came in.

use std::collections::VecDeque;
use std::convert::Infallible;

use axum::extract::Query;
use axum::http::StatusCode;
use axum::response::Html;
use axum::response::sse::{self, KeepAlive, Sse};
use futures_util::stream::{self, Stream, StreamExt};
use pinned::ws::{Message, Utf8Bytes, WebSocketUpgrade};
use pinned::{BoxError, Instance, Json, PinnedWorker, Refusal, pinned_api, route};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::broadcast;

/// How many messages a newcomer is shown.
const HISTORY: usize = 50;
/// How many events wait for a slow listener before it misses the oldest.
const BACKLOG: usize = 64;
/// The longest message and the longest name, in characters.
const MAX_TEXT: usize = 1_000;
const MAX_NAME: usize = 40;

struct Room {
    history: VecDeque<Utf8Bytes>,
    feed: broadcast::Sender<News>,
}

/// What listeners are told. The feed keeps one copy of each for all of them, and never more than [`BACKLOG`].
#[derive(Clone)]
enum News {
    Said(Utf8Bytes),
    /// Someone came or left. It carries no number: whoever hears of it counts for itself, so the last count that is
    /// shown is right in whichever order people leave.
    Presence,
}

#[derive(Deserialize)]
struct Line {
    from: String,
    text: String,
}

#[derive(Deserialize)]
struct Guest {
    name: String,
}

#[derive(Serialize)]
struct Stats {
    here: usize,
    remembered: usize,
}

type Refused = (StatusCode, &'static str);

#[pinned_api("/rooms", idle_timeout = "10m", max_instances = 10_000)]
impl Room {
    #[route::get("/")]
    async fn page(&self) -> Html<&'static str> {
        Html(include_str!("page.html"))
    }

    #[route::post("/messages")]
    async fn post(&mut self, Json(line): Json<Line>) -> Result<StatusCode, Refused> {
        self.say(&line.from, &line.text)?;
        Ok(StatusCode::NO_CONTENT)
    }

    /// Server-sent events. `Instance<Self>` holds no turn, so that a stream of hours keeps nobody waiting.
    #[route::get("/events")]
    async fn events(
        this: Instance<Self>,
    ) -> Result<Sse<impl Stream<Item = Result<sse::Event, Infallible>>>, Refusal> {
        let (past, seat) = this.read().await?.join();
        let future = stream::unfold(seat, async |mut seat| Some((seat.next().await?, seat)));
        let events = stream::iter(past).chain(future);
        let events = events.map(|event| Ok(sse::Event::default().data(event)));
        Ok(Sse::new(events).keep_alive(KeepAlive::default()))
    }

    /// Takes turns only to join and to speak; between them this handler waits without one.
    #[route::websocket("/ws")]
    async fn talk(
        this: Instance<Self>,
        Query(guest): Query<Guest>,
        upgrade: WebSocketUpgrade,
    ) -> Result<(), BoxError> {
        let mut socket = upgrade.max_message_size(4 * MAX_TEXT).accept().await?;
        let (past, mut seat) = this.read().await?.join();
        for event in past {
            socket.send_text(event).await?;
        }
        loop {
            tokio::select! {
                Some(news) = seat.next() => socket.send_text(news).await?,
                message = socket.recv() => match message.transpose()? {
                    Some(Message::Text(text)) => {
                        let said = this.write().await?.say(&guest.name, &text);
                        if let Err((_, problem)) = said {
                            socket.send_text(event(json!({"type": "problem", "text": problem}))).await?;
                        }
                    }
                    Some(Message::Close(_)) | None => return Ok(()),
                    Some(_) => {}
                },
            }
        }
    }

    #[stats]
    fn stats(&self) -> Stats {
        Stats {
            here: self.feed.receiver_count(),
            remembered: self.history.len(),
        }
    }

    fn say(&mut self, from: &str, text: &str) -> Result<(), Refused> {
        let (from, text) = (from.trim(), text.trim());
        if from.is_empty() || text.is_empty() {
            return Err((
                StatusCode::UNPROCESSABLE_ENTITY,
                "a message has a name and a text",
            ));
        }
        if from.chars().count() > MAX_NAME || text.chars().count() > MAX_TEXT {
            return Err((
                StatusCode::PAYLOAD_TOO_LARGE,
                "a shorter name or text, please",
            ));
        }
        let said = event(json!({"type": "message", "from": from, "text": text}));
        if self.history.len() == HISTORY {
            self.history.pop_front();
        }
        self.history.push_back(said.clone());
        // An error says that nobody listens, which is no problem.
        let _ = self.feed.send(News::Said(said));
        Ok(())
    }

    /// The past, and a seat for what comes. Nobody speaks during a shared turn, so nothing falls in between.
    fn join(&self) -> (Vec<Utf8Bytes>, Seat) {
        let seat = Seat {
            news: self.feed.subscribe(),
            exit: Exit(self.feed.clone()),
        };
        let _ = self.feed.send(News::Presence);
        (self.history.iter().cloned().collect(), seat)
    }
}

impl Default for Room {
    fn default() -> Self {
        Self {
            history: VecDeque::with_capacity(HISTORY),
            feed: broadcast::Sender::new(BACKLOG),
        }
    }
}

/// An event as it travels: JSON, in a text that is cheap to clone.
fn event(event: serde_json::Value) -> Utf8Bytes {
    event.to_string().into()
}

/// One listener. The order of the fields is the order in which they are dropped: first the seat is empty, then the
/// others hear of it.
struct Seat {
    news: broadcast::Receiver<News>,
    exit: Exit,
}

impl Seat {
    /// The next event, as JSON. A listener that is too slow learns how many it missed.
    async fn next(&mut self) -> Option<Utf8Bytes> {
        use broadcast::error::RecvError;
        match self.news.recv().await {
            Ok(News::Said(event)) => Some(event),
            Ok(News::Presence) => {
                let here = self.exit.0.receiver_count();
                Some(event(json!({"type": "presence", "here": here})))
            }
            Err(RecvError::Lagged(missed)) => {
                Some(event(json!({"type": "lagged", "missed": missed})))
            }
            Err(RecvError::Closed) => None,
        }
    }
}

/// Tells the room that someone has left, however it came to that: a closed tab, a lost connection, a dropped stream.
struct Exit(broadcast::Sender<News>);

impl Drop for Exit {
    fn drop(&mut self) {
        let _ = self.0.send(News::Presence);
    }
}

#[tokio::main]
async fn main() -> pinned::Result<()> {
    examples::show_warnings();
    PinnedWorker::from_registry()?.serve().await
}

#[cfg(test)]
mod tests;
