//! Tests of cluster.
