//! Tests of `store`.

<<<<<<< HEAD
<<<<<<< HEAD
=======
mod memory;
>>>>>>> redisstore
mod redis;
=======
mod memory;
mod sabotage;
>>>>>>> memstore
