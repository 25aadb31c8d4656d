//! What generated code calls so that rustc's own errors are few and name the mistake.

use std::future::{Future, Ready};
use std::marker::PhantomData;

use axum::extract::{FromRequest, FromRequestParts};

use super::call::{Call, Rejected};
use super::request::RequestState;

/// A handler's argument on its way out of the request: `Argument::<A>::NEW.part(&mut call)`.
///
/// Method resolution prefers [`TakePart`] and [`TakeLast`], which are there for extractors. For any other type it falls
/// back to [`RefusePart`] and [`RefuseLast`], whose one unmet bound is the one error that the user sees.
pub struct Argument<A>(PhantomData<fn() -> A>);

impl<A> Argument<A> {
    /// The argument's type as a value.
    pub const NEW: Self = Self(PhantomData);
}

/// Takes an argument that leaves the body alone.
pub trait TakePart<A> {
    /// The argument, or the extractor's rejection.
    fn part(self, call: &mut Call) -> impl Future<Output = Result<A, Rejected>> + Send;
}

impl<A: FromRequestParts<RequestState>> TakePart<A> for Argument<A> {
    fn part(self, call: &mut Call) -> impl Future<Output = Result<A, Rejected>> + Send {
        call.part::<A>()
    }
}

/// Takes the last argument, which may be the body; `M` is axum's marker.
pub trait TakeLast<A, M> {
    /// The argument, or the extractor's rejection.
    fn last(self, call: &mut Call) -> impl Future<Output = Result<A, Rejected>> + Send;
}

impl<A: FromRequest<RequestState, M>, M> TakeLast<A, M> for Argument<A> {
    fn last(self, call: &mut Call) -> impl Future<Output = Result<A, Rejected>> + Send {
        call.last::<A, M>()
    }
}

/// No type is one: this is the bound that an argument before the last does not meet.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a handler here",
    label = "not an extractor that leaves the body alone",
    note = "only the last argument may take the request's body (`Json<T>`, `String`, `Bytes`): move it to the end",
    note = "every other argument implements `FromRequestParts<RequestState>`, as `Path<T>`, `Query<T>`, `Context` and \
            `Auth<T>` do"
)]
pub trait PartArgument {}

/// No type is one: this is the bound that a last argument does not meet.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a handler",
    label = "not an extractor",
    note = "an argument implements `FromRequestParts<RequestState>`, or `FromRequest<RequestState>` where it is the last"
)]
pub trait LastArgument {}

/// Where [`TakePart`] is not.
pub trait RefusePart<A> {
    /// Never called: the bound is never met.
    fn part(self, call: &mut Call) -> Ready<Result<A, Rejected>>
    where
        A: PartArgument;
}

impl<A> RefusePart<A> for &Argument<A> {
    fn part(self, _: &mut Call) -> Ready<Result<A, Rejected>>
    where
        A: PartArgument,
    {
        unreachable!("no type is a `PartArgument`")
    }
}

/// Where [`TakeLast`] is not.
pub trait RefuseLast<A> {
    /// Never called: the bound is never met.
    fn last(self, call: &mut Call) -> Ready<Result<A, Rejected>>
    where
        A: LastArgument;
}

impl<A> RefuseLast<A> for &Argument<A> {
    fn last(self, _: &mut Call) -> Ready<Result<A, Rejected>>
    where
        A: LastArgument,
    {
        unreachable!("no type is a `LastArgument`")
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
