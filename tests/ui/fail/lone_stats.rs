use pinned::stats;

struct Counter;

impl Counter {
    #[stats]
    fn row(&self) {}
}

fn main() {}
