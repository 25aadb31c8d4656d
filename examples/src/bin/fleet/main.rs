//! A fleet on one machine: a pinboard, and two workers that serve counters behind it.
//!
//! ```sh
//! cargo run --release -p examples --bin fleet
//!
//! curl -X POST localhost:8080/counters/alice/increment
//! curl localhost:8080/counters/alice
//! ```
//!
//! Each is a process of its own: this program starts itself three more times. Ctrl-C (or SIGTERM) drains one worker, shows
//! that its counters live on at the other, and ends everything.

mod control_plane;
mod counter;
mod family;
mod tour;

use std::error::Error;

use family::Role;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    examples::show_warnings();
    match Role::of_this_process()? {
        Some(Role::Pinboard) => control_plane::run().await,
        Some(Role::Worker) => Ok(counter::serve().await?),
        None => tour::guide().await,
    }
}
