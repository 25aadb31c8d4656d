//! Listening, serving and stopping (P1.6, P5.12).
