use pinned::{pinned_api, route};

#[derive(Default)]
struct Counter;

#[pinned_api("/counters")]
impl Counter {
    #[route::put("/")]
    async fn write(&mut self) -> String {
        let shared = std::rc::Rc::new(1_u64);
        std::future::ready(()).await;
        shared.to_string()
    }
}

fn main() {}
