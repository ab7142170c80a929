//! Which models an account is for.

/// Whether an account with these `models` is for the model that is asked for; an account without any is for all.
///
/// Agents ask for more than people write: `sonnet`, the name of a family, is meant by `claude-sonnet-4-5-20250929`, and a
/// version by its dated release. A size is another model: `gpt-5` is not meant by `gpt-5-mini`. A `*` stands for anything.
pub fn is_for_model(models: &[String], asked: &str) -> bool {
    let asked = asked.to_ascii_lowercase();
    // `vendor/model`, as many of those who pass requests on write it.
    let bare = asked.rsplit('/').next().unwrap_or(&asked);
    models.is_empty() || models.iter().any(|model| means(&model.to_ascii_lowercase(), &asked, bare))
}

/// Names that stand for a family of models wherever an agent's program takes names.
const FAMILIES: [&str; 3] = ["haiku", "opus", "sonnet"];

/// Whether an account with these `models` may be for a model that a plan names: an agent's program may ask for another name
/// than it is given. Only where this says no is it certain that each of its requests would be refused.
pub fn may_be_for_model(models: &[String], named: &str) -> bool {
    let named = named.to_ascii_lowercase();
    let named = named.split('[').next().unwrap_or(&named);
    let is_alias = !named.is_empty() && named.chars().all(|c| c.is_ascii_alphabetic());
    let is_of_it = |model: &String| {
        let model = model.to_ascii_lowercase();
        model.contains('*') || model.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == named)
    };
    // What another alias stands for, its program alone knows.
    is_for_model(models, named) || is_alias && (!FAMILIES.contains(&named) || models.iter().any(is_of_it))
}

fn means(model: &str, asked: &str, bare: &str) -> bool {
    if model.contains('*') {
        return matches(model, asked) || matches(model, bare);
    }
    let is_family = model.chars().all(|c| c.is_ascii_alphabetic());
    let is_release = |rest: &str| {
        let rest = rest.trim_start_matches(['-', '@', ':']);
        rest == "latest" || rest.len() >= 8 && rest.chars().all(|c| c.is_ascii_digit() || c == '-')
    };
    model == asked
        || model == bare
        || is_family && bare.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == model)
        || bare.strip_prefix(model).is_some_and(|rest| rest.starts_with(['-', '@', ':']) && is_release(rest))
}

/// Whether a text is what a pattern says, in which a `*` stands for anything.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::{is_for_model, may_be_for_model};

    #[test]
    fn a_family_and_a_version_mean_their_releases_and_no_other_size() {
        let table: [(&str, &[&str], &[&str]); 5] = [
            ("sonnet", &["sonnet", "claude-sonnet-4-5-20250929", "anthropic/claude-sonnet-4.5"], &["claude-opus-4-1"]),
            (
                "claude-sonnet-4-5",
                &["claude-sonnet-4-5", "Claude-Sonnet-4-5-20250929", "claude-sonnet-4-5@20250929"],
                &["claude-sonnet-4", "claude-sonnet-4-5-mini"],
            ),
            (
                "gpt-5",
                &["gpt-5", "openai/gpt-5", "gpt-5-2025-08-07", "gpt-5-latest"],
                &["gpt-5-mini", "gpt-5.1", "gpt-50"],
            ),
            ("gpt-5*", &["gpt-5", "gpt-5-mini", "openai/gpt-5.1"], &["gpt-4"]),
            ("*-mini", &["gpt-5-mini"], &["gpt-5-mini-2"]),
        ];
        for (model, means, others) in table {
            let models = ["never".to_owned(), model.to_owned()];
            for asked in means {
                assert!(is_for_model(&models, asked), "{model} means {asked}");
            }
            for asked in others {
                assert!(!is_for_model(&models, asked), "{model} does not mean {asked}");
            }
        }
        assert!(is_for_model(&[], "anything"));
    }

    #[test]
    fn a_plan_is_refused_only_a_model_that_its_agent_could_not_ask_for() {
        let of = |models: &[&str]| models.iter().map(|model| (*model).to_owned()).collect::<Vec<_>>();
        for (models, named) in [
            (&["claude-sonnet-4-5"][..], "sonnet"),
            (&["claude-sonnet-4-5"], "Sonnet[1m]"),
            (&["claude-*"], "opus"),
            (&["haiku"], "opusplan"),
            (&["haiku"], "default"),
            (&["gpt-5"], "openai/gpt-5"),
            (&[], "anything"),
        ] {
            assert!(may_be_for_model(&of(models), named), "{models:?} {named}");
        }
        for (models, named) in [
            (&["haiku"][..], "sonnet"),
            (&["claude-sonnet-4-5"], "claude-opus-4-1"),
            (&["gpt-5"], "gpt-5-mini"),
            (&["gpt-5", "gpt-4*"], "o3"),
        ] {
            assert!(!may_be_for_model(&of(models), named), "{models:?} {named}");
        }
    }
}
