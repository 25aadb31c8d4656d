use pinned::{Context, Instance, pinned_api, route};

#[derive(Default)]
struct Counter;

#[pinned_api("/counters")]
impl Counter {
    #[route::put("/first")]
    async fn first(&self, #[cfg(any())] gone: DoesNotExist, body: String) -> String {
        body
    }

    #[route::put("/last")]
    async fn last(&mut self, body: String, #[cfg(any())] gone: DoesNotExist) -> String {
        body
    }

    #[route::put("/either")]
    async fn either(
        this: Instance<Self>,
        ctx: Context,
        #[cfg(any())] body: DoesNotExist,
        #[cfg(not(any()))] body: String,
        #[cfg_attr(not(any()), cfg(any()))] more: DoesNotExist,
    ) -> String {
        let _ = (this, ctx);
        body
    }
}

fn main() {}
