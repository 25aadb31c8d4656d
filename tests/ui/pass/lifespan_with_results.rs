use pinned::{Context, SetupError, lifespan, pinned_api};

struct Document {
    text: String,
}

#[pinned_api("/documents")]
impl Document {
    #[lifespan::setup]
    async fn begin(ctx: Context) -> Result<Self, SetupError> {
        if ctx.id().starts_with("old-") {
            return Err(SetupError::http(410, "archived"));
        }
        let text = String::from_utf8(b"text".to_vec())?;
        Ok(Self { text })
    }

    #[lifespan::teardown]
    async fn end(&mut self) -> Result<(), std::io::Error> {
        self.text.clear();
        Ok(())
    }
}

struct Number(u64);

#[pinned_api("/numbers")]
impl Number {
    #[lifespan::setup]
    async fn setup(ctx: Context) -> Result<Number, std::num::ParseIntError> {
        ctx.id().parse().map(Self)
    }

    #[stats]
    fn value(&self) -> u64 {
        self.0
    }
}

fn main() {}
