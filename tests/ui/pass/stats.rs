use std::collections::BTreeMap;

use pinned::{Instance, pinned_api, route};

#[derive(Default)]
struct Counter {
    count: u64,
}

#[pinned_api("/counters")]
impl Counter {
    #[stats]
    fn row(&self) -> BTreeMap<&'static str, u64> {
        BTreeMap::from([("count", self.count)])
    }

    #[route::get("/")]
    async fn read(this: Instance<Self>) -> String {
        this.id().to_owned()
    }
}

fn main() {}
