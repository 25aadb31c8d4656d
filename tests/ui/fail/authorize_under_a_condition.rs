use pinned::{Connection, Context, Denied, pinned_api};

#[derive(Default)]
struct Counter;

#[pinned_api("/counters")]
impl Counter {
    #[cfg(not(windows))]
    #[authorize]
    async fn authorize(_ctx: &Context, _conn: &Connection) -> Result<(), Denied> {
        Ok(())
    }
}

fn main() {}
