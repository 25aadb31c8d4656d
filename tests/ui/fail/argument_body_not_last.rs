use pinned::{Context, Json, pinned_api, route};

#[derive(Default)]
struct Counter;

#[pinned_api("/counters")]
impl Counter {
    #[route::put("/")]
    async fn write(&mut self, _value: Json<u64>, _ctx: Context) {}
}

fn main() {}
