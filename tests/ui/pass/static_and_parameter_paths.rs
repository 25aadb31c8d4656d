use axum::extract::Path;
use pinned::{pinned_api, route};

#[derive(Default)]
struct Files;

#[pinned_api("/files")]
impl Files {
    #[route::get("/items/{item}")]
    async fn item(&self, Path(item): Path<String>) -> String {
        item
    }

    #[route::put("/items/{item}")]
    async fn put(&mut self, Path(_item): Path<String>, _body: String) {}

    #[route::get("/items/latest")]
    async fn latest(&self) {}

    #[route::get("/tree/{*rest}")]
    async fn tree(&self, Path(rest): Path<String>) -> String {
        rest
    }

    #[route::get("/v{version}/{{literal}}")]
    async fn braces(&self, Path(version): Path<u32>) -> String {
        version.to_string()
    }
}

fn main() {}
