//! The YAML of front matter into the common tree.
//!
//! Only what a task needs: block and flow maps, lists and scalars of one document. Anchors, aliases and tags are refused,
//! so no text grows when it is read; depth and size are bounded.

use granit_parser::{Event, Parser, ScalarStyle};

use super::{Entry, Node, SyntaxError, Table, Value};

/// Deepest nesting that is read: a task's keys need three levels.
const DEPTH_MAX: usize = 16;

/// Reads the YAML between the fences; `start` is its byte offset in the file.
///
/// # Errors
/// The text is no YAML of this kind.
pub(crate) fn read(text: &str, start: usize) -> Result<Table, SyntaxError> {
    let mut builder = Builder::default();
    for event in Parser::new_from_str(text) {
        let (event, at) = match event {
            Ok((event, span)) => (event, offset(text, span.start)),
            Err(error) => {
                let at = offset(text, *error.marker());
                // The parser has no words for a text that ends too early.
                let info = Some(error.info()).filter(|info| !info.trim().is_empty());
                let message = info.unwrap_or_else(|| "it ends within a quote, a bracket or a brace".to_owned());
                return Err(SyntaxError { at: start + at, message });
            }
        };
        builder
            .event(event, start + at)
            .map_err(|message| SyntaxError { at: start + at, message: message.to_owned() })?;
    }
    match builder.root {
        None => Ok(Table::default()),
        Some(Node { value: Value::Plain(text), .. }) if text.is_empty() => Ok(Table::default()),
        Some(Node { value: Value::Table(table), .. }) => Ok(table),
        Some(node) => Err(SyntaxError {
            at: node.at,
            message: format!("front matter is a list of `key: value` lines, not {}", node.value.kind()),
        }),
    }
}

fn offset(text: &str, marker: granit_parser::Marker) -> usize {
    marker.byte_offset().unwrap_or(0).min(text.len())
}

/// A collection that is still open.
enum Open {
    List { at: usize, items: Vec<Node> },
    Table { at: usize, table: Table, key: Option<(String, usize)> },
}

#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    root: Option<Node>,
    documents: usize,
}

impl Builder {
    fn event(&mut self, event: Event<'_>, at: usize) -> Result<(), &'static str> {
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err("front matter is one document");
                }
                Ok(())
            }
            Event::Scalar(text, style, anchor, tag) => {
                refuse(anchor, tag.is_some())?;
                let text = text.into_owned();
                let plain = style == ScalarStyle::Plain;
                self.scalar(text, plain, at)
            }
            Event::SequenceStart(_, anchor, tag) => {
                refuse(anchor, tag.is_some())?;
                self.enter(Open::List { at, items: Vec::new() })
            }
            Event::MappingStart(_, anchor, tag) => {
                refuse(anchor, tag.is_some())?;
                self.enter(Open::Table { at, table: Table::default(), key: None })
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(Open::List { at, items }) => self.put(Node { value: Value::List(items), at }),
                Some(Open::Table { at, table, .. }) => self.put(Node { value: Value::Table(table), at }),
                None => Ok(()),
            },
            Event::Alias(_) | Event::UnresolvedAlias(_) => Err("aliases are not read here"),
            _ => Ok(()),
        }
    }

    fn enter(&mut self, open: Open) -> Result<(), &'static str> {
        if let Some(Open::Table { key: None, .. }) = self.open.last() {
            return Err("a key has to be a plain word");
        }
        if self.open.len() == DEPTH_MAX {
            return Err("nested too deep");
        }
        self.open.push(open);
        Ok(())
    }

    fn scalar(&mut self, text: String, plain: bool, at: usize) -> Result<(), &'static str> {
        if let Some(Open::Table { key: key @ None, table, .. }) = self.open.last_mut() {
            if table.get(&text).is_some() {
                return Err("the key is there twice");
            }
            *key = Some((text, at));
            return Ok(());
        }
        let value = if plain { Value::Plain(text) } else { Value::Text(text) };
        self.put(Node { value, at })
    }

    fn put(&mut self, node: Node) -> Result<(), &'static str> {
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(Open::List { items, .. }) => items.push(node),
            Some(Open::Table { table, key, .. }) => {
                let (key, key_at) = key.take().ok_or("a key has to be a plain word")?;
                table.entries.push(Entry { key, key_at, node });
            }
        }
        Ok(())
    }
}

fn refuse(anchor: usize, tag: bool) -> Result<(), &'static str> {
    match (anchor, tag) {
        (0, false) => Ok(()),
        (0, true) => Err("tags such as `!x` are not read here; quote the value"),
        _ => Err("anchors such as `&x` are not read here; quote the value"),
    }
}
