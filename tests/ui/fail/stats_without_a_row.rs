use pinned::pinned_api;

#[derive(Default)]
struct Counter;

#[pinned_api("/counters")]
impl Counter {
    #[stats]
    fn row(&self) {}
}

fn main() {}
