//! Documents with owners: bearer tokens, a rule per route, bodies that stream in and out, work in the background,
//! and a second namespace that keeps the record.
//!
//! ```sh
//! cargo run --release -p examples --bin documents
//!
//! # The id says who owns a document: `ada.notes` is Ada's. Only she may write it.
//! curl -i localhost:8000/documents/ada.notes -T README.md -H "authorization: Bearer ada-secret"
//! curl -i localhost:8000/documents/ada.notes -T README.md -H "authorization: Bearer bob-secret"
//!
//! # Anyone may read it; whoever has signed in may comment.
//! curl localhost:8000/documents/ada.notes
//! curl localhost:8000/documents/ada.notes/comments -d "well said" -H "authorization: Bearer bob-secret"
//! curl localhost:8000/documents/ada.notes/about
//!
//! # What happened to Ada's documents, for Ada.
//! curl localhost:8000/audit/ada -H "authorization: Bearer ada-secret"
//! ```

mod audit;
mod document;
#[cfg(test)]
mod tests;
mod users;

use pinned::{PinnedWorker, WorkerBuilder};

use crate::users::Users;

/// `state` is how instances reach what the whole program shares: a client, a pool, or here the list of users.
fn worker() -> WorkerBuilder {
    PinnedWorker::builder()
        .hosts_from_registry()
        .state(Users::new([("ada", "ada-secret"), ("bob", "bob-secret")]))
}

#[tokio::main]
async fn main() -> pinned::Result<()> {
    examples::show_warnings();
    worker().environment().build()?.serve().await
}
