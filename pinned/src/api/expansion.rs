//! What generated code calls so that rustc's own errors are few and name the mistake.

use std::future::Future;

use axum::extract::{FromRequest, FromRequestParts};

use super::call::{Call, Rejected, RequestState};

/// An argument of a handler before the last.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a handler here",
    label = "not an extractor that leaves the body alone",
    note = "only the last argument may take the request's body (`Json<T>`, `String`, `Bytes`): move it to the end",
    note = "every other argument implements `FromRequestParts<RequestState>`, as `Path<T>`, `Query<T>`, `Context` and `Auth<T>` do"
)]
pub trait PartArgument: Sized {
    /// Takes the argument from the request.
    fn take(call: &mut Call) -> impl Future<Output = Result<Self, Rejected>> + Send;
}

#[diagnostic::do_not_recommend]
impl<A: FromRequestParts<RequestState>> PartArgument for A {
    fn take(call: &mut Call) -> impl Future<Output = Result<Self, Rejected>> + Send {
        call.part::<A>()
    }
}

/// The last argument of a handler, which may take the body; `M` is axum's marker.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a handler",
    label = "not an extractor",
    note = "arguments implement `FromRequestParts<RequestState>` or, the last one, `FromRequest<RequestState>`"
)]
pub trait LastArgument<M>: Sized {
    /// Takes the argument from the request.
    fn take(call: &mut Call) -> impl Future<Output = Result<Self, Rejected>> + Send;
}

#[diagnostic::do_not_recommend]
impl<M, A: FromRequest<RequestState, M>> LastArgument<M> for A {
    fn take(call: &mut Call) -> impl Future<Output = Result<Self, Rejected>> + Send {
        call.last::<A, M>()
    }
}

/// `C` itself: the `T` of an `Auth<T>` on a route whose authorizer returns `C`.
#[diagnostic::on_unimplemented(
    message = "this route's authorizer returns `{C}`, not `{Self}`",
    label = "not the caller that the authorizer returns",
    note = "write `Auth<{C}>`, or name another authorizer in the route: `auth = Self::other`"
)]
pub trait CallerOf<C> {}

impl<C> CallerOf<C> for C {}

/// Checks an `Auth<T>` against the route's authorizer.
pub const fn same_caller<T: CallerOf<C>, C>() {}

/// A handler's future, where one that is not `Send` is underlined at the handler's name. What comes back is `Send` by
/// its signature, so the mistake is reported once.
pub fn sendable<F: Future + Send>(future: F) -> impl Future<Output = F::Output> + Send {
    future
}
