//! Who is let go while an account is tried out.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::tz::TimeZone;
use tokio::sync::oneshot::Receiver;
use tokio::sync::oneshot::error::TryRecvError;

use super::*;
use crate::state_loop::LoopHandle;

type Reply = Receiver<Result<Granted, Denied>>;

fn asked(asks: &mut Asks, engine: &LoopHandle) -> Reply {
    asked_for(asks, engine, None)
}

fn asked_for(asks: &mut Asks, engine: &LoopHandle, model: Option<&str>) -> Reply {
    let ask = Ask {
        path_attempt: None,
        key: "client".to_owned(),
        dialect: Dialect::Anthropic,
        model: model.map(str::to_owned),
        context_tokens: None,
        request_bytes: 1,
        request: String::new(),
        turn_kind: TurnKind::Main,
        sub_agent: None,
        received_at: Timestamp::EPOCH,
        again_after: None,
    };
    let (reply, answer) = tokio::sync::oneshot::channel();
    asks.push(PendingAsk { ask: Arc::new(ask), reply, engine: engine.clone() });
    answer
}

fn goes(reply: &mut Reply) -> Option<Grant> {
    reply.try_recv().ok()?.ok()?.take()
}

#[test]
fn a_trial_that_gets_no_answer_keeps_nobody_waiting_for_longer_than_a_minute() {
    let mut core = Core::default();
    let main = AccountId::new("main");
    let info = AccountInfo { id: main.clone(), dialects: vec![Dialect::Anthropic], login: false, models: Vec::new() };
    let allowance = Allowance::new(BTreeMap::new(), TimeZone::UTC, &core);
    let mut asks = Asks::new(vec![info], allowance, Some("client".to_owned()), Arc::default(), |_| None);
    let at = |seconds| Timestamp::EPOCH.plus(Duration::from_secs(seconds));
    let class = Class::Network;
    core.accounts.insert(main.clone(), Window::Probing { class, since: at(0), taken: 0, strikes: 1 });

    let (engine, _inbox) = LoopHandle::channel(std::path::Path::new("/"));
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

#[test]
fn a15_a_crowd_that_is_turned_away_at_one_account_moves_to_the_next_by_one_two_and_four() {
    let mut core = Core::default();
    let [main, next] = ["main", "next"].map(AccountId::new);
    let info = |id: &AccountId| AccountInfo {
        id: id.clone(),
        dialects: vec![Dialect::Anthropic],
        login: false,
        models: Vec::new(),
    };
    let allowance = Allowance::new(BTreeMap::new(), TimeZone::UTC, &core);
    let client = Some("client".to_owned());
    let mut asks = Asks::new(vec![info(&main), info(&next)], allowance, client, Arc::default(), |_| None);
    let at = |seconds| Timestamp::EPOCH.plus(Duration::from_secs(seconds));
    let (engine, _inbox) = LoopHandle::channel(std::path::Path::new("/"));
    let crowd = |asks: &mut Asks, n: u32| (0..n).map(|_| asked(asks, &engine)).collect::<Vec<Reply>>();
    // Nobody is kept waiting while all is well.
    let mut before = crowd(&mut asks, 10);
    asks.settle(&core, at(0));
    assert!(before.iter_mut().all(|reply| goes(reply).is_some_and(|grant| grant.account == main)));

    let closed = Window::Closed { class: Class::WindowQuota, until: at(9000), guessed: false, strikes: 1 };
    core.accounts.insert(main.clone(), closed.clone());
    let mut waiting = crowd(&mut asks, 17);
    let mut rounds = Vec::new();
    let mut now = 1;
    while !waiting.is_empty() {
        asks.settle(&core, at(now));
        let went: Vec<Grant> = waiting.iter_mut().filter_map(goes).collect();
        assert!(went.iter().all(|grant| grant.account == next));
        waiting.retain_mut(|reply| matches!(reply.try_recv(), Err(TryRecvError::Empty)));
        rounds.push(went.len());
        // One that gets no answer keeps the others waiting for a minute at most.
        assert!(waiting.is_empty() || asks.wake_at(&core, at(now)) == Some(at(now + 60)));
        for grant in went {
            assert!(asks.answered(&grant.exchange_id).is_some());
        }
        now += 1;
    }
    assert_eq!(rounds, [1, 2, 4, 8, 2]);

    // It begins anew when the first account has been open in between.
    core.accounts.remove(&main);
    asks.settle(&core, at(now));
    core.accounts.insert(main, closed);
    let mut again = crowd(&mut asks, 5);
    asks.settle(&core, at(now));
    assert_eq!(again.iter_mut().filter_map(goes).count(), 1);
}

#[test]
fn a15_a_limit_per_minute_is_waited_for_and_moves_nobody() {
    let mut core = Core::default();
    let [main, next] = ["main", "next"].map(AccountId::new);
    let info = |id: &AccountId| AccountInfo {
        id: id.clone(),
        dialects: vec![Dialect::Anthropic],
        login: false,
        models: Vec::new(),
    };
    let allowance = Allowance::new(BTreeMap::new(), TimeZone::UTC, &core);
    let client = Some("client".to_owned());
    let mut asks = Asks::new(vec![info(&main), info(&next)], allowance, client, Arc::default(), |_| None);
    let at = |seconds| Timestamp::EPOCH.plus(Duration::from_secs(seconds));
    let (engine, _inbox) = LoopHandle::channel(std::path::Path::new("/"));
    let minute = |until| Window::Closed { class: Class::MinuteLimit, until, guessed: false, strikes: 1 };
    core.accounts.insert(main.clone(), minute(at(60)));
    let mut reply = asked(&mut asks, &engine);
    asks.settle(&core, at(0));
    assert!(goes(&mut reply).is_none());
    assert_eq!(asks.wake_at(&core, at(0)), Some(at(60)));
    // While one request tries it out, too.
    core.accounts
        .insert(main.clone(), Window::Probing { class: Class::MinuteLimit, since: at(60), taken: 0, strikes: 1 });
    let mut second = asked(&mut asks, &engine);
    asks.settle(&core, at(60));
    assert!(goes(&mut reply).is_some_and(|grant| grant.account == main) && goes(&mut second).is_none());
    // What is said to last for longer is no such limit, whatever it is called.
    core.accounts.insert(main, minute(at(9000)));
    asks.settle(&core, at(61));
    assert!(goes(&mut second).is_some_and(|grant| grant.account == next));
}

#[test]
fn a_request_goes_to_the_first_account_that_is_for_its_model_and_is_refused_where_none_is() {
    let core = Core::default();
    let info = |id: &str, models: &[&str]| AccountInfo {
        id: AccountId::new(id),
        dialects: vec![Dialect::Anthropic],
        login: false,
        models: models.iter().map(ToString::to_string).collect(),
    };
    let infos = vec![info("small", &["haiku"]), info("large", &["sonnet", "opus"])];
    let allowance = Allowance::new(BTreeMap::new(), TimeZone::UTC, &core);
    let mut asks = Asks::new(infos, allowance, Some("client".to_owned()), Arc::default(), |_| None);
    let (engine, _inbox) = LoopHandle::channel(std::path::Path::new("/"));
    let mut answer = |model: Option<&str>| {
        let mut reply = asked_for(&mut asks, &engine, model);
        asks.settle(&core, Timestamp::EPOCH);
        reply.try_recv().unwrap().map(|granted| granted.take().unwrap().account.to_string())
    };
    assert_eq!(answer(Some("claude-sonnet-4-5-20250929")), Ok("large".to_owned()));
    assert_eq!(answer(Some("claude-haiku-4-5")), Ok("small".to_owned()));
    assert_eq!(answer(None), Ok("small".to_owned()), "a list of models, for one");
    let Err(Denied::NoAccount { reason }) = answer(Some("gpt-5")) else { panic!("it goes out") };
    assert!(
        reason.contains("`gpt-5`") && reason.contains("`small` is for haiku; `large` is for sonnet, opus"),
        "{reason}"
    );
}
