//! Tests of `passport`.

mod backend_host;
mod credentials;
mod document;
mod grants;
mod issuer;
mod jwt;
mod namespaces;
mod remote;
mod static_token;
mod support;
