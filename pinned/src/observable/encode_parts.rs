//! The sequences and maps of the encoder.

use serde::Serialize;
use serde::ser;

use super::encode::{encode, encode_key, tagged};
use super::error::ObservableError;
use super::path::Segment;
use super::tree::Tree;

pub(super) struct Items {
    variant: Option<&'static str>,
    items: Vec<Tree>,
}

pub(super) struct Entries {
    variant: Option<&'static str>,
    entries: Vec<(String, Tree)>,
    key: Option<String>,
}

impl Items {
    pub(super) fn new(variant: Option<&'static str>) -> Self {
        Self {
            variant,
            items: Vec::new(),
        }
    }

    fn push<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), ObservableError> {
        let at = Segment::from(self.items.len());
        self.items
            .push(encode(item).map_err(|error| error.within(&[at]))?);
        Ok(())
    }

    fn finish(self) -> Tree {
        tagged(self.variant, Tree::list(self.items))
    }
}

impl Entries {
    pub(super) fn new(variant: Option<&'static str>) -> Self {
        Self {
            variant,
            entries: Vec::new(),
            key: None,
        }
    }

    fn push<T: Serialize + ?Sized>(
        &mut self,
        key: String,
        item: &T,
    ) -> Result<(), ObservableError> {
        let item = encode(item).map_err(|error| error.within(&[Segment::from(&key)]))?;
        self.entries.push((key, item));
        Ok(())
    }

    fn finish(self) -> Tree {
        tagged(self.variant, Tree::object(self.entries))
    }
}

macro_rules! items {
    ($($of:ident $method:ident),*) => {$(
        impl ser::$of for Items {
            type Ok = Tree;
            type Error = ObservableError;

            fn $method<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), ObservableError> {
                self.push(item)
            }

            fn end(self) -> Result<Tree, ObservableError> {
                Ok(self.finish())
            }
        }
    )*};
}

items!(
    SerializeSeq serialize_element,
    SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field
);

macro_rules! fields {
    ($($of:ident),*) => {$(
        impl ser::$of for Entries {
            type Ok = Tree;
            type Error = ObservableError;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                item: &T,
            ) -> Result<(), ObservableError> {
                self.push(key.to_owned(), item)
            }

            fn end(self) -> Result<Tree, ObservableError> {
                Ok(self.finish())
            }
        }
    )*};
}

fields!(SerializeStruct, SerializeStructVariant);

impl ser::SerializeMap for Entries {
    type Ok = Tree;
    type Error = ObservableError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), ObservableError> {
        self.key = Some(encode_key(key)?);
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), ObservableError> {
        match self.key.take() {
            Some(key) => self.push(key, item),
            None => Err(ser::Error::custom("a map's value came before its key")),
        }
    }

    fn end(self) -> Result<Tree, ObservableError> {
        Ok(self.finish())
    }
}
