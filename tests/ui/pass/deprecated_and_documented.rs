#![deny(deprecated, warnings)]

use pinned::{pinned_api, route};

/// A counter.
#[derive(Default)]
struct Counter;

/// The block's own documentation.
#[pinned_api("/counters")]
#[allow(clippy::unused_async)]
impl Counter {
    #![allow(clippy::all)]

    /// Reads.
    #[deprecated = "use the other one"]
    #[route::get("/")]
    async fn read(&self) {}

    /** Writes. */
    #[route::put("/")]
    #[must_use]
    #[allow(unused_variables)]
    async fn write(&mut self, body: String) -> &'static str {
        "written"
    }
}

fn main() {}
