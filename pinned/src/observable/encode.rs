//! `Serialize` values as trees: as `serde_json::to_value`, but strict about what trees hold, and with mounts.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde::ser::{self, Serializer};
use serde_json::Value;

use super::encode_parts::{Entries, Items};
use super::error::ObservableError;
use super::node::Node;
use super::path::Segment;
use super::tree::Tree;

/// The name under which an observable offers itself to a serializer; any other sees a newtype around the plain value.
const MOUNT: &str = "pinned::Observable";

thread_local! {
    /// The observable that is being serialised on this thread, and whether it is offered as a view.
    static OFFERED: Cell<Option<(Arc<Node>, bool)>> = const { Cell::new(None) };
}

/// Serialises the observable `node`: as a mount into a tree, as its plain value anywhere else.
pub(super) fn serialize_node<S: Serializer>(
    node: &Arc<Node>,
    read_only: bool,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    OFFERED.set(Some((node.clone(), read_only)));
    serializer.serialize_newtype_struct(MOUNT, &PlainValue(node))
}

struct PlainValue<'a>(&'a Node);

impl Serialize for PlainValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        OFFERED.set(None);
        super::read::snapshot(self.0).serialize(serializer)
    }
}

pub(super) fn encode<S: Serialize + ?Sized>(value: &S) -> Result<Tree, ObservableError> {
    value.serialize(Encoder)
}

pub(super) struct Encoder;

impl ser::Error for ObservableError {
    fn custom<M: fmt::Display>(message: M) -> Self {
        Self::Serialize {
            path: Vec::new(),
            message: message.to_string(),
        }
    }
}

fn unsupported(expected: &'static str, found: &'static str) -> ObservableError {
    ObservableError::Type {
        path: Vec::new(),
        expected,
        found,
    }
}

/// The key of a map entry, which must be text.
pub(super) fn encode_key<K: Serialize + ?Sized>(key: &K) -> Result<String, ObservableError> {
    let refused = || unsupported("a string as a key", "something else");
    encode(key)?.into_text().ok_or_else(refused)
}

/// `{ variant: inner }`, as serde tags enums.
pub(super) fn tagged(variant: Option<&'static str>, inner: Tree) -> Tree {
    match variant {
        Some(variant) => Tree::object([(variant, inner)]),
        None => inner,
    }
}

macro_rules! from_value {
    ($($method:ident: $type:ty),*) => {$(
        fn $method(self, value: $type) -> Result<Tree, ObservableError> {
            Ok(Tree::from(value))
        }
    )*};
}

impl Serializer for Encoder {
    type Ok = Tree;
    type Error = ObservableError;
    type SerializeSeq = Items;
    type SerializeTuple = Items;
    type SerializeTupleStruct = Items;
    type SerializeTupleVariant = Items;
    type SerializeMap = Entries;
    type SerializeStruct = Entries;
    type SerializeStructVariant = Entries;

    from_value!(
        serialize_bool: bool,
        serialize_i8: i8,
        serialize_i16: i16,
        serialize_i32: i32,
        serialize_i64: i64,
        serialize_u8: u8,
        serialize_u16: u16,
        serialize_u32: u32,
        serialize_u64: u64,
        serialize_f32: f32,
        serialize_f64: f64,
        serialize_str: &str
    );

    fn serialize_i128(self, value: i128) -> Result<Tree, ObservableError> {
        // What does not fit is refused by the magnitude of the substitute.
        Ok(Tree::from(i64::try_from(value).unwrap_or(i64::MAX)))
    }

    fn serialize_u128(self, value: u128) -> Result<Tree, ObservableError> {
        Ok(Tree::from(u64::try_from(value).unwrap_or(u64::MAX)))
    }

    fn serialize_char(self, value: char) -> Result<Tree, ObservableError> {
        Ok(Tree::from(String::from(value)))
    }

    fn serialize_bytes(self, _: &[u8]) -> Result<Tree, ObservableError> {
        Err(unsupported("a JSON value", "bytes"))
    }

    fn serialize_none(self) -> Result<Tree, ObservableError> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Tree, ObservableError> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Tree, ObservableError> {
        Ok(Tree::from(Value::Null))
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<Tree, ObservableError> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<Tree, ObservableError> {
        Ok(Tree::from(variant))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<Tree, ObservableError> {
        if name == MOUNT
            && let Some((node, read_only)) = OFFERED.take()
        {
            return Ok(Tree::mount(node, read_only));
        }
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Tree, ObservableError> {
        let inner = value
            .serialize(self)
            .map_err(|error| error.within(&[Segment::from(variant)]))?;
        Ok(tagged(Some(variant), inner))
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Items, ObservableError> {
        Ok(Items::new(None))
    }

    fn serialize_tuple(self, _: usize) -> Result<Items, ObservableError> {
        Ok(Items::new(None))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Items, ObservableError> {
        Ok(Items::new(None))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Items, ObservableError> {
        Ok(Items::new(Some(variant)))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Entries, ObservableError> {
        Ok(Entries::new(None))
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Entries, ObservableError> {
        Ok(Entries::new(None))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Entries, ObservableError> {
        Ok(Entries::new(Some(variant)))
    }
}
