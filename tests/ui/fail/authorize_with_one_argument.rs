use pinned::{Connection, Denied, pinned_api};

#[derive(Default)]
struct Counter;

#[pinned_api("/counters")]
impl Counter {
    #[authorize]
    async fn authorize(_conn: &Connection) -> Result<(), Denied> {
        Ok(())
    }
}

fn main() {}
