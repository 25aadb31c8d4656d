use super::path::{Segment, Shown};

/// What is wrong with a number that JSON receivers could not read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodingError {
    /// NaN or an infinity: JSON has no way to write them.
    #[error("NaN and infinities have no JSON form")]
    NotFinite,
    /// An integer beyond ±(2^53 − 1), which receivers that read numbers as doubles would round.
    #[error("the integer is beyond ±(2^53 - 1); send it as a string")]
    IntegerTooLarge,
}

/// Why an observable refused a read or a write. A refused write changed nothing and emitted nothing.
///
/// `path` is where, seen from the observable that the cursor was made from. For a value that was offered it goes on from the
/// cursor's place into that value.
///
/// ```
/// use pinned::Observable;
/// use pinned::observable::ObservableError;
/// use serde_json::json;
///
/// let page = Observable::new(json!({ "title": "Plans" }))?;
/// let error = page.at("title").push(1).unwrap_err();
/// assert!(matches!(error, ObservableError::Type { expected: "a list", .. }));
/// assert_eq!(error.to_string(), "$.title: expected a list, found a string");
/// # Ok::<(), ObservableError>(())
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ObservableError {
    /// A number that cannot be sent: fix the value.
    #[error("{}: {reason}", Shown(path))]
    Encoding {
        /// Where in the value.
        path: Vec<Segment>,
        /// What is wrong with it.
        reason: EncodingError,
    },
    /// Something else stands there than the call needs, or the value is of a type that trees do not hold.
    #[error("{}: expected {expected}, found {found}", Shown(path))]
    Type {
        /// Where.
        path: Vec<Segment>,
        /// What the call needs.
        expected: &'static str,
        /// What is there.
        found: &'static str,
    },
    /// No such key, or no element equal to the one that was looked for.
    #[error("{}: not found", Shown(path))]
    NotFound {
        /// The path with the missing key, or the path of the list that was searched.
        path: Vec<Segment>,
    },
    /// A position at or beyond the end of a list. Assignment never extends a list.
    #[error("{}: out of range, the length is {len}", Shown(path))]
    OutOfRange {
        /// The path with the refused position.
        path: Vec<Segment>,
        /// The length of the list.
        len: usize,
    },
    /// The write was addressed through an [`ObservableView`](super::ObservableView), directly or where one is mounted.
    #[error("{}: read-only here; write through its owner", Shown(path))]
    ReadOnly {
        /// Where the view is.
        path: Vec<Segment>,
    },
    /// An observable is the whole value of another; it must sit inside a list or an object.
    #[error(
        "{}: an observable cannot be the whole value of another; put it in a list or an object",
        Shown(path)
    )]
    Wrapped {
        /// Where: the root of the observable that was assigned.
        path: Vec<Segment>,
    },
    /// The offered observable is mounted elsewhere, and this write does not free it.
    #[error(
        "{}: the observable is mounted already; remove it from its parent first",
        Shown(path)
    )]
    Mounted {
        /// Where it would have been mounted.
        path: Vec<Segment>,
    },
    /// One write offers the same observable twice.
    #[error("{}: the same observable twice in one write", Shown(path))]
    Repeated {
        /// Where it would have been mounted the second time.
        path: Vec<Segment>,
    },
    /// The offered observable is this one, or one of those it is mounted in.
    #[error("{}: an observable cannot be mounted inside itself", Shown(path))]
    Cycle {
        /// Where it would have been mounted.
        path: Vec<Segment>,
    },
    /// A `Serialize` implementation refused.
    #[error("{}: cannot be serialised: {message}", Shown(path))]
    Serialize {
        /// Where in the value.
        path: Vec<Segment>,
        /// What the implementation said.
        message: String,
    },
    /// The value at the path is not of the type that was asked for.
    #[error("{}: cannot be read as the type asked for: {source}", Shown(path))]
    Deserialize {
        /// Where.
        path: Vec<Segment>,
        /// What did not fit.
        source: serde_json::Error,
    },
}

impl ObservableError {
    /// Where the call was refused.
    ///
    /// ```
    /// use pinned::Observable;
    /// use serde_json::json;
    ///
    /// let page = Observable::new(json!({ "todos": [] }))?;
    /// let error = page.at("todos").at(2).get().unwrap_err();
    /// assert_eq!(error.path(), ["todos".into(), 2.into()]);
    /// # Ok::<(), pinned::observable::ObservableError>(())
    /// ```
    pub fn path(&self) -> &[Segment] {
        match self {
            Self::Encoding { path, .. }
            | Self::Type { path, .. }
            | Self::NotFound { path }
            | Self::OutOfRange { path, .. }
            | Self::ReadOnly { path }
            | Self::Wrapped { path }
            | Self::Mounted { path }
            | Self::Repeated { path }
            | Self::Cycle { path }
            | Self::Serialize { path, .. }
            | Self::Deserialize { path, .. } => path,
        }
    }

    /// The same error, seen from `outer` levels further out.
    pub(super) fn within(mut self, outer: &[Segment]) -> Self {
        let path = match &mut self {
            Self::Encoding { path, .. }
            | Self::Type { path, .. }
            | Self::NotFound { path }
            | Self::OutOfRange { path, .. }
            | Self::ReadOnly { path }
            | Self::Wrapped { path }
            | Self::Mounted { path }
            | Self::Repeated { path }
            | Self::Cycle { path }
            | Self::Serialize { path, .. }
            | Self::Deserialize { path, .. } => path,
        };
        path.splice(0..0, outer.iter().cloned());
        self
    }
}
