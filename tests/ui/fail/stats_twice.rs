use pinned::pinned_api;

#[derive(Default)]
struct Counter;

#[pinned_api("/counters")]
impl Counter {
    #[stats]
    fn one(&self) -> u64 {
        1
    }

    #[stats]
    fn two(&self) -> u64 {
        2
    }
}

fn main() {}
