#[derive(Default)]
struct Counter;

#[pinned::pinned_api("/counters")]
impl Counter {
    #[pinned::route::get("/")]
    async fn read(&self) {}

    #[::pinned::route::put("/")]
    async fn write(&mut self) {}

    #[pinned::lifespan::setup]
    async fn setup(_ctx: pinned::Context) -> Self {
        Self
    }

    #[pinned::lifespan::teardown]
    async fn teardown(&mut self) {}

    #[pinned::authorize]
    async fn authorize(_: &pinned::Context, _: &pinned::Connection) -> Result<(), pinned::Denied> {
        Ok(())
    }

    #[pinned::stats]
    fn stats(&self) -> u64 {
        1
    }
}

fn main() {}
