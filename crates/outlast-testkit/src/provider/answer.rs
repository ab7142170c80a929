//! Makes the answer to a request: the scenario's turn, in tool calls that the agent offers, with a plausible usage.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::fault::InlineFault;
use super::resolve::position;
use super::tools::{call_for, poll_for};
use crate::digest;
use crate::script::{Action, Scenario, Turn, UsageOverride};
use crate::wire::{Answer, Call, Conversation, Dialect, Item, Usage};

/// An answer and where it comes from.
#[derive(Debug)]
pub(super) struct Reply {
    pub answer: Answer,
    pub scenario: Option<String>,
    /// The turn, from 1.
    pub step: Option<usize>,
    pub background: bool,
    pub conversation: String,
    pub faults: Vec<InlineFault>,
}

/// The parts of a request that an answer depends on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Question<'a> {
    pub dialect: Dialect,
    pub conversation: &'a Conversation,
    /// Length of the body.
    pub body_bytes: usize,
    /// Hash of the body; ids are made of it.
    pub body_digest: &'a str,
    /// Unix seconds.
    pub now: u64,
}

/// Answers a request out of the scenario that it names, or out of the fallback.
///
/// # Errors
/// A sentence for the agent's author when nothing is scripted for the request.
pub(super) fn reply(
    question: Question<'_>,
    scenarios: &BTreeMap<String, Scenario>,
    fallback: Option<&str>,
) -> Result<Reply, String> {
    let Question { conversation, body_digest, now: created_at, .. } = question;
    let found = position(conversation, scenarios, fallback)?;
    let has_actions = |scenario: &Scenario| scenario.turns().iter().any(|turn| turn.action.is_some());
    let seed = body_digest[..24].to_owned();
    let frame = |text: String, call: Option<Call>, turn: &Turn| {
        let usage = usage(question, &text, call.as_ref(), turn);
        let model = if conversation.model.is_empty() { "scripted".to_owned() } else { conversation.model.clone() };
        Answer { seed: seed.clone(), model, thinking: turn.think.clone(), text, call, usage, created_at }
    };
    // A request without tools beside a goal that needs them is a title or a summary: it moves nothing on.
    let background = conversation.tools.is_empty() && found.as_ref().is_none_or(|at| has_actions(&at.scenario));
    if background {
        let text = conversation
            .schema
            .as_ref()
            .map_or_else(|| "Scripted title".to_owned(), |schema| filler(schema).to_string());
        return Ok(Reply {
            answer: frame(text, None, &Turn::default()),
            scenario: found.map(|at| at.scenario.name),
            step: None,
            background: true,
            conversation: String::new(),
            faults: Vec::new(),
        });
    }
    let at = found.ok_or(
        "the request names no scenario: the goal needs [[scenario:NAME]] or a block fenced with ```outlast-script",
    )?;
    let (index, turn) = at.scenario.turn(at.answered);
    // The same turn may be asked for twice in one conversation; its calls must not share an id.
    let call_id =
        |count: usize| format!("call_{}", &digest(format!("{}/{index}/{count}", at.conversation).as_bytes())[..20]);
    let call = |(name, arguments)| Call { id: call_id(conversation.items.len()), name, arguments };
    let polled = at.running.and_then(|session| poll_for(session, conversation));
    let (text, call) = match (polled, &turn.action) {
        (Some(poll), _) => (String::new(), Some(call(poll))),
        (None, Some(Action::Edit { path, .. } | Action::Write { path, .. })) if at.unread => {
            let read = Action::Read { path: path.clone() };
            (String::new(), Some(call(call_for(&read, conversation)?)))
        }
        (None, Some(action)) => (turn.say.clone().unwrap_or_default(), Some(call(call_for(action, conversation)?))),
        (None, None) => (turn.say.clone().unwrap_or_else(|| at.scenario.closing_account()), None),
    };
    Ok(Reply {
        answer: frame(text, call, turn),
        scenario: Some(at.scenario.name.clone()),
        step: Some(index + 1),
        background: false,
        conversation: at.conversation,
        faults: turn.faults.clone(),
    })
}

/// Four bytes to the token, everything before the newest turn from the cache: plausible, and the same every time.
fn usage(question: Question<'_>, text: &str, call: Option<&Call>, turn: &Turn) -> Usage {
    let Question { conversation, body_bytes, .. } = question;
    let tokens = |bytes: usize| bytes.div_ceil(4) as u64;
    let all = tokens(body_bytes).max(4);
    let last_call = conversation.items.iter().rposition(|item| matches!(item, Item::Call(_)));
    let fresh = conversation.items[last_call.unwrap_or(0)..].iter().map(item_bytes).sum::<usize>();
    let cache_write = if last_call.is_some() { tokens(fresh).min(all - 4) } else { all - 4 };
    let written = text.len() + call.map_or(0, |call| call.name.len() + call.arguments.to_string().len());
    let reasoning = turn.think.as_ref().map_or(0, |think| tokens(think.len()));
    let UsageOverride { input, output, cache_read, cache_write: stated_write, reasoning: stated_reasoning } =
        turn.usage;
    let reasoning = stated_reasoning.unwrap_or(reasoning);
    let mut usage = Usage {
        input: input.unwrap_or(4),
        cache_read: cache_read.unwrap_or(all - 4 - cache_write),
        cache_write: stated_write.unwrap_or(cache_write),
        output: output.unwrap_or_else(|| tokens(written).max(1) + reasoning).max(reasoning),
        reasoning,
    };
    // What a dialect has no word for is not billed apart, so that a reader of the answer can know the whole bill.
    match question.dialect {
        Dialect::Anthropic => usage.reasoning = 0,
        Dialect::Responses | Dialect::Chat | Dialect::Gemini => usage.input += std::mem::take(&mut usage.cache_write),
    }
    usage
}

fn item_bytes(item: &Item) -> usize {
    match item {
        Item::User { text } | Item::Assistant { text } | Item::Result { text, .. } => text.len(),
        Item::Call(call) => call.name.len() + call.arguments.to_string().len(),
    }
}

/// A small value that a JSON schema accepts.
fn filler(schema: &Value) -> Value {
    if let Some(first) = schema.get("enum").and_then(|values| values.get(0)) {
        return first.clone();
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("object") => {
            let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
            Value::Object(properties.map(|(name, schema)| (name.clone(), filler(schema))).collect::<Map<_, _>>())
        }
        Some("array") => json!([]),
        Some("boolean") => json!(false),
        Some("number" | "integer") => json!(0),
        _ => json!("Scripted title"),
    }
}
