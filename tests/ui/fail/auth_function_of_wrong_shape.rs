use pinned::{Denied, pinned_api, route};

#[derive(Default)]
struct Counter;

#[pinned_api("/counters")]
impl Counter {
    #[route::get("/", auth = Self::admins)]
    async fn read(&self) {}

    async fn admins(&self) -> Result<(), Denied> {
        Ok(())
    }
}

fn main() {}
