//! Tests of where an answer is cut.

use bytes::Bytes;

use super::{Frame, cut};

/// What is left of the frames `aaa`, `bbb`, `cccc`.
fn left(whole: usize, bytes: usize) -> String {
    let mut frames: Vec<Frame> =
        ["aaa", "bbb", "cccc"].map(|text| Frame { bytes: Bytes::from(text), declares: None }).into();
    cut(&mut frames, whole, bytes);
    frames.iter().map(|frame| String::from_utf8_lossy(&frame.bytes).into_owned()).collect::<Vec<_>>().join("|")
}

#[test]
fn an_answer_is_cut_after_events_or_bytes_and_never_stays_whole() {
    assert_eq!(left(0, 0), "");
    assert_eq!(left(2, 0), "aaa|bbb");
    assert_eq!(left(1, 2), "aaa|bb");
    assert_eq!(left(0, 7), "aaa|bbb|c");
    assert_eq!(left(3, 0), "aaa|bbb|cc");
    assert_eq!(left(0, usize::MAX), "aaa|bbb|cc");
}
