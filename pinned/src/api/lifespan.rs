//! Setup and teardown outcomes.

use std::error::Error;
use std::fmt;

use axum::response::Response;
use http::StatusCode;

use super::definition::PinnedApi;
use super::refusal::detail_response;
use crate::error::BoxError;

/// Why an instance could not be set up.
///
/// Every caller that waits for the activation gets the same answer (H4.6). An error is answered with a
/// bare 500 and logged whole; [`SetupError::http`] reaches the callers as it is (H4.7). `?` converts any
/// error type:
///
/// ```
/// use pinned::{Context, SetupError, pinned_api, lifespan};
///
/// struct Document { text: String }
///
/// #[pinned_api("/docs")]
/// impl Document {
///     #[lifespan::setup]
///     async fn setup(ctx: Context) -> Result<Self, SetupError> {
///         if ctx.id().starts_with("old-") {
///             return Err(SetupError::http(410, "moved to the archive"));
///         }
///         let text = std::str::from_utf8(b"hello")?.to_owned();
///         Ok(Self { text })
///     }
/// }
/// ```
pub struct SetupError(Cause);

enum Cause {
    Fault(BoxError),
    Http { status: StatusCode, detail: String },
}

impl SetupError {
    /// A fault: callers see 500, the log sees the error.
    pub fn new(error: impl Into<BoxError>) -> Self {
        Self(Cause::Fault(error.into()))
    }

    /// A deliberate HTTP answer: `{"detail": <detail>}` with `status`.
    ///
    /// A number that is no HTTP error status (400 to 599) counts as a fault that says so.
    pub fn http<S>(status: S, detail: impl Into<String>) -> Self
    where
        S: TryInto<StatusCode>,
    {
        let detail = detail.into();
        match status.try_into() {
            Ok(status) if status.is_client_error() || status.is_server_error() => {
                Self(Cause::Http { status, detail })
            }
            _ => Self::new(format!(
                "SetupError::http takes a status from 400 to 599; the detail was: {detail}"
            )),
        }
    }

    /// The status and detail of a deliberate answer.
    pub(crate) fn as_http(&self) -> Option<(StatusCode, &str)> {
        match &self.0 {
            Cause::Http { status, detail } => Some((*status, detail)),
            Cause::Fault(_) => None,
        }
    }

    /// What a caller over HTTP sees.
    pub(crate) fn to_response(&self) -> Response {
        match self.as_http() {
            Some((status, detail)) => detail_response(status, detail),
            None => super::refusal::internal_error(),
        }
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for SetupError {
    fn from(error: E) -> Self {
        Self::new(error)
    }
}

impl fmt::Debug for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Cause::Fault(error) => f.debug_tuple("SetupError").field(error).finish(),
            Cause::Http { status, detail } => f
                .debug_struct("SetupError")
                .field("status", status)
                .field("detail", detail)
                .finish(),
        }
    }
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Cause::Fault(error) => error.fmt(f),
            Cause::Http { status, detail } => write!(f, "{status}: {detail}"),
        }
    }
}

/// What may stand in the `Err` of a setup.
#[diagnostic::on_unimplemented(
    message = "a setup cannot fail with `{Self}`",
    label = "not an error type",
    note = "use `SetupError`, or any type that converts into `Box<dyn Error + Send + Sync>`"
)]
pub trait IntoSetupError {
    /// The conversion.
    fn into_setup_error(self) -> SetupError;
}

impl IntoSetupError for SetupError {
    fn into_setup_error(self) -> SetupError {
        self
    }
}

impl<E: Into<BoxError>> IntoSetupError for E {
    fn into_setup_error(self) -> SetupError {
        SetupError::new(self)
    }
}

/// What a `#[lifespan::setup]` function may return: the instance, or a result of it.
#[diagnostic::on_unimplemented(
    message = "a setup returns `Self` or `Result<Self, E>`, not `{Self}`",
    label = "not an instance of the annotated struct"
)]
pub trait SetupReturn<T> {
    #[doc(hidden)]
    fn into_setup(self) -> Result<T, SetupError>;
}

impl<T: PinnedApi> SetupReturn<T> for T {
    fn into_setup(self) -> Result<T, SetupError> {
        Ok(self)
    }
}

impl<T: PinnedApi, E: IntoSetupError> SetupReturn<T> for Result<T, E> {
    fn into_setup(self) -> Result<T, SetupError> {
        self.map_err(IntoSetupError::into_setup_error)
    }
}

/// What a `#[lifespan::teardown]` function may return: nothing, or a result.
#[diagnostic::on_unimplemented(
    message = "a teardown returns nothing or `Result<(), E>`, not `{Self}`",
    label = "unsupported return type"
)]
pub trait TeardownReturn {
    #[doc(hidden)]
    fn into_teardown(self) -> Result<(), BoxError>;
}

impl TeardownReturn for () {
    fn into_teardown(self) -> Result<(), BoxError> {
        Ok(())
    }
}

impl<E: Into<BoxError>> TeardownReturn for Result<(), E> {
    fn into_teardown(self) -> Result<(), BoxError> {
        self.map_err(Into::into)
    }
}

/// A struct whose instances need no setup: every one that is `Default`.
#[diagnostic::on_unimplemented(
    message = "nothing says how an instance of `{Self}` is made",
    label = "neither `Default` nor a setup",
    note = "derive or implement `Default` for `{Self}`, or write `#[lifespan::setup] async fn setup(ctx: Context) -> Self` \
            in the block"
)]
#[doc(hidden)]
pub trait SetupByDefault {
    fn by_default() -> Self;
}

#[diagnostic::do_not_recommend]
impl<T: Default> SetupByDefault for T {
    fn by_default() -> Self {
        T::default()
    }
}
