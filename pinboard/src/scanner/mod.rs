//! Finds durable work that nobody holds, and wakes it (P8).
