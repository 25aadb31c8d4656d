use pinned::pinned_api;

#[pinned_api("/counters")]
fn main() {}
