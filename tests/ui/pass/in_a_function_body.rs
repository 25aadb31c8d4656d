fn main() {
    use pinned::{PinnedApi, pinned_api, route};

    #[derive(Default)]
    struct Counter;

    #[pinned_api("/counters")]
    impl Counter {
        #[route::get("/")]
        async fn read(&self) {}
    }

    assert_eq!(Counter::routes().count(), 1);
}
