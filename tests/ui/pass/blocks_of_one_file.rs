use pinned::{PinnedApi, pinned_api, route};

#[derive(Default)]
struct One;

#[derive(Default)]
enum Two {
    #[default]
    Only,
}

#[pinned_api("/one")]
impl One {
    #[route::get("/")]
    async fn read(&self) {}
}

#[pinned_api("/two")]
impl Two {
    #[route::get("/")]
    async fn read(&self) {}
}

fn main() {
    let _ = Two::Only;
    assert_eq!(
        (One::NAMESPACE, Two::NAMESPACE),
        (Some("/one"), Some("/two"))
    );
}
