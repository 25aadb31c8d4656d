use pinned::{Connection, Context, Denied, PinnedApi, pinned_api, route};

#[derive(Default)]
struct Counter;

#[pinned_api("/counters")]
impl Counter {
    #[route::get("/type")]
    async fn r#type(&self) {}

    #[route::get("/match", auth = Self::r#if)]
    async fn r#match(&mut self, r#in: String) -> String {
        r#in
    }

    #[r#route::r#get("/async")]
    async fn r#async(&self) {}

    async fn r#if(_: &Context, _: &Connection) -> Result<(), Denied> {
        Ok(())
    }
}

fn main() {
    let names: Vec<_> = Counter::routes().map(|route| route.handler()).collect();
    assert_eq!(names, ["type", "match", "async"]);
    let guarded = Counter::routes().nth(1).unwrap();
    assert_eq!(format!("{:?}", guarded.auth()), "Named(\"if\")");
}
