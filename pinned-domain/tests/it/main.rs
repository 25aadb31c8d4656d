//! The domain, real and custom: every test of behaviour runs against both.

mod clock;
mod event;
mod randomness;
mod task;
mod worlds;
