//! Who is let go while an account is tried out.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::tz::TimeZone;
use tokio::sync::oneshot::Receiver;

use super::*;
use crate::state_loop::LoopHandle;

type Reply = Receiver<Result<Granted, Denied>>;

fn asked(asks: &mut Asks, engine: &LoopHandle) -> Reply {
    let ask = Ask {
        path_attempt: None,
        key: "client".to_owned(),
        dialect: Dialect::Anthropic,
        model: None,
        request_bytes: 1,
        request: String::new(),
        turn_kind: TurnKind::Main,
        sub_agent: None,
        received_at: Timestamp::EPOCH,
        again_after: None,
    };
    let (reply, answer) = tokio::sync::oneshot::channel();
    asks.push(PendingAsk { ask, reply, engine: engine.clone() });
    answer
}

fn goes(reply: &mut Reply) -> Option<Grant> {
    reply.try_recv().ok()?.ok()?.take()
}

#[test]
fn a_trial_that_gets_no_answer_keeps_nobody_waiting_for_longer_than_a_minute() {
    let mut core = Core::default();
    let main = AccountId::new("main");
    let info = AccountInfo { id: main.clone(), dialects: vec![Dialect::Anthropic], login: false };
    let allowance = Allowance::new(BTreeMap::new(), TimeZone::UTC, &core);
    let mut asks = Asks::new(vec![info], allowance, Some("client".to_owned()), Arc::default(), |_| None);
    let at = |seconds| Timestamp::EPOCH.plus(Duration::from_secs(seconds));
    let class = Class::Network;
    core.accounts.insert(main.clone(), Window::Probing { class, since: at(0), taken: 0, strikes: 1 });

    let (engine, _inbox) = LoopHandle::channel();
    let mut replies: Vec<Reply> = (0..3).map(|_| asked(&mut asks, &engine)).collect();
    asks.settle(&core, at(0));
    let first = goes(&mut replies[0]);
    assert!(first.is_some() && goes(&mut replies[1]).is_none());
    assert_eq!(asks.wake_at(&core, at(0)), Some(at(60)), "the loop looks again by itself");
    asks.settle(&core, at(59));
    assert!(goes(&mut replies[1]).is_none());
    // One more tries, and not the crowd.
    asks.settle(&core, at(60));
    let second = goes(&mut replies[1]);
    assert!(second.is_some() && goes(&mut replies[2]).is_none());
    // What was silent for long and is answered after all counts as any other.
    let answered = first.and_then(|grant| asks.answered(&grant.exchange_id));
    assert_eq!(answered, Some(Command::AccountAnswered(main)));
}
