/// Builds a [`Tree`](crate::observable::Tree) from JSON in which any expression that converts into a tree may stand.
///
/// ```
/// use pinned::Observable;
/// use pinned::observable::tree;
/// use serde_json::json;
///
/// let done = Observable::new(json!(false))?;
/// let todos = Observable::from_tree(tree!([{ "title": "water " .to_owned() + "plants", "done": &done, "due": null }]))?;
/// done.set(json!(true))?;
/// assert_eq!(todos.snapshot(), json!([{ "title": "water plants", "done": true, "due": null }]));
/// # Ok::<(), pinned::observable::ObservableError>(())
/// ```
#[macro_export]
#[doc(hidden)]
macro_rules! __observable_tree {
    // The elements of a list: those done, then the rest.
    (@list [$($done:expr,)*]) => {
        $crate::observable::Tree::list(<[$crate::observable::Tree; _]>::from([$($done,)*]))
    };
    (@list [$($done:expr,)*] null $(, $($rest:tt)*)?) => {
        $crate::__observable_tree!(@list [$($done,)* $crate::__observable_tree!(null),] $($($rest)*)?)
    };
    (@list [$($done:expr,)*] [$($inner:tt)*] $(, $($rest:tt)*)?) => {
        $crate::__observable_tree!(@list [$($done,)* $crate::__observable_tree!([$($inner)*]),] $($($rest)*)?)
    };
    (@list [$($done:expr,)*] {$($inner:tt)*} $(, $($rest:tt)*)?) => {
        $crate::__observable_tree!(@list [$($done,)* $crate::__observable_tree!({$($inner)*}),] $($($rest)*)?)
    };
    (@list [$($done:expr,)*] $item:expr $(, $($rest:tt)*)?) => {
        $crate::__observable_tree!(@list [$($done,)* $crate::observable::Tree::from($item),] $($($rest)*)?)
    };

    // The entries of an object, in the same way.
    (@object [$($done:expr,)*]) => {
        $crate::observable::Tree::object(
            <[(::std::string::String, $crate::observable::Tree); _]>::from([$($done,)*])
        )
    };
    (@object [$($done:expr,)*] $key:tt : null $(, $($rest:tt)*)?) => {
        $crate::__observable_tree!(@object [$($done,)* (($key).into(), $crate::__observable_tree!(null)),] $($($rest)*)?)
    };
    (@object [$($done:expr,)*] $key:tt : [$($inner:tt)*] $(, $($rest:tt)*)?) => {
        $crate::__observable_tree!(@object [$($done,)* (($key).into(), $crate::__observable_tree!([$($inner)*])),] $($($rest)*)?)
    };
    (@object [$($done:expr,)*] $key:tt : {$($inner:tt)*} $(, $($rest:tt)*)?) => {
        $crate::__observable_tree!(@object [$($done,)* (($key).into(), $crate::__observable_tree!({$($inner)*})),] $($($rest)*)?)
    };
    (@object [$($done:expr,)*] $key:tt : $item:expr $(, $($rest:tt)*)?) => {
        $crate::__observable_tree!(@object [$($done,)* (($key).into(), $crate::observable::Tree::from($item)),] $($($rest)*)?)
    };

    (null) => { $crate::observable::Tree::from(()) };
    ([$($inner:tt)*]) => { $crate::__observable_tree!(@list [] $($inner)*) };
    ({$($inner:tt)*}) => { $crate::__observable_tree!(@object [] $($inner)*) };
    ($item:expr) => { $crate::observable::Tree::from($item) };
}
