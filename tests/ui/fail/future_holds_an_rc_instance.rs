use pinned::{Instance, pinned_api, route};

#[derive(Default)]
struct Counter;

#[pinned_api("/counters")]
impl Counter {
    #[route::get("/")]
    async fn read(_this: Instance<Self>) -> String {
        let shared = std::rc::Rc::new(1_u64);
        std::future::ready(()).await;
        shared.to_string()
    }
}

fn main() {}
