//! Finds values in JSON by their place in the bytes, without building a tree.
//!
//! A request is passed on as it came: where a string in it must change, it is spliced. Malformed input gives `None`,
//! and goes on to the provider unchanged, which says so better than the gateway could.

use std::ops::Range;

use memchr::memchr2;

/// The members of the object that `bytes` holds: raw key without its quotes, and the span of the value.
pub(crate) fn members(bytes: &[u8]) -> Members<'_> {
    let start = space(bytes, 0);
    let at = if bytes.get(start) == Some(&b'{') { Some(start + 1) } else { None };
    Members { bytes, at }
}

/// See [`members`].
pub(crate) struct Members<'a> {
    bytes: &'a [u8],
    at: Option<usize>,
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a [u8], Range<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.bytes;
        let key_start = space(bytes, self.at.take()?);
        let key_end = string_end(bytes, key_start)?;
        let colon = space(bytes, key_end);
        if bytes.get(colon) != Some(&b':') {
            return None;
        }
        let value_start = space(bytes, colon + 1);
        let value_end = value_end(bytes, value_start)?;
        let after = space(bytes, value_end);
        if bytes.get(after) == Some(&b',') {
            self.at = Some(after + 1);
        }
        Some((&bytes[key_start + 1..key_end - 1], value_start..value_end))
    }
}

/// The span of the first element of the array at `array`; `None` when it is empty or no array.
pub(crate) fn first_element(bytes: &[u8], array: Range<usize>) -> Option<Range<usize>> {
    if bytes.get(array.start) != Some(&b'[') {
        return None;
    }
    let start = space(bytes, array.start + 1);
    if bytes.get(start) == Some(&b']') {
        return None;
    }
    Some(start..value_end(bytes, start)?)
}

/// A value by its place in the bytes: cheap to pass over, decoded only where it is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node<'a>(pub(crate) &'a [u8]);

impl<'a> Node<'a> {
    /// The members of these names in an object, the last of each; nothing for what is not there.
    pub(crate) fn fields<const N: usize>(self, names: [&str; N]) -> [Option<Self>; N] {
        let mut found = [None; N];
        for (key, span) in members(self.0) {
            if let Some(place) = names.iter().position(|name| name.as_bytes() == key) {
                found[place] = Some(Self(&self.0[span]));
            }
        }
        found
    }

    /// One member of an object.
    pub(crate) fn field(self, name: &str) -> Option<Self> {
        let [found] = self.fields([name]);
        found
    }

    /// The elements of an array; none for anything else.
    pub(crate) fn elements(self) -> Elements<'a> {
        let start = space(self.0, 0);
        Elements { bytes: self.0, at: (self.0.get(start) == Some(&b'[')).then_some(start + 1) }
    }

    /// A string's text, whatever is no Unicode in it replaced: programs cut strings within a surrogate pair.
    pub(crate) fn text(self) -> Option<String> {
        serde_json::from_slice::<Lossy>(self.0).ok().map(|text| text.0)
    }

    /// The value as it stands.
    pub(crate) fn raw(self) -> String {
        String::from_utf8_lossy(self.0.trim_ascii()).into_owned()
    }

    /// Whether it is the literal `true`.
    pub(crate) fn is_true(self) -> bool {
        self.0.trim_ascii() == b"true"
    }
}

/// See [`Node::elements`].
pub(crate) struct Elements<'a> {
    bytes: &'a [u8],
    at: Option<usize>,
}

impl<'a> Iterator for Elements<'a> {
    type Item = Node<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let start = space(self.bytes, self.at.take()?);
        if self.bytes.get(start) == Some(&b']') {
            return None;
        }
        let end = value_end(self.bytes, start)?;
        let after = space(self.bytes, end);
        if self.bytes.get(after) == Some(&b',') {
            self.at = Some(after + 1);
        }
        Some(Node(&self.bytes[start..end]))
    }
}

/// A string that need not be Unicode.
struct Lossy(String);

impl<'de> serde::Deserialize<'de> for Lossy {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Lossy;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a string")
            }

            fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Lossy, E> {
                Ok(Lossy(String::from_utf8_lossy(bytes).into_owned()))
            }
        }
        deserializer.deserialize_bytes(Visitor)
    }
}

/// The text of the JSON string at `span`; `None` when there is something else.
pub(crate) fn text(bytes: &[u8], span: Range<usize>) -> Option<String> {
    serde_json::from_slice(bytes.get(span)?).ok()
}

fn space(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
        at += 1;
    }
    at
}

/// The offset after the string that opens at `at`.
fn string_end(bytes: &[u8], at: usize) -> Option<usize> {
    if bytes.get(at) != Some(&b'"') {
        return None;
    }
    let mut at = at + 1;
    loop {
        at += memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}

/// The offset after the value that starts at `at`.
fn value_end(bytes: &[u8], at: usize) -> Option<usize> {
    match bytes.get(at)? {
        b'"' => string_end(bytes, at),
        b'{' | b'[' => nested_end(bytes, at),
        _ => {
            let len = bytes[at..].iter().position(|b| matches!(b, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r'));
            let end = at + len.unwrap_or(bytes.len() - at);
            (end > at).then_some(end)
        }
    }
}

fn nested_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    loop {
        match bytes.get(at)? {
            b'"' => {
                at = string_end(bytes, at)?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn list(json: &str) -> Vec<(String, String)> {
        members(json.as_bytes()).map(|(k, v)| (String::from_utf8_lossy(k).into_owned(), json[v].to_owned())).collect()
    }

    #[test]
    fn members_are_found_under_odd_spacing_and_escapes() {
        let json = " \n{ \"a\" : \"x\\\"}\" ,\"b\":[1,{\"c\":\"]\"}] , \"model\"\t:\r\n\"m\\u0031\",\"n\":-1.5e3 , \"t\":true}";
        let got = list(json);
        assert_eq!(got.iter().map(|(k, _)| k.as_str()).collect::<Vec<_>>(), ["a", "b", "model", "n", "t"]);
        assert_eq!(got[1].1, r#"[1,{"c":"]"}]"#);
        assert_eq!((got[3].1.as_str(), got[4].1.as_str()), ("-1.5e3", "true"));
    }

    #[test]
    fn truncated_or_foreign_input_ends_the_walk() {
        for json in ["", "[]", "{", "{\"a", "{\"a\":", "{\"a\":[1", "{\"a\":\"\\", "null", "{]", "{\"a\"1}"] {
            assert!(list(json).is_empty(), "{json}");
        }
    }

    #[test]
    fn the_first_element_is_found() {
        let json = r#"{"tools":[ {"x":1},2],"none":[ ],"no":1}"#;
        let spans: Vec<_> = members(json.as_bytes()).map(|(_, v)| v).collect();
        assert_eq!(first_element(json.as_bytes(), spans[0].clone()).map(|s| &json[s]), Some(r#"{"x":1}"#));
        assert_eq!(first_element(json.as_bytes(), spans[1].clone()), None);
        assert_eq!(first_element(json.as_bytes(), spans[2].clone()), None);
    }

    #[test]
    fn a_node_is_read_where_it_is_asked_for() {
        let node = Node(br#" { "a" : [1, "two" ,{"b":[]}, [ ] ], "c":"x\ud83d!", "a2":true, "d":{"e":"f"} }"#);
        let [a, c, none, flag] = node.fields(["a", "c", "nothing", "a2"]);
        let elements: Vec<String> = a.unwrap().elements().map(Node::raw).collect();
        assert_eq!(elements, ["1", "\"two\"", "{\"b\":[]}", "[ ]"]);
        assert_eq!(c.unwrap().text().unwrap(), "x\u{fffd}\u{fffd}\u{fffd}!", "half a surrogate pair");
        assert!(none.is_none() && flag.unwrap().is_true());
        assert_eq!(node.field("d").unwrap().field("e").unwrap().text().unwrap(), "f");
        assert!(c.unwrap().elements().next().is_none() && a.unwrap().text().is_none());
    }

    proptest! {
        #[test]
        fn any_bytes_are_walked_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            for (_, span) in members(&bytes) {
                prop_assert!(span.end <= bytes.len());
            }
        }

        #[test]
        fn agrees_with_a_real_parser(text in "[a-z\"\\\\{}\\[\\]:, \u{e9}]{0,20}", n in any::<i64>()) {
            let json = serde_json::json!({ "x": [&text, {"model": n}], "model": text, "stream": true }).to_string();
            let model = members(json.as_bytes()).find(|(k, _)| *k == b"model").map(|(_, v)| v).unwrap();
            prop_assert_eq!(super::text(json.as_bytes(), model), Some(text));
        }
    }
}
