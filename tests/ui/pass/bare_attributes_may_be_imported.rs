#![deny(unused)]

use pinned::{Connection, Context, Denied, authorize, pinned_api, stats};

#[derive(Default)]
pub struct Counter;

#[pinned_api("/counters")]
impl Counter {
    #[authorize]
    async fn check(_: &Context, _: &Connection) -> Result<(), Denied> {
        Ok(())
    }

    #[stats]
    fn row(&self) -> u64 {
        1
    }
}

mod without_imports {
    use pinned::{Connection, Context, Denied, pinned_api};

    #[derive(Default)]
    pub struct Counter;

    #[pinned_api("/others")]
    impl Counter {
        #[authorize]
        async fn check(_: &Context, _: &Connection) -> Result<(), Denied> {
            Ok(())
        }

        #[stats]
        fn row(&self) -> u64 {
            1
        }
    }
}

mod with_a_glob {
    use pinned::*;

    #[derive(Default)]
    pub struct Counter;

    #[pinned_api("/more")]
    impl Counter {
        #[authorize]
        async fn check(_: &Context, _: &Connection) -> Result<(), Denied> {
            Ok(())
        }
    }
}

fn main() {
    let _ = (Counter, without_imports::Counter, with_a_glob::Counter);
}
