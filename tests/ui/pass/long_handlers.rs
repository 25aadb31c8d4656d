use std::sync::Arc;

use pinned::{Context, Instance, pinned_api, route};

#[derive(Default)]
struct Counter {
    shared: Arc<std::sync::Mutex<u64>>,
}

#[pinned_api("/counters")]
impl Counter {
    #[route::post("/borrowing")]
    async fn borrowing(&mut self, ctx: Context, body: String) -> Result<String, &'static str> {
        let shared = &self.shared;
        let words: Vec<&str> = body.split(' ').collect();
        std::future::ready(()).await;
        *shared.lock().map_err(|_| "poisoned")? += words.len() as u64;
        Ok(format!("{} {}", ctx.id(), words.len()))
    }

    #[route::post("/turns")]
    async fn turns(this: Instance<Self>) -> Result<String, pinned::Refusal> {
        let before = *this.read().await?.shared.lock().unwrap();
        std::future::ready(()).await;
        let turn = this.write().await?;
        std::future::ready(()).await;
        *turn.shared.lock().unwrap() = before + 1;
        Ok(before.to_string())
    }
}

fn main() {}
