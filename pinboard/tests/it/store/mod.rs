//! Tests of `store`.

<<<<<<< HEAD
mod redis;
=======
mod memory;
mod sabotage;
>>>>>>> memstore
