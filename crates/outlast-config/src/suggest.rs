//! "Did you mean": the known word nearest to what was written.

/// The candidate nearest to `word`, if it is near enough to be meant.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = fold(word);
    let limit = (word.len() / 3).max(1);
    candidates
        .into_iter()
        .filter_map(|candidate| {
            let folded = fold(candidate);
            let distance = distance(&word, &folded);
            let shares_something = distance < word.len().max(folded.len()) || distance == 0;
            (distance <= limit && shares_something).then_some((distance, candidate))
        })
        .min()
        .map(|(_, candidate)| candidate)
}

/// Advice about an unknown word: the nearest known one, else the list of those that are known.
pub(crate) fn advice<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str> + Clone) -> String {
    if let Some(near) = nearest(word, candidates.clone()) {
        return format!("did you mean `{near}`?");
    }
    let known: Vec<String> = candidates.into_iter().map(|candidate| format!("`{candidate}`")).collect();
    match known.as_slice() {
        [] => "there is none yet".to_owned(),
        many if many.len() > LIST_MAX => format!("known are {}, …", many[..LIST_MAX].join(", ")),
        few => format!("known: {}", few.join(", ")),
    }
}

/// More names than this help nobody.
const LIST_MAX: usize = 24;
/// Longer words are compared by their beginning: the cost is the product of the lengths.
const WORD_MAX: usize = 64;

fn fold(word: &str) -> Vec<char> {
    word.to_lowercase().chars().map(|c| if c == '-' { '_' } else { c }).take(WORD_MAX).collect()
}

/// Insertions, deletions, replacements and swaps of neighbours that turn one word into the other.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_found_and_far_ones_are_not() {
        let known = ["writes", "reads", "needs", "verify", "idle_timeout"];
        assert_eq!(nearest("write", known), Some("writes"));
        assert_eq!(nearest("verfiy", known), Some("verify"));
        assert_eq!(nearest("Idle-Timeout", known), Some("idle_timeout"));
        assert_eq!(nearest("status", known), None);
        assert_eq!(nearest("文", ["文档", "x"]), Some("文档"));
        assert_eq!(advice("zzz", ["a", "b"]), "known: `a`, `b`");
    }
}
