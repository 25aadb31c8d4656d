use pinned::pinned_api;

#[derive(Default)]
struct Chat<T>(T);

#[pinned_api("/chats")]
impl<T: Default + Send + Sync + 'static> Chat<T> {
    async fn helper(&self) {}
}

fn main() {}
