use pinned::pinned_api;

#[derive(Default)]
struct Counter;

struct Row;

#[pinned_api("/counters")]
impl Counter {
    #[stats]
    fn row(&self) -> Row {
        Row
    }
}

fn main() {}
