use std::marker::PhantomData;

use axum::Extension;
use pinned::{Instance, PinnedApi, pinned_api, route};

trait Store: Clone + Default + Send + Sync + 'static {
    fn get(&self) -> String;
}

#[derive(Clone, Default)]
struct Memory;

impl Store for Memory {
    fn get(&self) -> String {
        "memory".to_owned()
    }
}

#[derive(Default)]
struct Chat<S, const LIMIT: usize>
where
    S: Store,
{
    store: S,
    of: PhantomData<S>,
}

#[pinned_api]
impl<S, const LIMIT: usize> Chat<S, LIMIT>
where
    S: Store,
{
    #[route::get("/")]
    async fn read(&self) -> String {
        self.store.get()
    }

    #[route::post("/")]
    async fn write(this: Instance<Self>) -> String {
        this.id().to_owned()
    }

    #[route::put("/")]
    async fn put(&mut self, first: Extension<S>, last: Extension<S>) -> String {
        first.get() + &last.get()
    }

    #[route::delete("/")]
    async fn clear(this: Instance<Chat<S, LIMIT>>) -> String {
        this.id().to_owned()
    }
}

fn main() {
    assert_eq!(<Chat<Memory, 3> as PinnedApi>::NAMESPACE, None);
    assert_eq!(Chat::<Memory, 3>::routes().count(), 4);
}
