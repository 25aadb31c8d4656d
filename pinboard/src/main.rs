//! The program `pinboard`.
fn main() {}
