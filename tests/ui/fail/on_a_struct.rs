use pinned::pinned_api;

#[pinned_api("/counters")]
struct Counter;

fn main() {}
