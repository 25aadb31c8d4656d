use pinned::{Connection, Context, Denied, pinned_api};

#[derive(Default)]
struct Counter;

#[pinned_api("/counters")]
impl Counter {
    #[authorize]
    async fn authorize(_ctx: &Context, _conn: &Connection, _token: &str) -> Result<(), Denied> {
        Ok(())
    }
}

fn main() {}
