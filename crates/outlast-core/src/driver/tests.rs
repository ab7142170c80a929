//! One step: what shares a commit, what is durable before what, what is started and cancelled.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::*;
use crate::admit::AttemptNews;
use crate::ids::Epoch;
use crate::record::Outcome;
use crate::task::Stage;
use crate::testing::{core, run, show};

/// Batches that were written, and whether the next one can be.
#[derive(Clone, Default)]
struct Paper(Rc<RefCell<(Vec<Vec<String>>, bool)>>, Rc<Cell<bool>>);

impl Store for Paper {
    type Error = &'static str;

    fn append(&mut self, records: &[(u64, Record)]) -> Result<(), Self::Error> {
        let mut paper = self.0.borrow_mut();
        if paper.1 {
            return Err("the disk is full");
        }
        let records: Vec<Record> = records.iter().map(|(_, record)| record.clone()).collect();
        paper.0.push(show(&records));
        Ok(())
    }

    fn has_room(&mut self) -> bool {
        !self.1.get()
    }
}

#[derive(Default)]
struct Asked(Vec<String>);

impl Effects for Asked {
    fn start(&mut self, key: &OperationKey, _: &Operation) {
        self.0.push(format!("start {} {:?}", key.task, key.step));
    }

    fn cancel(&mut self, key: &OperationKey) {
        self.0.push(format!("cancel {} {:?}", key.task, key.step));
    }

    fn no_room(&mut self) {
        self.0.push("no room".to_owned());
    }
}

fn driver(journal: &str) -> (Driver<Paper, Asked>, Paper) {
    let paper = Paper::default();
    (Driver::new(core(journal), paper.clone(), Asked::default()), paper)
}

fn news(task: &str, news: AttemptNews) -> Input {
    Command::Attempt { run: run(), task: task.into(), number: 1, epoch: Epoch(1), news }.into()
}

fn held() -> AttemptNews {
    AttemptNews::Held { class: crate::Class::Overload, until: None }
}

#[test]
fn news_of_different_tasks_share_a_commit() {
    let (mut driver, paper) = driver("run\n task a\n task b\n a start 1\n b start 1");
    driver.step(Timestamp::EPOCH, vec![news("a", held()), news("b", held())]).unwrap();
    assert_eq!(paper.0.borrow().0, [["a held 1 overload", "b held 1 overload"]]);
}

#[test]
fn who_leaves_parks_what_waits_and_starts_nothing_until_they_stay() {
    let journal =
        "run\n task a quota=max\n task b\n task c\n a start 1\n b start 1\n a session 1 s\n a held 1 overload 9000";
    let (mut driver, paper) = driver(journal);
    driver.parks(Parks::Held);
    driver.step(Timestamp::EPOCH, Vec::new()).unwrap();
    assert_eq!(paper.0.borrow().0, [["a ending 1 limit overload"]]);
    driver.step(Timestamp::EPOCH, vec![news("a", AttemptNews::Ended), news("b", held())]).unwrap();
    assert_eq!(paper.0.borrow().0[1..], [vec!["a ended 1", "b held 1 overload"], vec!["b ending 1 limit overload"]]);
    let task = driver.core().run(&run()).unwrap().tasks[0].clone();
    assert_eq!((task.state(), task.parked_until), ("parked", Some(Timestamp::from_millis(9000))));
    assert_eq!((task.tries_used, task.session.as_deref()), (0, Some("s")));
    driver.parks(Parks::Nothing);
    driver.step(Timestamp::EPOCH, Vec::new()).unwrap();
    assert_eq!(paper.0.borrow().0[3..], [["a start 2 session s", "c start 1 fresh"]]);
    assert_eq!(driver.core().run(&run()).unwrap().tasks[0].parked_until, None);
    // Something is in the way of everything: what is at work is not left alone either.
    driver.parks(Parks::All);
    driver.step(Timestamp::EPOCH, Vec::new()).unwrap();
    assert_eq!(paper.0.borrow().0[4..], [["a ending 2 parked", "c ending 1 parked"]]);
}

#[test]
fn what_undoes_an_earlier_input_of_the_batch_is_not_lost() {
    let (mut driver, paper) = driver("run\n task a\n a start 1");
    driver.step(Timestamp::EPOCH, vec![news("a", held()), news("a", AttemptNews::Released)]).unwrap();
    assert_eq!(paper.0.borrow().0, [["a held 1 overload"], ["a released 1"]]);
    let (mut driver, paper) = self::driver("run\n task a\n a start 1");
    driver.step(Timestamp::EPOCH, vec![Command::PauseRun(run()).into(), Command::ResumeRun(run()).into()]).unwrap();
    assert_eq!(paper.0.borrow().0, [["pause"], ["resume"]]);
}

#[test]
fn what_is_refused_before_an_earlier_input_is_true_is_asked_again_after_it() {
    let (mut driver, _) = driver("run\n task a\n task b needs=a\n a done\n b done");
    let land = |task: &str| Command::Land { run: run(), task: task.into() }.into();
    let answers = driver.step(Timestamp::EPOCH, vec![land("a"), land("b")]).unwrap();
    assert_eq!(answers, [Ok(()), Ok(())]);
}

#[test]
fn nothing_that_is_not_durable_takes_effect() {
    let (mut driver, paper) = driver("run\n task a\n a start 1");
    driver.step(Timestamp::EPOCH, Vec::new()).unwrap();
    let before = driver.core().clone();
    paper.0.borrow_mut().1 = true;
    let exited = news("a", AttemptNews::Exited(Outcome::Finished));
    assert_eq!(driver.step(Timestamp::EPOCH, vec![exited]), Err("the disk is full"));
    assert_eq!(*driver.core(), before);
    assert_eq!(driver.effects().0, ["start a Attempt(1)"]);
}

#[test]
fn effects_follow_what_is_desired_and_a_returned_one_is_started_again_while_it_is() {
    let (mut driver, paper) = driver("run\n task a");
    driver.step(Timestamp::EPOCH, Vec::new()).unwrap();
    assert_eq!(paper.0.borrow().0, [["a start 1 fresh"]]);
    assert_eq!(driver.effects().0, ["start a Attempt(1)"]);
    let key = OperationKey { run: run(), task: "a".into(), step: crate::desired::Step::Attempt(1) };
    driver.step(Timestamp::EPOCH, vec![Input { command: None, returns: Some(key) }]).unwrap();
    assert_eq!(driver.effects().0, ["start a Attempt(1)", "start a Attempt(1)"]);
    driver.step(Timestamp::EPOCH, vec![news("a", AttemptNews::Exited(Outcome::Finished))]).unwrap();
    assert_eq!(driver.effects().0[2..], ["cancel a Attempt(1)", "start a End(1)"]);
    let stage = &driver.core().runs[&run()].tasks[0].attempt().unwrap().stage;
    assert!(matches!(stage, Stage::Ending(_)), "{stage:?}");
}

#[test]
fn after_a_crash_the_same_is_asked_for() {
    let journal = "run auto\n task a\n task b\n task c\n a start 1\n b start 1\n b ending 1 finished\n c done";
    let (mut first, _) = driver(journal);
    first.step(Timestamp::EPOCH, Vec::new()).unwrap();
    let (mut second, paper) = driver(journal);
    second.step(Timestamp::EPOCH, Vec::new()).unwrap();
    assert_eq!(first.effects().0, ["start a Attempt(1)", "start b End(1)", "start c Candidate"]);
    assert_eq!(second.effects().0, first.effects().0);
    assert!(paper.0.borrow().0.is_empty());
}

#[test]
fn e25_without_room_nothing_starts_what_lives_goes_on_and_with_room_it_starts_in_that_turn() {
    let (mut driver, paper) = driver("run\n task a\n task b\n a start 1");
    paper.1.set(true);
    driver.step(Timestamp::EPOCH, Vec::new()).unwrap();
    assert_eq!(driver.effects().0, ["no room", "start a Attempt(1)"]);
    assert!(driver.is_held_up());
    let exited = news("a", AttemptNews::Exited(Outcome::Finished));
    driver.step(Timestamp::EPOCH, vec![exited]).unwrap();
    assert_eq!(paper.0.borrow().0, [vec!["a exit 1 finished"], vec!["a ending 1 finished"]]);
    assert_eq!(driver.effects().0[2..], ["cancel a Attempt(1)", "start a End(1)"], "said once");
    paper.1.set(false);
    driver.step(Timestamp::EPOCH, Vec::new()).unwrap();
    assert_eq!(driver.effects().0[4..], ["start b Attempt(1)"]);
    assert!(!driver.is_held_up());
}
