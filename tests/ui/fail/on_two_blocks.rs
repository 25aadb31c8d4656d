use pinned::pinned_api;

#[derive(Default)]
struct Counter;

#[pinned_api]
impl Counter {}

#[pinned_api]
impl Counter {}

fn main() {}
