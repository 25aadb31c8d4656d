//! `/audit/<user>`: what happened to a user's documents. Only documents write here.

use std::collections::VecDeque;

use pinned::{
    Attestation, Auth, AuthRejected, Connection, Context, Denied, Json, pinned_api, route,
};

use crate::users::{User, sign_in_as};

/// How many entries are kept.
const MAX_ENTRIES: usize = 1_000;

/// The document that an entry comes from.
struct Source(String);

#[derive(Default)]
struct Audit {
    entries: VecDeque<String>,
}

#[pinned_api("/audit")]
impl Audit {
    /// A call through `ctx.cluster()` is attested: the host vouches for the instance that makes it, and nobody outside
    /// can claim to be one.
    #[authorize]
    async fn documents_only(_ctx: &Context, conn: &Connection) -> Result<Source, Denied> {
        match conn.attestation() {
            Attestation::Instance { ns, id, .. } if ns == "/documents" => Ok(Source(id.clone())),
            _ => Err(AuthRejected::new("only documents write here")
                .forbidden()
                .into()),
        }
    }

    async fn subject(ctx: &Context, conn: &Connection) -> Result<User, Denied> {
        sign_in_as(ctx.id(), ctx, conn)
    }

    #[route::post("/")]
    async fn append(&mut self, Auth(source): Auth<Source>, event: String) {
        if self.entries.len() == MAX_ENTRIES {
            self.entries.pop_front();
        }
        self.entries.push_back(format!("{}: {event}", source.0));
    }

    #[route::get("/", auth = Self::subject)]
    async fn entries(&self) -> Json<&VecDeque<String>> {
        Json(&self.entries)
    }
}
