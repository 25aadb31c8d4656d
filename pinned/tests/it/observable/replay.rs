//! Random writes against a plain model, and the ops replayed.

use pinned::Observable;
use pinned::observable::{Op, Segment, Tree};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Log, json};

#[derive(Clone, Debug)]
enum Verb {
    Set(usize, Item),
    SetKey(String, Item),
    Push(Item),
    Insert(usize, Item),
    Extend(Vec<Item>),
    Merge(String, Item),
    SetDefault(String, Item),
    RemoveAt(usize),
    RemoveKey(String),
    Pop,
    Clear,
    PushStr(String),
}

/// What is written: plain, or the pool's observable of that number, inside containers or not.
#[derive(Clone, Debug)]
enum Item {
    Plain(Value),
    Pooled(usize),
    Inside(usize),
}

/// A write by which root, at a place chosen from those that exist.
#[derive(Clone, Debug)]
struct Write {
    root: usize,
    place: prop::sample::Index,
    verb: Verb,
}

const POOL: usize = 4;

fn key() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c"]).prop_map(str::to_owned)
}

fn plain() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        (0..5_i32).prop_map(Value::from),
        "[aé🦀]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(key(), inner, 0..3)
                .prop_map(|entries| entries.into_iter().collect()),
        ]
    })
}

fn item() -> impl Strategy<Value = Item> {
    prop_oneof![
        1 => plain().prop_map(Item::Plain),
        1 => (0..POOL).prop_map(Item::Pooled),
        1 => (0..POOL).prop_map(Item::Inside),
    ]
}

fn write() -> impl Strategy<Value = Write> {
    let verb = prop_oneof![
        (0..4_usize, item()).prop_map(|(at, item)| Verb::Set(at, item)),
        (key(), item()).prop_map(|(key, item)| Verb::SetKey(key, item)),
        item().prop_map(Verb::Push),
        (0..4_usize, item()).prop_map(|(at, item)| Verb::Insert(at, item)),
        prop::collection::vec(item(), 0..3).prop_map(Verb::Extend),
        (key(), item()).prop_map(|(key, item)| Verb::Merge(key, item)),
        (key(), item()).prop_map(|(key, item)| Verb::SetDefault(key, item)),
        (0..4_usize).prop_map(Verb::RemoveAt),
        key().prop_map(Verb::RemoveKey),
        Just(Verb::Pop),
        Just(Verb::Clear),
        "[aé🦀]{0,2}".prop_map(Verb::PushStr),
    ];
    (0..=POOL, any::<prop::sample::Index>(), verb).prop_map(|(root, place, verb)| Write {
        root,
        place,
        verb,
    })
}

impl Item {
    fn tree(&self, pool: &[Observable]) -> Tree {
        match self {
            Self::Plain(value) => Tree::from(value),
            Self::Pooled(n) => Tree::from(&pool[*n]),
            Self::Inside(n) => Tree::list([Tree::from("x"), Tree::object([("in", &pool[*n])])]),
        }
    }

    fn value(&self, pool: &[Observable]) -> Value {
        match self {
            Self::Plain(value) => value.clone(),
            Self::Pooled(n) => pool[*n].snapshot(),
            Self::Inside(n) => json!(["x", { "in": pool[*n].snapshot() }]),
        }
    }
}

impl Verb {
    /// Whether it writes observables, which may be mounted elsewhere.
    fn mounts(&self) -> bool {
        let mounts = |item: &Item| !matches!(item, Item::Plain(_));
        match self {
            Self::Set(_, item)
            | Self::SetKey(_, item)
            | Self::Push(item)
            | Self::Insert(_, item)
            | Self::Merge(_, item)
            | Self::SetDefault(_, item) => mounts(item),
            Self::Extend(items) => items.iter().any(mounts),
            _ => false,
        }
    }
}

/// The paths of all that stands in `value`.
fn places(value: &Value, base: &mut Vec<Segment>, found: &mut Vec<Vec<Segment>>) {
    found.push(base.clone());
    let inner: Vec<(Segment, &Value)> = match value {
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(i, item)| (i.into(), item))
            .collect(),
        Value::Object(entries) => entries
            .iter()
            .map(|(key, item)| (key.into(), item))
            .collect(),
        _ => Vec::new(),
    };
    for (segment, item) in inner {
        base.push(segment);
        places(item, base, found);
        base.pop();
    }
}

/// What the write makes of `target`, or `None` where it does not fit.
fn expected(verb: &Verb, target: &mut Value, pool: &[Observable]) -> Option<()> {
    match (verb, target) {
        (Verb::Set(at, item), Value::Array(items)) => *items.get_mut(*at)? = item.value(pool),
        (Verb::SetKey(key, item) | Verb::Merge(key, item), Value::Object(entries)) => {
            entries.insert(key.clone(), item.value(pool));
        }
        (Verb::SetDefault(key, item), Value::Object(entries)) => {
            entries.entry(key).or_insert_with(|| item.value(pool));
        }
        (Verb::Push(item), Value::Array(items)) => items.push(item.value(pool)),
        (Verb::Insert(at, item), Value::Array(items)) => {
            items.insert((*at).min(items.len()), item.value(pool));
        }
        (Verb::Extend(more), Value::Array(items)) => {
            items.extend(more.iter().map(|item| item.value(pool)));
        }
        (Verb::RemoveAt(at), Value::Array(items)) if *at < items.len() => drop(items.remove(*at)),
        (Verb::RemoveKey(key), Value::Object(entries)) => drop(entries.remove(key)?),
        (Verb::Pop, Value::Array(items)) => drop(items.pop()?),
        (Verb::Clear, Value::Array(items)) => items.clear(),
        (Verb::Clear, Value::Object(entries)) => entries.clear(),
        (Verb::PushStr(suffix), Value::String(text)) => text.push_str(suffix),
        _ => return None,
    }
    Some(())
}

fn replay(mirrors: &mut [Value], ops: Vec<Vec<Op>>) {
    for (mirror, ops) in mirrors.iter_mut().zip(ops) {
        ops.iter().for_each(|op| op.apply(mirror).unwrap());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_tree_with_mounts_is_its_plain_model_and_its_ops_rebuild_it(
        writes in prop::collection::vec(write(), 1..60)
    ) {
        // O1.5, O2, O4
        let pool: Vec<_> = (0..POOL).map(|n| json(json!({ "a": [n], "b": "" }))).collect();
        let root = json(json!({ "a": [], "b": {}, "c": "" }));
        let all: Vec<_> = pool.iter().chain([&root]).collect();
        let logs: Vec<_> = all.iter().map(|observable| Log::of(observable)).collect();
        let mut mirrors: Vec<_> = all.iter().map(|observable| observable.snapshot()).collect();

        for Write { root, place, verb } in writes {
            let before: Vec<_> = all.iter().map(|observable| observable.snapshot()).collect();
            let mut found = Vec::new();
            places(&before[root], &mut Vec::new(), &mut found);
            let path = place.get(&found);
            let at = path.iter().cloned().fold(all[root].cursor(), |at, segment| at.at(segment));
            let mut model = before[root].clone();
            let target = path.iter().try_fold(&mut model, |at, segment| match segment {
                Segment::Key(key) => at.get_mut(key),
                Segment::Index(index) => at.get_mut(index),
            });
            let fits = expected(&verb, target.unwrap(), &pool).is_some();
            let mounts = verb.mounts();
            let result = match verb {
                Verb::Set(index, item) => at.at(index).set(item.tree(&pool)),
                Verb::SetKey(key, item) => at.at(key).set(item.tree(&pool)),
                Verb::Push(item) => at.push(item.tree(&pool)),
                Verb::Insert(index, item) => at.insert(index, item.tree(&pool)),
                Verb::Extend(items) => at.extend(items.iter().map(|item| item.tree(&pool))),
                Verb::Merge(key, item) => at.merge(Tree::object([(key, item.tree(&pool))])),
                Verb::SetDefault(key, item) => at.set_default(key, item.tree(&pool)).map(drop),
                Verb::RemoveAt(index) => at.remove(index).map(drop),
                Verb::RemoveKey(key) => at.remove(key).map(drop),
                Verb::Pop => at.pop().map(drop),
                Verb::Clear => at.clear(),
                Verb::PushStr(suffix) => at.push_str(&suffix),
            };

            let now: Vec<_> = all.iter().map(|observable| observable.snapshot()).collect();
            let ops: Vec<_> = logs.iter().map(Log::take).collect();
            if result.is_ok() {
                prop_assert!(fits);
                prop_assert_eq!(&now[root], &model);
                prop_assert!(ops.iter().all(|ops| ops.len() <= 1));
            } else {
                prop_assert!(!fits || mounts, "{:?}", result);
                prop_assert_eq!(&now, &before);
                prop_assert!(ops.iter().all(Vec::is_empty));
            }
            replay(&mut mirrors, ops);
            prop_assert_eq!(&mirrors, &now);

            // An empty merge changes nothing and says where everything is mounted.
            for child in &pool {
                child.cursor().merge(json!({})).unwrap();
            }
            replay(&mut mirrors, logs.iter().map(Log::take).collect());
            prop_assert_eq!(&mirrors, &now);
        }
    }
}
