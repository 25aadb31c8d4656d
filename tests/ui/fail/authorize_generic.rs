use pinned::{Connection, Context, Denied, pinned_api};

#[derive(Default)]
struct Counter;

#[pinned_api("/counters")]
impl Counter {
    #[authorize]
    async fn authorize<C: Default>(_ctx: &Context, _conn: &Connection) -> Result<C, Denied> {
        Ok(C::default())
    }
}

fn main() {}
