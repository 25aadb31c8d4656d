use pinned::{PinnedApi, pinned_api, route};

#[derive(Default)]
pub struct Counter {
    count: u64,
}

#[pinned_api("/counters")]
impl Counter {
    pub const STEP: u64 = 2;

    pub fn new(count: u64) -> Self {
        Self { count }
    }

    #[route::post("/step")]
    pub async fn step(&mut self) -> String {
        self.add(Self::STEP).to_string()
    }

    fn add<T: Into<u64>>(&mut self, more: T) -> u64 {
        self.count += more.into();
        self.count
    }

    pub const unsafe extern "C" fn odd() {}
}

impl Counter {
    pub fn count(&self) -> u64 {
        self.count
    }
}

fn main() {
    assert_eq!(Counter::new(3).count(), 3);
    assert_eq!(Counter::routes().count(), 1);
}
