use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use pinned::{Json, pinned_api, route};

#[derive(Default)]
struct Counter {
    name: String,
}

struct Problem;

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        StatusCode::IM_A_TEAPOT.into_response()
    }
}

#[pinned_api("/counters")]
impl Counter {
    #[route::get("/nothing")]
    async fn nothing(&self) {}

    #[route::get("/unit")]
    async fn unit(&self) -> () {}

    #[route::get("/impl")]
    async fn opaque(&self) -> impl IntoResponse {
        self.name.len().to_string()
    }

    #[route::get("/impl-inside")]
    async fn opaque_inside(&mut self) -> Result<impl IntoResponse, Problem> {
        Ok(self.name.clone())
    }

    #[route::get("/result")]
    async fn result(&self) -> Result<Json<usize>, Problem> {
        Err(Problem)
    }

    #[route::get("/tuple")]
    async fn tuple(&self) -> (StatusCode, [(&'static str, &'static str); 1], String) {
        (StatusCode::OK, [("x-a", "b")], String::new())
    }

    #[route::get("/borrowing")]
    async fn borrowing(&self) -> Json<&String> {
        Json(&self.name)
    }

    #[route::get("/borrowing-in-tuple")]
    async fn borrowing_more(&mut self) -> (StatusCode, Json<Vec<&str>>) {
        (StatusCode::OK, Json(vec![&self.name]))
    }

    #[route::get("/response")]
    async fn response(&self) -> Response {
        Problem.into_response()
    }
}

fn main() {}
