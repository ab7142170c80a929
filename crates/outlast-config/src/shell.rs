//! What a shell command cannot pass without: the programs of its simple commands, where it is plain enough to tell.
//!
//! It is for refusing what cannot work, and so it says nothing of whatever it does not understand whole: a list with `;` or
//! `||`, a loop, a substitution. A command that is told is one of a chain with `&&`, or the last of a pipeline in it.

/// Words of the shell that begin something else than a simple command.
const KEYWORDS: [&str; 17] = [
    "[[", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in", "select",
    "then", "until", "while",
];

/// What the shell does itself, in every shell that `sh` may be.
const BUILTINS: [&str; 31] = [
    ":", "[", "bg", "break", "cd", "command", "continue", "echo", "export", "false", "fg", "getopts", "hash", "jobs",
    "kill", "local", "printf", "pwd", "read", "readonly", "return", "set", "shift", "test", "times", "trap", "true",
    "type", "umask", "unset", "wait",
];

/// What changes which programs there are, or what comes after it.
const CHANGERS: [&str; 9] = [".", "alias", "eval", "exec", "exit", "source", "time", "ulimit", "unalias"];

/// What stands for a word that only the shell knows: nothing that is a path or a program.
const UNKNOWN: &str = "{}";

/// The commands that all have to be found for `command` to pass: each as its program and arguments. A word that the shell
/// would put something else in place of is `{}`.
pub fn simple_commands(command: &str) -> Vec<Vec<String>> {
    let Some(chain) = Scan::new(command).chain() else { return Vec::new() };
    let mut found = Vec::new();
    let mut has_moved = false;
    for pipeline in chain {
        for (number, words) in pipeline.iter().enumerate() {
            let words = without_lead(words);
            let Some(program) = words.first().map(String::as_str) else { continue };
            let sets_path = words.iter().any(|word| word.starts_with("PATH="));
            if KEYWORDS.contains(&program) {
                return Vec::new();
            }
            if CHANGERS.contains(&program) || sets_path {
                return found;
            }
            has_moved |= program == "cd";
            let is_last = number + 1 == pipeline.len();
            if !is_last || program == UNKNOWN || BUILTINS.contains(&program) {
                continue;
            }
            match (has_moved, program.contains('/') && !program.starts_with('/')) {
                (false, _) => found.push(words.to_vec()),
                // A path means another file elsewhere; a name on the PATH does not.
                (true, false) => found.push(vec![program.to_owned()]),
                (true, true) => {}
            }
        }
    }
    found
}

/// A simple command without `!` and without what it sets for itself.
fn without_lead(words: &[String]) -> &[String] {
    let is_lead = |word: &String| {
        let name = word.split_once('=').map(|(name, _)| name);
        word == "!" || name.is_some_and(|name| !name.is_empty() && name != "PATH" && is_name(name))
    };
    let lead = words.iter().take_while(|word| is_lead(word)).count();
    &words[lead..]
}

fn is_name(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && !text.starts_with(|c: char| c.is_ascii_digit())
}

/// A command on its way to its words.
struct Scan<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    /// The chain, as pipelines of simple commands.
    chain: Vec<Vec<Vec<String>>>,
    word: Option<String>,
    /// Whether the shell puts something else in place of the word.
    is_unknown: bool,
    /// Whether the next word names a file that is read or written.
    is_redirected: bool,
}

impl<'a> Scan<'a> {
    fn new(command: &'a str) -> Self {
        let rest = command.trim().chars().peekable();
        Self { rest, chain: vec![vec![Vec::new()]], word: None, is_unknown: false, is_redirected: false }
    }

    /// All of it; nothing where it holds what is not understood.
    fn chain(mut self) -> Option<Vec<Vec<Vec<String>>>> {
        while let Some(c) = self.rest.next() {
            match c {
                ' ' | '\t' => self.end_word(),
                '#' if self.word.is_none() => while self.rest.next_if(|&c| c != '\n').is_some() {},
                '\'' => self.quoted()?,
                '"' => self.double_quoted()?,
                '\\' => match self.rest.next()? {
                    '\n' => {}
                    c => self.push(c),
                },
                '$' if matches!(self.rest.peek(), Some('(' | '{' | '\'' | '"')) => return None,
                '$' | '*' | '?' | '~' | '{' | '}' => {
                    self.is_unknown = true;
                    self.push(c);
                }
                '>' | '<' => self.redirection(c)?,
                '&' if self.rest.next_if_eq(&'&').is_some() => {
                    self.end_word();
                    self.chain.push(vec![Vec::new()]);
                }
                '|' if self.rest.peek() != Some(&'|') => {
                    self.end_word();
                    self.chain.last_mut()?.push(Vec::new());
                }
                '\n' | ';' | '&' | '|' | '(' | ')' | '`' => return None,
                c => self.push(c),
            }
        }
        self.end_word();
        Some(self.chain)
    }

    fn push(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
    }

    fn quoted(&mut self) -> Option<()> {
        self.word.get_or_insert_default();
        loop {
            match self.rest.next()? {
                '\'' => return Some(()),
                c => self.push(c),
            }
        }
    }

    fn double_quoted(&mut self) -> Option<()> {
        self.word.get_or_insert_default();
        loop {
            match self.rest.next()? {
                '"' => return Some(()),
                '`' => return None,
                '$' if self.rest.peek() == Some(&'(') => return None,
                '$' => self.is_unknown = true,
                '\\' => {
                    let c = self.rest.next()?;
                    self.push(c);
                }
                c => self.push(c),
            }
        }
    }

    /// A file that is read or written, or another descriptor: no word of the command.
    fn redirection(&mut self, first: char) -> Option<()> {
        let is_descriptor = self.word.as_ref().is_some_and(|word| word.chars().all(|c| c.is_ascii_digit()));
        if is_descriptor {
            self.word = None;
        }
        self.end_word();
        let second = self.rest.next_if(|c| matches!(c, '>' | '<' | '&' | '|'));
        if first == '<' && matches!(second, Some('<')) {
            return None;
        }
        self.is_redirected = true;
        Some(())
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        let is_unknown = std::mem::take(&mut self.is_unknown);
        if std::mem::take(&mut self.is_redirected) {
            return;
        }
        // A value that is put in place leaves the name of what is set as it is.
        let is_set = word.split_once('=').is_some_and(|(name, _)| !name.is_empty() && is_name(name));
        let word = if is_unknown && !is_set { UNKNOWN.to_owned() } else { word };
        if let Some(words) = self.chain.last_mut().and_then(|pipeline| pipeline.last_mut()) {
            words.push(word);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::simple_commands;

    fn programs(command: &str) -> Vec<String> {
        simple_commands(command).into_iter().map(|words| words.join(" ")).collect()
    }

    #[test]
    fn what_a_command_cannot_pass_without_is_told() {
        for (command, needs) in [
            ("pytest -q tests/unit", &["pytest -q tests/unit"][..]),
            ("! rg -q 'import requests' src/x.py", &["rg -q import requests src/x.py"]),
            ("CI=1 RUST_LOG=$LEVEL cargo test --quiet", &["cargo test --quiet"]),
            ("cargo fmt --check && cargo test 2>&1 | tee out.txt", &["cargo fmt --check", "tee out.txt"]),
            ("test -e made && sh check.sh > /dev/null", &["sh check.sh"]),
            ("true # verify", &[]),
            ("'my tool' \"$HOME\"/x", &["my tool {}"]),
            ("cd web && npm test && ./x && sh y", &["npm", "sh"]),
            ("npm run *.test \\\n  --silent", &["npm run {} --silent"]),
        ] {
            assert_eq!(programs(command), needs, "{command}");
        }
    }

    #[test]
    fn what_is_not_understood_whole_is_not_found_fault_with() {
        for command in [
            "nosuch || true",
            "nosuch; true",
            "nosuch | cat",
            "for x in a b; do nosuch; done",
            "if nosuch; then exit 1; fi",
            "$TOOL run",
            "`which nosuch` x",
            "x=$(nosuch) && true",
            "nosuch <<EOF\nx\nEOF",
            ". .venv/bin/activate && nosuch",
            "PATH=bin:$PATH nosuch",
            "export PATH=bin && nosuch",
            "cd web && ./nosuch",
            "(nosuch)",
            "nosuch &",
            "echo \"$(nosuch)\"",
            "",
            "'",
        ] {
            let found = programs(command);
            assert!(found.iter().all(|found| found == "cat"), "{command}: {found:?}");
        }
    }
}
