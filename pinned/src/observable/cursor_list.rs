//! Writes at a cursor that concern lists.

use serde_json::Value;

use super::cursor::{Cursor, Result};
use super::cursor_write::take_out;
use super::error::ObservableError;
use super::mount::{Draft, Landing};
use super::op::OpKind;
use super::path::{Segment, joined};
use super::session::{OpValue, Session, Site};
use super::tree::Tree;
use super::value::LIST;

/// # Writes of lists
///
/// What is said under [Writes](#writes) holds here too.
impl Cursor {
    /// Appends `item` to the list that is here.
    ///
    /// Emits `add`.
    ///
    /// # Errors
    ///
    /// See [Writes](#writes).
    ///
    /// ```
    /// let todos = pinned::Observable::new(serde_json::json!([]))?;
    /// todos.cursor().push("water the plants")?;
    /// assert_eq!(todos.cursor().len()?, 1);
    /// # Ok::<(), pinned::observable::ObservableError>(())
    /// ```
    pub fn push(&self, item: impl Into<Tree>) -> Result<()> {
        self.insert(usize::MAX, item)
    }

    /// Inserts `item` before position `index` of the list that is here; any `index` beyond the end means the end.
    ///
    /// Emits `add`.
    ///
    /// # Errors
    ///
    /// See [Writes](#writes).
    ///
    /// ```
    /// use serde_json::json;
    ///
    /// let todos = pinned::Observable::new(json!(["b"]))?;
    /// todos.cursor().insert(0, "a")?;
    /// todos.cursor().insert(100, "c")?;
    /// assert_eq!(todos.snapshot(), json!(["a", "b", "c"]));
    /// # Ok::<(), pinned::observable::ObservableError>(())
    /// ```
    pub fn insert(&self, index: usize, item: impl Into<Tree>) -> Result<()> {
        let mut draft = self.draft(item.into())?;
        self.write(&self.path, |session, site| {
            let index = index.min(list_len(session, &site)?);
            session.admit(&site, &[landing(&site, index, &draft)])?;
            session.insert_item(&site, index, &mut draft)?;
            let at = joined(&site.path, index);
            session.emit(&site, OpKind::Add, at.clone(), OpValue::At(&at));
            Ok(())
        })
    }

    /// Appends all `items` to the list that is here.
    ///
    /// Emits one `replace` of the list, also for no items.
    ///
    /// # Errors
    ///
    /// See [Writes](#writes).
    ///
    /// ```
    /// use serde_json::json;
    ///
    /// let todos = pinned::Observable::new(json!(["a"]))?;
    /// todos.cursor().extend(["b", "c"])?;
    /// assert_eq!(todos.snapshot(), json!(["a", "b", "c"]));
    /// # Ok::<(), pinned::observable::ObservableError>(())
    /// ```
    pub fn extend<I>(&self, items: I) -> Result<()>
    where
        I: IntoIterator,
        I::Item: Into<Tree>,
    {
        let items = items.into_iter().map(|item| self.draft(item.into()));
        let mut drafts = items.collect::<Result<Vec<_>>>()?;
        self.write(&self.path, |session, site| {
            let len = list_len(session, &site)?;
            let landings: Vec<_> = drafts
                .iter()
                .enumerate()
                .map(|(offset, draft)| landing(&site, len + offset, draft))
                .collect();
            session.admit(&site, &landings)?;
            for (offset, draft) in drafts.iter_mut().enumerate() {
                session.insert_item(&site, len + offset, draft)?;
            }
            session.emit(
                &site,
                OpKind::Replace,
                site.path.clone(),
                OpValue::At(&site.path),
            );
            Ok(())
        })
    }

    /// Takes out the last element of the list that is here and returns it as a plain value.
    ///
    /// Emits `remove`.
    ///
    /// # Errors
    ///
    /// See [Writes](#writes); [`ObservableError::OutOfRange`] when the list is empty.
    ///
    /// ```
    /// let todos = pinned::Observable::new(serde_json::json!(["a", "b"]))?;
    /// assert_eq!(todos.cursor().pop()?, "b");
    /// # Ok::<(), pinned::observable::ObservableError>(())
    /// ```
    pub fn pop(&self) -> Result<Value> {
        self.write(&self.path, |session, site| {
            let len = list_len(session, &site)?;
            let empty = || ObservableError::OutOfRange {
                path: joined(&site.shown, 0),
                len,
            };
            let last = len.checked_sub(1).ok_or_else(empty)?;
            take_out(session, &site, Segment::Index(last))?.ok_or_else(empty)
        })
    }

    /// Takes out the first element equal to `item` (see [`Cursor::contains`]) of the list that is here, and returns where
    /// it was.
    ///
    /// Emits `remove`.
    ///
    /// # Errors
    ///
    /// See [Writes](#writes); [`ObservableError::NotFound`] when there is no such element.
    ///
    /// ```
    /// let todos = pinned::Observable::new(serde_json::json!(["a", "b"]))?;
    /// assert_eq!(todos.cursor().remove_value("b")?, 1);
    /// assert!(todos.cursor().remove_value("b").is_err());
    /// # Ok::<(), pinned::observable::ObservableError>(())
    /// ```
    pub fn remove_value(&self, item: impl Into<Tree>) -> Result<usize> {
        let item = item.into().into_value()?;
        self.write(&self.path, |session, site| {
            let index = session.look(&site, |found, held| {
                let absent = || ObservableError::NotFound {
                    path: site.shown.clone(),
                };
                found.position(&item, held, &site.shown)?.ok_or_else(absent)
            })?;
            take_out(session, &site, Segment::Index(index))?;
            Ok(index)
        })
    }
}

fn landing<'a>(site: &Site, index: usize, draft: &'a Draft) -> Landing<'a> {
    Landing {
        draft,
        shown: joined(&site.shown, index),
        freed: None,
    }
}

fn list_len(session: &Session<'_>, site: &Site) -> Result<usize> {
    session.expect(site, &[LIST], LIST)?;
    session.look(site, |found, _| Ok(found.len().unwrap_or(0)))
}
