use pinned::pinned_api;

#[pinned_api("/counters")]
mod counters {}

fn main() {}
