//! The hand-written hyper server on port 8000, or the port given, to try by hand.

fn main() -> bench::Result<()> {
    let port = std::env::args()
        .nth(1)
        .map_or(Ok(8000), |port| port.parse())?;
    bench::server::Role::Hyper.serve(port, None)
}
