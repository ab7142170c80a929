//! Spool files cut off and changed at every byte.

use outlast_core::Timestamp;

use super::super::row::{Outcome, Usage};
use super::*;

fn frame(kind: Kind, bytes: &[u8]) -> Vec<u8> {
    [&prefix(kind, bytes.len()).unwrap()[..], bytes].concat()
}

fn opening() -> Opening {
    Opening {
        exchange: "x1".to_owned(),
        attempt: None,
        turn: 3,
        dialect: "responses".to_owned(),
        model: None,
        account: "api".into(),
        started_at: Timestamp::from_millis(5),
    }
}

const REQUEST: &[u8] = b"{\"input\": 1}";
const ANSWER: [&[u8]; 2] = [b"event: a\n\n", b"event: b\n\n"];

/// A whole file, and where its request ends.
fn file() -> (Vec<u8>, usize) {
    let mut file = MAGIC.to_vec();
    file.extend(frame(Kind::Opening, &serde_json::to_vec(&opening()).unwrap()));
    file.extend(frame(Kind::Request, REQUEST));
    let begun = file.len();
    let head = AnswerHead { status: 200, first_byte_at: Timestamp::from_millis(6), headers: "{}".to_owned() };
    file.extend(frame(Kind::Head, &serde_json::to_vec(&head).unwrap()));
    file.extend(ANSWER.iter().flat_map(|part| frame(Kind::Answer, part)));
    let closing = Closing {
        outcome: Outcome::Complete,
        ended_at: Timestamp::from_millis(7),
        usage: Usage::default(),
        usd_nanos: None,
        estimated: true,
    };
    file.extend(frame(Kind::End, &serde_json::to_vec(&End { closing, passed: 20 }).unwrap()));
    (file, begun)
}

#[test]
fn a_file_cut_anywhere_keeps_what_was_written_before() {
    let (file, begun) = file();
    let mut last = 0;
    for cut in 0..=file.len() {
        match parse(&mut file.clone()[..cut]) {
            Parsed::NeverBegan => assert!(cut < begun, "cut at {cut}"),
            Parsed::Unreadable => panic!("cut at {cut}"),
            Parsed::Exchange(contents) => {
                assert!(cut >= begun);
                assert_eq!((contents.opening, contents.request), (opening(), REQUEST));
                assert!(ANSWER.concat().starts_with(contents.answer) && contents.answer.len() >= last);
                last = contents.answer.len();
                assert_eq!(contents.end.is_some(), cut == file.len());
            }
        }
    }
    assert_eq!(last, 20);
}

#[test]
fn zeros_where_a_power_cut_lost_data_end_the_file() {
    let (file, begun) = file();
    let mut lost = [&file[..begun], &[0; 4096]].concat();
    assert!(
        matches!(parse(&mut lost), Parsed::Exchange(contents) if contents.answer.is_empty() && contents.end.is_none())
    );
}

#[test]
fn another_format_is_unreadable_and_never_guessed_at() {
    let (file, _) = file();
    assert!(matches!(parse(&mut b"OLSPOOL2 and more".to_owned()), Parsed::Unreadable));
    assert!(matches!(parse(&mut [0; 64]), Parsed::Unreadable));
    assert!(matches!(parse(&mut [&file[..], &[9, 0, 0, 0, 0]].concat()), Parsed::Unreadable));
    let mut strange = [MAGIC.to_vec(), frame(Kind::Opening, b"{}"), frame(Kind::Request, b"?")].concat();
    assert!(matches!(parse(&mut strange), Parsed::Unreadable));
}
