//! The closing account: what an agent says at its end about its own work, read leniently.
//!
//! It is what the agent claims. It never decides whether a task is done; only a question, or something it lacks, is
//! taken from it, because nobody else can know those.

/// What an agent said at its end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClosingAccount {
    /// What it changed.
    pub changed: Vec<String>,
    /// Why it did so.
    pub why: Vec<String>,
    /// What kept it from going on.
    pub blocked: Vec<String>,
    /// What it took for granted.
    pub assumptions: Vec<String>,
    /// The question it puts to a person.
    pub question: Option<String>,
    /// What it lacks and cannot get by itself.
    pub missing: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Changed,
    Why,
    Blocked,
    Assumptions,
}

impl ClosingAccount {
    /// Reads the last text of an agent; what is not there stays empty.
    ///
    /// A part begins with its name at the start of a line, in any case and with any Markdown around it, and holds what
    /// follows on that line and the lines below. When a part comes twice, the later one counts: agents announce the
    /// account before they give it.
    pub fn parse(text: &str) -> Self {
        let mut account = Self::default();
        let mut part = None;
        for line in text.lines() {
            if let Some((next, rest)) = heading(line) {
                account.list(next).clear();
                part = Some(next);
                account.add(next, rest);
            } else if is_other_heading(line) {
                part = None;
            } else if let Some(part) = part {
                account.add(part, line);
            }
        }
        account.question = account.blocked.iter().find_map(|item| question(item));
        account.missing = account.blocked.iter().find_map(|item| tagged(item, "missing").map(str::to_owned));
        account
    }

    const fn list(&mut self, part: Part) -> &mut Vec<String> {
        match part {
            Part::Changed => &mut self.changed,
            Part::Why => &mut self.why,
            Part::Blocked => &mut self.blocked,
            Part::Assumptions => &mut self.assumptions,
        }
    }

    fn add(&mut self, part: Part, line: &str) {
        let indented = line.starts_with([' ', '\t']);
        let (item, bulleted) = without_bullet(line.trim());
        if item.is_empty() || is_nothing(item) {
            return;
        }
        let list = self.list(part);
        match list.last_mut() {
            // A line that continues a bullet belongs to it.
            Some(last) if indented && !bulleted => {
                last.push(' ');
                last.push_str(item);
            }
            _ => list.push(item.to_owned()),
        }
    }
}

/// The part a line begins, and what else stands on the line.
fn heading(line: &str) -> Option<(Part, &str)> {
    if line.starts_with([' ', '\t']) {
        return None;
    }
    let bare = line.trim_start_matches(['#', '*', '_', '-', '>', ' ']);
    let end = bare.find(|c: char| !c.is_alphanumeric()).unwrap_or(bare.len());
    let part = match &*bare[..end].to_ascii_lowercase() {
        "changed" | "changes" => Part::Changed,
        "why" | "reason" | "reasons" => Part::Why,
        "blocked" | "blockers" => Part::Blocked,
        "assumptions" | "assumed" | "assumption" => Part::Assumptions,
        _ => return None,
    };
    // Without a colon it is a heading only if it stands alone: "Changed the parser" is prose.
    let rest = bare[end..].trim_start_matches(['*', '_', ' ']);
    match rest.strip_prefix([':', '：']) {
        Some(rest) => Some((part, rest.trim_start_matches(['*', '_', ' ']))),
        None if rest.is_empty() => Some((part, "")),
        None => None,
    }
}

fn is_other_heading(line: &str) -> bool {
    line.starts_with('#')
}

fn without_bullet(item: &str) -> (&str, bool) {
    let digits = item.len() - item.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    if digits > 0
        && let Some(rest) = item[digits..].strip_prefix(['.', ')'])
        && rest.starts_with(' ')
    {
        return (rest.trim_start(), true);
    }
    match item.strip_prefix(['-', '*', '•']) {
        Some(rest) if rest.is_empty() || rest.starts_with(' ') => (rest.trim_start(), true),
        _ => (item, false),
    }
}

fn is_nothing(item: &str) -> bool {
    let word = item.trim_matches(|c: char| !c.is_alphanumeric() && c != '/').to_ascii_lowercase();
    matches!(&*word, "" | "none" | "nothing" | "n/a" | "no" | "not blocked" | "无" | "没有")
}

/// What follows `tag:` at the start of an item.
fn tagged<'a>(item: &'a str, tag: &str) -> Option<&'a str> {
    let bare = item.trim_start_matches(['*', '_', '`', ' ']);
    let head = bare.get(..tag.len()).filter(|head| head.eq_ignore_ascii_case(tag))?;
    let rest = bare[head.len()..].trim_start_matches(['*', '_', '`', ' ']);
    let rest = rest.strip_prefix([':', '：'])?.trim_start_matches(['*', '_', '`', ' ']);
    if is_nothing(rest) { None } else { Some(rest) }
}

/// The question in an item of the blocked part: marked as one, or ending as one.
fn question(item: &str) -> Option<String> {
    tagged(item, "question").map(str::to_owned).or_else(|| item.ends_with(['?', '？']).then(|| item.to_owned()))
}

#[cfg(test)]
mod tests;
