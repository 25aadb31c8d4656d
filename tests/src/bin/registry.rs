//! Prints what the registry finds, one namespace a line: the program of `tests/it/registry.rs`.

use pinned::{PinnedWorker, pinned_api, route};

pinned::link!(fixture_unused);

#[derive(Default)]
struct Own;

#[pinned_api("/own")]
impl Own {
    #[route::get("/")]
    async fn read(&self) -> &'static str {
        fixture_used::GREETING
    }
}

fn main() -> pinned::Result<()> {
    let worker = PinnedWorker::from_registry()?;
    for namespace in worker.namespaces() {
        println!("{namespace}");
    }
    Ok(())
}
