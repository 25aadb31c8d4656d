use pinned::{Context, Instance, pinned_api, route};

#[derive(Default)]
struct Counter;

#[pinned_api("/counters")]
impl Counter {
    #[route::get("/a")]
    async fn a(&self, self_: Context, ctx: Context, req: Context, state: Context, inner: String) {
        let _ = (self_, ctx, req, state, inner);
    }

    #[route::get("/b")]
    async fn b(
        &mut self,
        result: Context,
        __pinned: Context,
        call: Context,
        turn: Context,
        a0: String,
    ) {
        let _ = (result, __pinned, call, turn, a0);
    }

    #[route::get("/c")]
    async fn c(
        call: Instance<Self>,
        this: Context,
        answer: Context,
        value: Context,
        socket: String,
    ) {
        let _ = (call, this, answer, value, socket);
    }

    #[route::get("/d")]
    async fn call(&self) {}

    #[route::get("/e")]
    async fn routes(&self) {}

    #[route::get("/f")]
    async fn setup(&self) {}

    #[route::get("/g")]
    async fn teardown(&mut self) {}
}

fn main() {}
