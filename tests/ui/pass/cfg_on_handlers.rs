use pinned::{Context, PinnedApi, lifespan, pinned_api, route};

#[derive(Default)]
struct Counter;

#[pinned_api("/counters")]
#[cfg(not(any()))]
impl Counter {
    #[cfg(any())]
    #[route::get("/never")]
    async fn never(&self, _value: DoesNotExist) {}

    #[cfg(not(any()))]
    #[route::get("/always")]
    async fn always(&self) {}

    #[cfg_attr(any(), route::get("/hidden"))]
    #[cfg_attr(not(any()), route::get("/shown"), route::put("/shown"), inline)]
    async fn sometimes(&self) {}

    #[cfg_attr(any(), cfg(any()))]
    #[route::get("/kept")]
    async fn kept(&self) {}

    #[cfg(any())]
    #[route::get("/either")]
    async fn either(&self) {}

    #[cfg(not(any()))]
    #[route::get("/either")]
    async fn either(&self) {}

    #[cfg(any())]
    #[lifespan::setup]
    async fn setup(_ctx: Context) -> DoesNotExist {}

    #[cfg(any())]
    #[stats]
    fn row(&self) -> DoesNotExist {}

    #[cfg_attr(not(any()), lifespan::teardown)]
    async fn end(&mut self) {}
}

#[derive(Default)]
struct Gone;

#[pinned_api("/gone")]
#[cfg(any())]
impl Gone {
    #[route::get("/")]
    async fn read(&self, _value: DoesNotExist) {}
}

#[derive(Default)]
struct Alternatives;

#[pinned_api("/alternatives")]
impl Alternatives {
    #[cfg(any())]
    #[lifespan::setup]
    async fn one(_ctx: Context) -> DoesNotExist {}

    #[cfg(not(any()))]
    #[lifespan::setup]
    async fn two(_ctx: Context) -> Self {
        Self
    }
}

fn main() {
    let paths: Vec<_> = Counter::routes().map(|route| route.path()).collect();
    assert_eq!(paths, ["/always", "/shown", "/shown", "/kept", "/either"]);
    let _ = (Gone, Alternatives);
}
