use pinned::{PinnedApi, pinned_api, route};

#[derive(Default)]
struct Counter;

#[pinned_api("/counters")]
impl Counter {
    #[route::get("read")]
    async fn read(&self) -> &'static str {
        "still a method"
    }
}

fn served<T: PinnedApi>() -> usize {
    T::routes().count()
}

fn main() {
    served::<Counter>();
    drop(Counter.read());
    let _ = Counter::NAMESPACE;
}
