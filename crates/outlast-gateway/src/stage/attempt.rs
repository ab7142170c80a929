//! Stage "attempt": takes `/t/<run>/<attempt>` off the front of a path.
//!
//! Only splits text: whether the attempt exists and whether the key is its own is for `Admission` to say.

/// A path cut into the attempt it belongs to and what the provider is to see.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Split<'a> {
    /// `<run>/<task-slug>.<n>`, when the path has the prefix.
    pub(crate) attempt: Option<&'a str>,
    /// The rest; empty for the bare base address.
    pub(crate) rest: &'a str,
}

/// Cuts the attempt prefix off `path`, which starts with a slash and has no query.
pub(crate) fn split(path: &str) -> Split<'_> {
    let whole = Split { attempt: None, rest: path };
    let Some(tail) = path.strip_prefix("/t/") else {
        return whole;
    };
    let Some((run, after)) = tail.split_once('/') else {
        return whole;
    };
    let name_len = after.find('/').unwrap_or(after.len());
    if run.is_empty() || name_len == 0 {
        return whole;
    }
    let attempt_len = run.len() + 1 + name_len;
    Split { attempt: Some(&tail[..attempt_len]), rest: &tail[attempt_len..] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefix_comes_off_and_the_rest_stays_as_it_was() {
        let cut = |p| {
            let s = split(p);
            (s.attempt.map(str::to_owned), s.rest.to_owned())
        };
        assert_eq!(cut("/t/r1/task.2/v1/messages"), (Some("r1/task.2".into()), "/v1/messages".into()));
        assert_eq!(cut("/t/r1/task.2"), (Some("r1/task.2".into()), String::new()));
        assert_eq!(cut("/t/r1/task.2//v1//x"), (Some("r1/task.2".into()), "//v1//x".into()));
        assert_eq!(cut("/v1/messages"), (None, "/v1/messages".into()));
        assert_eq!(cut("/t/r1"), (None, "/t/r1".into()));
        assert_eq!(cut("/t//x/v1"), (None, "/t//x/v1".into()));
    }
}
