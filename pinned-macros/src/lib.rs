//! The attribute macros of [`pinned`](https://docs.rs/pinned).
//!
//! Depend on `pinned`, which re-exports every macro of this crate together with the traits and types
//! that the generated code names; `#[route_get]` and its siblings are the module `pinned::route` there,
//! the lifespan macros are `pinned::lifespan`. The long documentation stands there too.
//!
//! The way through the crate is `parse` (syntax as written) -> `validate` (the rules; they lower syntax
//! into `model`) -> `codegen` (which cannot fail, because the model cannot hold a mistake).

mod codegen;
mod durations;
mod errors;
mod expand;
mod krate;
mod model;
mod parse;
mod validate;

use proc_macro::TokenStream;

/// Makes a plain struct a pinned type: one live instance of it per id.
///
/// Stands on one inherent impl block: `#[pinned_api("/namespace", option = value)]`, or
/// `#[pinned_api]` for a struct that is mounted by hand.
#[proc_macro_attribute]
pub fn pinned_api(args: TokenStream, item: TokenStream) -> TokenStream {
    expand::pinned_api(args.into(), item.into()).into()
}

/// Lets the methods of a tray's struct be called on the tray's handle, as durable admissions.
///
/// Stands on one inherent impl block: `#[inbox]`, `#[inbox(trait = Name)]`.
#[proc_macro_attribute]
pub fn inbox(args: TokenStream, item: TokenStream) -> TokenStream {
    expand::inbox(args.into(), item.into()).into()
}

/// Makes a struct of durable fields a tray.
#[proc_macro_derive(Tray, attributes(tray))]
pub fn derive_tray(item: TokenStream) -> TokenStream {
    expand::tray(item.into()).into()
}

/// Keeps fields of a hosted struct in the store.
#[proc_macro_derive(Durable, attributes(durable))]
pub fn derive_durable(item: TokenStream) -> TokenStream {
    expand::durable(item.into()).into()
}

/// The attributes that [`macro@pinned_api`] consumes; expanded on their own they can only be misplaced.
macro_rules! consumed_by_pinned_api {
    ($($(#[$doc:meta])* $name:ident => $written:literal,)*) => {$(
        $(#[$doc])*
        #[proc_macro_attribute]
        pub fn $name(_args: TokenStream, item: TokenStream) -> TokenStream {
            expand::misplaced($written, item.into()).into()
        }
    )*};
}

consumed_by_pinned_api! {
    /// Answers `GET` (and `HEAD`) on a path: `#[route::get("/path")]`.
    route_get => "route::get",
    /// Answers `POST` on a path: `#[route::post("/path")]`.
    route_post => "route::post",
    /// Answers `PUT` on a path: `#[route::put("/path")]`.
    route_put => "route::put",
    /// Answers `DELETE` on a path: `#[route::delete("/path")]`.
    route_delete => "route::delete",
    /// Answers `PATCH` on a path: `#[route::patch("/path")]`.
    route_patch => "route::patch",
    /// Answers a WebSocket handshake on a path: `#[route::websocket("/path")]`.
    route_websocket => "route::websocket",
    /// Builds an instance: `async fn(ctx: Context) -> Self` or `-> Result<Self, E>`.
    lifespan_setup => "lifespan::setup",
    /// Ends an instance: `async fn(&mut self)`.
    lifespan_teardown => "lifespan::teardown",
    /// Gates every route: `async fn(ctx: &Context, conn: &Connection) -> Result<Caller, Denied>`.
    authorize => "authorize",
    /// Feeds the stats row of an instance: `fn(&self) -> impl Serialize`.
    stats => "stats",
    /// Works through the items of a tray: `async fn(this: Instance<Self>, item: Item, dispatch: Dispatch<Work>)`.
    tray => "tray",
}
