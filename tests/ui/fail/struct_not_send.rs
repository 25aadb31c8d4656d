use pinned::{pinned_api, route};

#[derive(Default)]
struct Counter(std::rc::Rc<u64>);

#[pinned_api("/counters")]
impl Counter {
    #[route::get("/")]
    async fn read(&self) {}
}

fn main() {}
