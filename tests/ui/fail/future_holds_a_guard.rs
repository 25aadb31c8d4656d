use pinned::{pinned_api, route};

#[derive(Default)]
struct Counter {
    value: std::sync::Mutex<u64>,
}

#[pinned_api("/counters")]
impl Counter {
    #[route::get("/")]
    async fn read(&self) -> String {
        let mut value = self.value.lock().unwrap();
        std::future::ready(()).await;
        *value += 1;
        value.to_string()
    }
}

fn main() {}
