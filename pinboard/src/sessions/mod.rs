//! What workers ask of the registry: register, heartbeat, release, deregister (P2).
