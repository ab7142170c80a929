//! Spool files cut off and changed at every byte.

use outlast_core::Timestamp;

use super::super::row::{Outcome, Usage};
use super::*;

const THIS: Use = Use(7);

fn frame(this: Use, kind: Kind, bytes: &[u8]) -> Vec<u8> {
    [&this.prefix(kind, bytes).unwrap()[..], bytes].concat()
}

/// As version 1 had it.
fn frame_1(kind: Kind, bytes: &[u8]) -> Vec<u8> {
    [&[kind as u8][..], &u32::try_from(bytes.len()).unwrap().to_le_bytes(), bytes].concat()
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
    file_of(&THIS.start(), |kind, bytes| frame(THIS, kind, bytes))
}

fn file_1() -> (Vec<u8>, usize) {
    file_of(MAGIC_1, frame_1)
}

fn file_of(start: &[u8], frame: impl Fn(Kind, &[u8]) -> Vec<u8>) -> (Vec<u8>, usize) {
    let mut file = start.to_vec();
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
    file.extend(frame(Kind::End, &serde_json::to_vec(&End { closing, passed: 20, unread: false }).unwrap()));
    (file, begun)
}

#[test]
fn a_file_cut_anywhere_keeps_what_was_written_before() {
    for (file, begun) in [file(), file_1()] {
        cut_anywhere(&file, begun, &[]);
    }
}

#[test]
fn what_an_earlier_use_has_left_is_no_part_of_this_one() {
    let (file, begun) = file();
    // Each frame of an exchange before lies just where one of this use is to come.
    let reversed = |bytes: &[u8]| bytes.iter().rev().copied().collect::<Vec<u8>>();
    let (before, _) = file_of(&Use(6).start(), |kind, bytes| frame(Use(6), kind, &reversed(bytes)));
    let (longer, _) = file_of(&Use(6).start(), |kind, bytes| frame(Use(6), kind, &bytes.repeat(3)));
    for mut before in [before, longer] {
        before[..FREE.len()].copy_from_slice(FREE);
        cut_anywhere(&file, begun, &before);
        assert!(matches!(parse(&mut before), Parsed::NeverBegan));
    }
}

/// Each beginning of `file`, behind which lies the rest of `before`.
fn cut_anywhere(file: &[u8], begun: usize, before: &[u8]) {
    let mut last = 0;
    // What no process is ended in the midst of: the first bytes lie in one page.
    for cut in (0..=file.len()).filter(|cut| before.is_empty() || !(1..START_LEN).contains(cut)) {
        match parse(&mut [&file[..cut], before.get(cut..).unwrap_or_default()].concat()) {
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
    for (file, begun) in [file(), file_1()] {
        let mut lost = [&file[..begun], &[0; 4096]].concat();
        assert!(
            matches!(parse(&mut lost), Parsed::Exchange(contents) if contents.answer.is_empty() && contents.end.is_none())
        );
    }
}

#[test]
fn another_format_is_unreadable_and_never_guessed_at() {
    let (file, _) = file();
    assert!(matches!(parse(&mut b"OLSPOOL3 and more".to_owned()), Parsed::Unreadable));
    assert!(matches!(parse(&mut [0; 64]), Parsed::Unreadable));
    assert!(matches!(parse(&mut [&file_1().0[..], &[9, 0, 0, 0, 0]].concat()), Parsed::Unreadable));
    let check = THIS.check(&[9, 0, 0, 0, 0], b"").to_le_bytes();
    assert!(matches!(parse(&mut [&file[..], &[9, 0, 0, 0, 0], &check].concat()), Parsed::Unreadable));
    let start = THIS.start().to_vec();
    let mut strange = [start, frame(THIS, Kind::Opening, b"{}"), frame(THIS, Kind::Request, b"?")].concat();
    assert!(matches!(parse(&mut strange), Parsed::Unreadable));
}
