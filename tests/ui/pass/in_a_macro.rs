use pinned::{PinnedApi, pinned_api, route};

macro_rules! counter {
    ($namespace:literal, $t:ty, $path:literal, $name:ident, $idle:literal) => {
        #[pinned_api($namespace, idle_timeout = $idle)]
        impl $t {
            #[route::get($path)]
            async fn $name(&self) -> String {
                self.0.to_string()
            }

            #[route::put($path)]
            async fn write(&mut self, body: String) -> String {
                body
            }

            #[route::post("/slowly")]
            async fn slowly(this: pinned::Instance<$t>) -> String {
                this.id().to_owned()
            }
        }
    };
}

macro_rules! whole {
    ($item:item) => {
        #[pinned_api("/whole")]
        $item
    };
}

macro_rules! bodies {
    ($t:ident, $answer:ty, $body:block) => {
        #[pinned_api("/bodies")]
        impl $t {
            #[route::get("/")]
            async fn read(&self) -> $answer $body
        }
    };
}

mod named {
    #[derive(Default)]
    pub struct Counter(pub u64);
}

#[derive(Default)]
struct Whole;

#[derive(Default)]
struct Bodies;

counter!("/counters", named::Counter, "/", read, "5m");
whole! {
    impl Whole {
        #[route::get("/")]
        async fn read(&self) {}
    }
}
bodies!(Bodies, String, { "body".to_owned() });

fn main() {
    assert_eq!(named::Counter::routes().count(), 3);
    assert_eq!(Whole::routes().count(), 1);
    assert_eq!(Bodies::routes().count(), 1);
}
