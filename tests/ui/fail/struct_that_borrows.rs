use pinned::pinned_api;

#[derive(Default)]
struct Chat<'a>(&'a str);

#[pinned_api]
impl<'a> Chat<'a> {
    async fn helper(&self) {}
}

fn main() {}
