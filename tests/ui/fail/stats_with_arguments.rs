use pinned::pinned_api;

#[derive(Default)]
struct Counter;

#[pinned_api("/counters")]
impl Counter {
    #[stats(all)]
    fn row(&self) -> u64 {
        1
    }
}

fn main() {}
