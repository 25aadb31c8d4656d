use pinned::{Instance, Refusal, pinned_api, route};

#[derive(Default)]
struct Counter {
    count: u64,
}

#[pinned_api("/counters")]
impl Counter {
    #[route::get("/")]
    async fn read(&self) -> String {
        self.count.to_string()
    }

    #[route::put("/")]
    async fn write(&mut self, body: String) -> &'static str {
        self.count = body.len() as u64;
        "written"
    }

    #[route::delete("/")]
    async fn reset(this: Instance<Self>) -> Result<(), Refusal> {
        this.write().await?.count = 0;
        Ok(())
    }

    #[route::patch("/")]
    async fn named(mut it: pinned::Instance<Counter>) -> String {
        it = it.clone();
        it.id().to_owned()
    }

    #[route::get("/ignored")]
    async fn ignored(_: Instance<Self>) {}
}

fn main() {}
