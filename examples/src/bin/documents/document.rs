//! `/documents/<owner>.<name>`: one document.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use futures_util::stream::{self, StreamExt};
use pinned::{
    Auth, BoxError, Connection, Context, Denied, Instance, Json, SetupError, lifespan, pinned_api,
    route,
};
use serde::Serialize;

use crate::users::{User, sign_in, sign_in_as};

/// How large a document may be.
pub(crate) const MAX_BYTES: usize = 16 * 1024 * 1024;
/// How many comments are kept, and how long one may be, in bytes.
const MAX_COMMENTS: usize = 100;
const MAX_COMMENT: usize = 1_000;

pub(crate) struct Document {
    ctx: Context,
    owner: String,
    text: Text,
    comments: VecDeque<Comment>,
    reads: AtomicU64,
}

/// A text, in the pieces in which it came in. Cloning shares the bytes.
#[derive(Clone, Default)]
struct Text {
    version: u64,
    chunks: Vec<Bytes>,
    /// Counted in the background; unknown at first.
    words: Option<u64>,
}

#[derive(Clone, Serialize)]
struct Comment {
    by: String,
    text: String,
}

#[derive(Serialize)]
struct About {
    owner: String,
    version: u64,
    bytes: usize,
    words: Option<u64>,
    comments: Vec<Comment>,
}

#[pinned_api("/documents", idle_timeout = "5m")]
impl Document {
    /// Gates every route that names nothing else.
    #[authorize]
    async fn signed_in(ctx: &Context, conn: &Connection) -> Result<User, Denied> {
        sign_in(ctx, conn)
    }

    /// Authorizers run before setup and see no `self`: the id alone must tell who owns a document.
    async fn owner(ctx: &Context, conn: &Connection) -> Result<User, Denied> {
        let (owner, _name) = ctx.id().split_once('.').unwrap_or((ctx.id(), ""));
        sign_in_as(owner, ctx, conn)
    }

    /// A failed setup leaves no instance behind. `?` makes a 500 of any error; this one is an answer of its own.
    #[lifespan::setup]
    async fn open(ctx: Context) -> Result<Self, SetupError> {
        let (owner, _name) = ctx
            .id()
            .split_once('.')
            .ok_or_else(|| SetupError::http(404, "a document's id is <owner>.<name>"))?;
        Ok(Self {
            owner: owner.to_owned(),
            text: Text::default(),
            comments: VecDeque::new(),
            reads: AtomicU64::new(0),
            ctx,
        })
    }

    /// The last thing an instance does. It keeps to itself here: when a whole worker drains, the others go as well, and
    /// a call to them may find nobody.
    #[lifespan::teardown]
    async fn close(&mut self) {
        let reads = *self.reads.get_mut();
        tracing::info!(id = self.ctx.id(), reads, "closed");
    }

    /// Streams the document to whoever asks. The turn ends when this returns; the stream goes on from its own copy.
    #[route::get("/", auth = none)]
    async fn download(&self) -> Result<Body, StatusCode> {
        if self.text.version == 0 {
            return Err(StatusCode::NOT_FOUND);
        }
        self.reads.fetch_add(1, Ordering::Relaxed);
        let chunks = self.text.chunks.clone();
        Ok(Body::from_stream(
            stream::iter(chunks).map(Ok::<_, Infallible>),
        ))
    }

    /// Takes a new text as it comes in, with no turn held: readers see the old one until the new one is whole.
    #[route::put("/", auth = Self::owner)]
    async fn upload(
        this: Instance<Self>,
        ctx: Context,
        body: Body,
    ) -> axum::response::Result<StatusCode> {
        let mut chunks = Vec::new();
        let mut size = 0;
        let mut body = body.into_data_stream();
        while let Some(chunk) = body.next().await {
            let chunk = chunk.map_err(|_broken_off| StatusCode::BAD_REQUEST)?;
            size += chunk.len();
            if size > MAX_BYTES {
                return Err(StatusCode::PAYLOAD_TOO_LARGE.into());
            }
            chunks.push(chunk);
        }
        let mut document = this.write().await?;
        let version = document.text.version + 1;
        document.text = Text {
            version,
            chunks,
            words: None,
        };
        drop(document);
        ctx.spawn(index(this));
        Ok(StatusCode::NO_CONTENT)
    }

    #[route::post("/comments")]
    async fn comment(&mut self, user: Auth<User>, text: String) -> StatusCode {
        if text.len() > MAX_COMMENT {
            return StatusCode::PAYLOAD_TOO_LARGE;
        }
        if self.comments.len() == MAX_COMMENTS {
            self.comments.pop_front();
        }
        self.comments.push_back(Comment {
            by: user.name.clone(),
            text,
        });
        StatusCode::NO_CONTENT
    }

    #[route::get("/about", auth = none)]
    async fn about(&self) -> Json<About> {
        Json(About {
            owner: self.owner.clone(),
            version: self.text.version,
            bytes: self.text.chunks.iter().map(Bytes::len).sum(),
            words: self.text.words,
            comments: self.comments.iter().cloned().collect(),
        })
    }
}

/// Counts the words of a text in the background. The instance is not evicted as idle meanwhile; one that is asked to
/// wind down gets its task back at the next checkpoint.
async fn index(this: Instance<Document>) -> Result<(), BoxError> {
    let ctx = this.context();
    let text = this.read().await?.text.clone();
    let mut words = 0;
    let mut in_word = false;
    for chunk in &text.chunks {
        ctx.eviction_checkpoint().await?;
        for byte in chunk {
            let is_word = !byte.is_ascii_whitespace();
            words += u64::from(is_word && !in_word);
            in_word = is_word;
        }
        tokio::task::yield_now().await;
    }
    let mut document = this.write().await?;
    if document.text.version != text.version {
        return Ok(()); // Replaced meanwhile; the newer text has a task of its own.
    }
    document.text.words = Some(words);
    let owner = document.owner.clone();
    drop(document);
    record(
        &ctx,
        &owner,
        format!("version {} has {words} words", text.version),
    )
    .await
}

/// Adds to the owner's record: a call to another instance, wherever in the fleet it lives.
async fn record(ctx: &Context, owner: &str, event: String) -> Result<(), BoxError> {
    let answer = ctx
        .cluster()
        .post(format!("/audit/{owner}"))
        .body(event)
        .send()
        .await?;
    if answer.status().is_success() {
        Ok(())
    } else {
        Err(format!("the audit answered {}", answer.status()).into())
    }
}
