//! Writes at a cursor that concern any value, objects and text. Those of lists are in `cursor_list`.

use serde_json::Value;

use super::content::Found;
use super::cursor::{Cursor, Result};
use super::error::ObservableError;
use super::mount::{Draft, Landing};
use super::op::OpKind;
use super::path::{Segment, joined};
use super::session::{OpValue, Session, Site, write};
use super::tree::Tree;
use super::value::{LIST, OBJECT};

/// # Writes
///
/// Every write checks all it was given and everything it needs before it changes anything: when it returns an error,
/// nothing has changed and no op was emitted. Every write that succeeds emits one op, or none where it says so, and returns
/// when all subscribers have had it. A write that leads into a mounted observable is made by that observable.
///
/// All of them fail with [`ObservableError::ReadOnly`] at a cursor of a view and where the path leads through a mounted view,
/// with [`ObservableError::NotFound`] or [`ObservableError::OutOfRange`] where the path leads nowhere, with
/// [`ObservableError::Encoding`] and [`ObservableError::Type`] when a value cannot stand in a tree or the call does not fit
/// what is here, and with [`ObservableError::Mounted`], [`ObservableError::Repeated`] or [`ObservableError::Cycle`] when an
/// observable in a value cannot be mounted.
///
/// # Panics
///
/// A write goes on with the panic of a subscriber, after the others have had the op. The change stands.
impl Cursor {
    /// Puts `value` here: over what is here (which is unmounted if it is an observable), or as a new key of an object.
    ///
    /// Emits `replace`; nothing when the same string is here already.
    ///
    /// # Errors
    ///
    /// See [Writes](#writes). A position must exist: assignment never extends a list. The whole value of an observable
    /// cannot be another observable ([`ObservableError::Wrapped`]).
    ///
    /// ```
    /// use serde_json::json;
    ///
    /// let page = pinned::Observable::new(json!({ "todos": [1, 2] }))?;
    /// page.at("title").set("Plans")?;
    /// page.at("todos").at(1).set(json!({ "done": false }))?;
    /// assert_eq!(page.snapshot(), json!({ "title": "Plans", "todos": [1, { "done": false }] }));
    /// assert!(page.at("todos").at(2).set(3).is_err());
    /// # Ok::<(), pinned::observable::ObservableError>(())
    /// ```
    pub fn set(&self, value: impl Into<Tree>) -> Result<()> {
        let Some((last, outer)) = self.path.split_last() else {
            return self.set_whole(value.into());
        };
        let mut draft = self.draft(value.into())?;
        self.write(outer, |session, site| {
            let unchanged = session.look(&site, |found, _| {
                let old = existing(found, last, &site.shown)?.and_then(Found::plain);
                Ok(old.is_some_and(Value::is_string) && draft.content().plain() == old)
            })?;
            if unchanged {
                return Ok(());
            }
            let at = joined(&site.path, last.clone());
            session.admit(
                &site,
                &[Landing {
                    draft: &draft,
                    shown: self.path.clone(),
                    freed: Some(at.clone()),
                }],
            )?;
            match last {
                Segment::Key(key) => session.set_entry(&site, key, &mut draft)?,
                Segment::Index(index) => session.set_item(&site, *index, &mut draft)?,
            }
            session.emit(&site, OpKind::Replace, at.clone(), OpValue::At(&at));
            Ok(())
        })
    }

    fn set_whole(&self, value: Tree) -> Result<()> {
        self.writable()?;
        let mut draft = Draft::whole(value)?;
        draft.unite(&self.node);
        self.write(&[], |session, site| {
            session.admit(
                &site,
                &[Landing {
                    draft: &draft,
                    shown: Vec::new(),
                    freed: Some(Vec::new()),
                }],
            )?;
            session.replace_whole(&site, &mut draft);
            session.emit(&site, OpKind::Replace, Vec::new(), OpValue::At(&[]));
            Ok(())
        })
    }

    /// Puts all `entries`, an object, into the object that is here; keys that are not in `entries` stay.
    ///
    /// Emits one `replace` of the object, also when `entries` is empty.
    ///
    /// # Errors
    ///
    /// See [Writes](#writes). An observable may stay under its key, but not move from one key to another in one merge.
    ///
    /// ```
    /// use serde_json::json;
    ///
    /// let page = pinned::Observable::new(json!({ "title": "Plans", "draft": true }))?;
    /// page.cursor().merge(json!({ "draft": false, "author": "Kim" }))?;
    /// assert_eq!(page.snapshot(), json!({ "title": "Plans", "draft": false, "author": "Kim" }));
    /// # Ok::<(), pinned::observable::ObservableError>(())
    /// ```
    pub fn merge(&self, entries: impl Into<Tree>) -> Result<()> {
        let entries = entries.into().into_entries();
        let entries = entries.map_err(|error| error.within(&self.path))?;
        let mut drafts = Vec::with_capacity(entries.len());
        for (key, item) in entries {
            let draft = self.at(&key).draft(item)?;
            drafts.push((key, draft));
        }
        self.write(&self.path, |session, site| {
            session.expect(&site, &[OBJECT], OBJECT)?;
            let landings: Vec<_> = drafts
                .iter()
                .map(|(key, draft)| Landing {
                    draft,
                    shown: joined(&site.shown, key),
                    freed: Some(joined(&site.path, key)),
                })
                .collect();
            session.admit(&site, &landings)?;
            for (key, draft) in &mut drafts {
                session.set_entry(&site, key, draft)?;
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

    /// Takes everything out of the list or object that is here.
    ///
    /// Emits a `replace` by the empty container, also when it was empty.
    ///
    /// # Errors
    ///
    /// See [Writes](#writes).
    ///
    /// ```
    /// let page = pinned::Observable::new(serde_json::json!({ "todos": [1, 2] }))?;
    /// page.at("todos").clear()?;
    /// assert!(page.at("todos").is_empty()?);
    /// # Ok::<(), pinned::observable::ObservableError>(())
    /// ```
    pub fn clear(&self) -> Result<()> {
        self.write(&self.path, |session, site| {
            session.expect(&site, &[LIST, OBJECT], "a list or an object")?;
            session.empty(&site)?;
            session.emit(
                &site,
                OpKind::Replace,
                site.path.clone(),
                OpValue::At(&site.path),
            );
            Ok(())
        })
    }

    /// Puts `default` under `key` of the object that is here if the key is absent, and returns what is there then.
    ///
    /// Emits `replace` if the key was absent, otherwise nothing.
    ///
    /// # Errors
    ///
    /// See [Writes](#writes).
    ///
    /// ```
    /// let page = pinned::Observable::new(serde_json::json!({}))?;
    /// assert_eq!(page.cursor().set_default("visits", 0)?, 0);
    /// page.at("visits").set(7)?;
    /// assert_eq!(page.cursor().set_default("visits", 0)?, 7);
    /// # Ok::<(), pinned::observable::ObservableError>(())
    /// ```
    pub fn set_default(&self, key: impl Into<String>, default: impl Into<Tree>) -> Result<Value> {
        let key = key.into();
        let mut draft = self.at(&key).draft(default.into())?;
        self.write(&self.path, |session, site| {
            session.expect(&site, &[OBJECT], OBJECT)?;
            let segment = Segment::from(&key);
            let at = joined(&site.path, segment.clone());
            let present = session.look(&site, |found, held| {
                let found = existing(found, &segment, &site.shown)?;
                Ok(found.map(|found| found.snapshot(held)))
            })?;
            if let Some(present) = present {
                return Ok(present);
            }
            session.admit(
                &site,
                &[Landing {
                    draft: &draft,
                    shown: joined(&site.shown, segment),
                    freed: None,
                }],
            )?;
            session.set_entry(&site, &key, &mut draft)?;
            session.emit(&site, OpKind::Replace, at.clone(), OpValue::At(&at));
            session.look(&Site { path: at, ..site }, |found, held| {
                Ok(found.snapshot(held))
            })
        })
    }

    /// Takes out the entry or element at `segment` of what is here, and returns it as a plain value. An observable there is
    /// unmounted and keeps its value and its subscribers.
    ///
    /// Emits `remove`.
    ///
    /// # Errors
    ///
    /// See [Writes](#writes). To have a missing key tolerated, use [`Cursor::take`].
    ///
    /// ```
    /// use serde_json::json;
    ///
    /// let page = pinned::Observable::new(json!({ "todos": ["a", "b"] }))?;
    /// assert_eq!(page.at("todos").remove(0)?, "a");
    /// assert_eq!(page.cursor().remove("todos")?, json!(["b"]));
    /// assert!(page.cursor().remove("todos").is_err());
    /// # Ok::<(), pinned::observable::ObservableError>(())
    /// ```
    pub fn remove(&self, segment: impl Into<Segment>) -> Result<Value> {
        let segment = segment.into();
        let missing = || ObservableError::NotFound {
            path: joined(&self.path, segment.clone()),
        };
        self.take(segment.clone())?.ok_or_else(missing)
    }

    /// As [`Cursor::remove`], but a missing key of an object is `None`, and then nothing is emitted.
    ///
    /// # Errors
    ///
    /// See [Writes](#writes). A position out of range is an error all the same.
    ///
    /// ```
    /// let page = pinned::Observable::new(serde_json::json!({ "draft": true }))?;
    /// assert_eq!(page.cursor().take("draft")?, Some(true.into()));
    /// assert_eq!(page.cursor().take("draft")?, None);
    /// # Ok::<(), pinned::observable::ObservableError>(())
    /// ```
    pub fn take(&self, segment: impl Into<Segment>) -> Result<Option<Value>> {
        let segment = segment.into();
        self.write(&self.path, |session, site| {
            session.look(&site, |found, _| {
                existing(found, &segment, &site.shown).map(drop)
            })?;
            take_out(session, &site, segment)
        })
    }

    /// Appends `suffix` to the string that is here.
    ///
    /// Emits a text `add` with the suffix alone, at the old length in Unicode scalar values; nothing for an empty suffix.
    /// To stream text to receivers, this is much cheaper than [`Cursor::set`].
    ///
    /// # Errors
    ///
    /// See [Writes](#writes).
    ///
    /// ```
    /// let answer = pinned::Observable::new(serde_json::json!({ "text": "Hel" }))?;
    /// answer.at("text").push_str("lo")?;
    /// assert_eq!(answer.at("text").get()?, "Hello");
    /// # Ok::<(), pinned::observable::ObservableError>(())
    /// ```
    pub fn push_str(&self, suffix: &str) -> Result<()> {
        self.write(&self.path, |session, site| {
            let length = session.look(&site, |found, _| match found.plain() {
                Some(Value::String(text)) => Ok(text.chars().count()),
                _ => Err(found.misfit(&site.shown, "a string")),
            })?;
            if suffix.is_empty() {
                return Ok(());
            }
            session.append_text(&site, suffix)?;
            let at = joined(&site.path, length);
            session.emit(&site, OpKind::Add, at, OpValue::Text(suffix));
            Ok(())
        })
    }

    fn writable(&self) -> Result<()> {
        match self.read_only {
            false => Ok(()),
            true => Err(ObservableError::ReadOnly {
                path: self.path.clone(),
            }),
        }
    }

    /// A value that is to be written below this cursor, checked, and under the cursor's lock.
    pub(super) fn draft(&self, value: Tree) -> Result<Draft> {
        self.writable()?;
        let draft = Draft::new(value).map_err(|error| error.within(&self.path))?;
        draft.unite(&self.node);
        Ok(draft)
    }

    /// Runs `act` on what stands at `path`.
    pub(super) fn write<R>(
        &self,
        path: &[Segment],
        act: impl FnOnce(&mut Session<'_>, Site) -> Result<R>,
    ) -> Result<R> {
        self.writable()?;
        write(&self.node, |session| {
            let site = session.resolve(&self.node, path)?;
            act(session, site)
        })
    }
}

/// Takes out what is at `segment`, of which is known that the container has the right kind.
pub(super) fn take_out(
    session: &mut Session<'_>,
    site: &Site,
    segment: Segment,
) -> Result<Option<Value>> {
    let taken = session.take_out(site, &segment)?;
    if taken.is_some() {
        session.emit(
            site,
            OpKind::Remove,
            joined(&site.path, segment),
            OpValue::None,
        );
    }
    Ok(taken)
}

/// What is at `segment` of `found`. An absent key is `None`; a position out of range is an error.
fn existing<'a>(
    found: Found<'a>,
    segment: &Segment,
    shown: &[Segment],
) -> Result<Option<Found<'a>>> {
    match found.child(segment, shown) {
        Ok(found) => Ok(Some(found)),
        Err(ObservableError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
