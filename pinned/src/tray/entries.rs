//! A row as its tray holds it: a mark, and one JSON text per entry.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::value::RawValue;

use crate::durability::{Doc, RowState};

/// The text of one entry.
pub(crate) type EntryText = Arc<str>;

/// The image of a row, with what is needed to take the changes of a segment back.
#[derive(Debug, Default)]
pub(crate) struct Image {
    marked: bool,
    entries: BTreeMap<Arc<str>, EntryText>,
    undo: Vec<Undo>,
}

#[derive(Debug)]
enum Undo {
    Mark(bool),
    Entry(Arc<str>, Option<EntryText>),
}

/// The entries of a stored doc, as they stand there.
pub(crate) fn entries_of(doc: &Doc) -> BTreeMap<String, Box<RawValue>> {
    // A doc is checked when it is made.
    serde_json::from_str(doc.as_str()).unwrap_or_default()
}

impl Image {
    pub(crate) fn restored(
        marked: bool,
        entries: impl IntoIterator<Item = (String, Box<RawValue>)>,
    ) -> Self {
        let entries = entries
            .into_iter()
            .map(|(name, text)| (name.into(), compact(text.get())))
            .collect();
        Self {
            marked,
            entries,
            undo: Vec::new(),
        }
    }

    pub(crate) fn marked(&self) -> bool {
        self.marked
    }

    pub(crate) fn get(&self, name: &str) -> Option<&EntryText> {
        self.entries.get(name)
    }

    /// A change that changes nothing is none (T3.2).
    pub(crate) fn set_mark(&mut self, marked: bool) {
        if self.marked != marked {
            self.undo.push(Undo::Mark(self.marked));
            self.marked = marked;
        }
    }

    /// Sets an entry, or removes it; a change that changes nothing is none (T3.2).
    pub(crate) fn set(&mut self, name: &str, text: Option<EntryText>) {
        if self.entries.get(name) == text.as_ref() {
            return;
        }
        let (name, before) = match text {
            Some(text) => match self.entries.get_key_value(name) {
                Some((name, _)) => {
                    let name = Arc::clone(name);
                    let before = self.entries.insert(Arc::clone(&name), text);
                    (name, before)
                }
                None => {
                    let name: Arc<str> = name.into();
                    self.entries.insert(Arc::clone(&name), text);
                    (name, None)
                }
            },
            None => match self.entries.remove_entry(name) {
                Some((name, before)) => (name, Some(before)),
                None => return,
            },
        };
        self.undo.push(Undo::Entry(name, before));
    }

    /// Whether the segment has changed anything.
    pub(crate) fn is_changed(&self) -> bool {
        !self.undo.is_empty()
    }

    pub(crate) fn commit(&mut self) {
        self.undo.clear();
    }

    pub(crate) fn rollback(&mut self) {
        while let Some(undo) = self.undo.pop() {
            match undo {
                Undo::Mark(marked) => self.marked = marked,
                Undo::Entry(name, Some(text)) => {
                    self.entries.insert(name, text);
                }
                Undo::Entry(name, None) => {
                    self.entries.remove(&name);
                }
            }
        }
    }

    /// What the store is to hold.
    pub(crate) fn to_state(&self) -> RowState {
        let room: usize = self
            .entries
            .iter()
            .map(|(name, text)| name.len() + text.len() + 4)
            .sum();
        let mut doc = String::with_capacity(room + 2);
        doc.push('{');
        for (name, text) in &self.entries {
            if doc.len() > 1 {
                doc.push(',');
            }
            push_string(&mut doc, name);
            doc.push(':');
            doc.push_str(text);
        }
        doc.push('}');
        RowState {
            marked: self.marked,
            doc: Doc::trusted(doc),
        }
    }
}

/// The same JSON without whitespace between its tokens: stores may add some, and what is written here has none.
pub(crate) fn compact(json: &str) -> EntryText {
    let (mut inside, mut escaped) = (false, false);
    let kept = json.chars().filter(|&char| {
        if inside {
            let ends = char == '"' && !escaped;
            escaped = char == '\\' && !escaped;
            inside = !ends;
            return true;
        }
        inside = char == '"';
        !char.is_ascii_whitespace()
    });
    kept.collect::<String>().into()
}

/// Appends `text` as a JSON string.
fn push_string(out: &mut String, text: &str) {
    let plain = text
        .bytes()
        .all(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\');
    if plain {
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else {
        out.push_str(&serde_json::Value::from(text).to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whitespace_between_tokens_goes_and_within_strings_stays() {
        let spaced = "{ \"a b\" : [ 1 , \"c \\\" d\\\\\" , null ] }";
        assert_eq!(&*compact(spaced), "{\"a b\":[1,\"c \\\" d\\\\\",null]}");
    }

    fn text(image: &Image) -> String {
        image.to_state().doc.as_str().to_owned()
    }

    #[test]
    fn a_segment_that_is_taken_back_leaves_the_row_as_it_was() {
        // T13.2, T3.2
        let mut image = Image::default();
        image.set("a", Some("1".into()));
        image.commit();
        let before = text(&image);
        image.set_mark(true);
        image.set("a", None);
        image.set("b\n", Some("[2]".into()));
        image.set("a", Some("3".into()));
        assert_eq!(text(&image), r#"{"a":3,"b\n":[2]}"#);
        image.rollback();
        assert!(!image.marked() && !image.is_changed());
        assert_eq!(text(&image), before);
        image.set("a", Some("1".into()));
        image.set("c", None);
        image.set_mark(false);
        assert!(!image.is_changed());
    }
}
