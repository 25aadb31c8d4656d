use pinned::{Connection, Context, pinned_api};

#[derive(Default)]
struct Counter;

#[pinned_api("/counters")]
impl Counter {
    #[authorize]
    async fn authorize(_ctx: &Context, _conn: &Connection) -> bool {
        true
    }
}

fn main() {}
