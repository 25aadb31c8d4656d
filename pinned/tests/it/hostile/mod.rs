//! Input and timing that nobody well-meaning would send: nothing may be torn, leaked or wedged by it.

mod clients;
mod clocks;
mod panics;
mod phases;
mod requests;
mod threads;
