//! TOML into the common tree, with every syntax error of the file at once.

use ::toml::de::{DeInteger, DeTable, DeValue};

use super::{Entry, Node, SyntaxError, Table, Value, quotes};

/// Reads a TOML file; where it is broken, the rest is still read.
pub(crate) fn read(text: &str) -> (Table, Vec<SyntaxError>) {
    let (root, errors) = DeTable::parse_recoverable(text);
    let mut errors: Vec<SyntaxError> = errors
        .into_iter()
        .map(|error| SyntaxError {
            at: error.span().map_or(0, |span| span.start),
            message: error.message().trim().to_owned(),
        })
        .collect();
    errors.sort_by_key(|error| error.at);
    // What follows on the same line follows from it.
    errors.dedup_by(|later, first| !text.get(first.at..later.at).unwrap_or_default().contains('\n'));
    if let Some(first) = errors.first()
        && let Some(stray) = quotes::stray(text, first.at)
    {
        errors = vec![stray];
    }
    (table(root.into_inner()), errors)
}

fn table(fields: DeTable<'_>) -> Table {
    let mut entries: Vec<Entry> = fields
        .into_iter()
        .map(|(key, value)| {
            let at = value.span().start;
            Entry { key_at: key.span().start, key: key.into_inner().into_owned(), node: node(value.into_inner(), at) }
        })
        .collect();
    // The parser's own map is sorted by name; steps have an order of their own.
    entries.sort_by_key(|entry| entry.key_at);
    Table { entries }
}

fn node(value: DeValue<'_>, at: usize) -> Node {
    let value = match value {
        DeValue::String(text) => Value::Text(text.into_owned()),
        DeValue::Integer(number) => integer(&number).map_or(Value::Other("a huge integer"), Value::Integer),
        DeValue::Float(number) => number.as_str().parse().map_or(Value::Other("a strange number"), Value::Float),
        DeValue::Boolean(truth) => Value::Bool(truth),
        DeValue::Datetime(_) => Value::Other("a date"),
        DeValue::Array(items) => Value::List(
            items
                .into_iter()
                .map(|item| {
                    let at = item.span().start;
                    node(item.into_inner(), at)
                })
                .collect(),
        ),
        DeValue::Table(fields) => Value::Table(table(fields)),
    };
    Node { value, at }
}

fn integer(number: &DeInteger<'_>) -> Option<i64> {
    i64::from_str_radix(number.as_str(), number.radix()).ok()
}
