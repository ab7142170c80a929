//! What can never succeed for now is told, with what helps, and everybody can leave: the repository or the store is gone, or
//! a lock is never let go.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::Signal;
use outlast_testkit::provider::{Fault, Rule, Script, When};

use crate::running::{Ran, Running};
use crate::world::{Plan, World, text};

/// Much longer than anybody needs to leave, on a busy machine with two cores.
const BOUND: Duration = Duration::from_secs(60);

/// A run whose agent has done a part and waits for its provider, of which something is moved away then.
struct Moved {
    world: World,
    /// The run, until it is left.
    run: Option<Running>,
    id: String,
    from: PathBuf,
    to: PathBuf,
}

impl Moved {
    fn new(arguments: &[&str], what: impl Fn(&World) -> PathBuf) -> Self {
        let stuck = Fault::Hold { seconds: None };
        let rule = Rule { when: When { step: Some(2), ..When::default() }, fault: stuck, times: Some(1) };
        let world = World::with_script(Script::default().with_fault(rule));
        let script = "write parts/one.txt \"part one\\n\"\nwrite parts/two.txt \"part two\\n\"";
        world.plan(&Plan::new("land = \"auto\"").task("works", script, "writes = [\"parts/**\"]\nretries = 0"));
        let run = world.start(&[&["run", "--yes"], arguments].concat());
        world.provider_saw("a second turn", |log| log.iter().any(|entry| entry.step == Some(2)));
        let id = text(&world.status()["run"]);
        let (from, to) = (what(&world), world.env.root().join("moved"));
        fs::rename(&from, &to).unwrap();
        Self { world, run: Some(run), id, from, to }
    }

    fn repository(arguments: &[&str]) -> Self {
        Self::new(arguments, |world| world.repo.dir().to_owned())
    }

    fn git_folder(arguments: &[&str]) -> Self {
        Self::new(arguments, |world| world.repo.dir().join(".git"))
    }

    fn store(arguments: &[&str]) -> Self {
        Self::new(arguments, |world| world.homes().remove(0).join("store.git"))
    }

    /// The binary in some folder.
    fn at(&self, place: &Path, arguments: &[&str]) -> Running {
        let mut command = self.world.command(arguments);
        command.current_dir(place);
        Running::of(command)
    }

    /// `status` says there why nothing goes on, and what helps.
    #[track_caller]
    fn is_told(&self, place: &Path, state: &str, cause: &str, fix: &str) {
        let status = self.at(place, &["status", "--json"]).end().ends(0).json();
        let task = &status["tasks"][0];
        assert_eq!((&status["run"], &task["state"]), (&self.id.as_str().into(), &state.into()), "{status:#}");
        assert_eq!((&task["cause"], task["attempts"].as_u64()), (&cause.into(), Some(1)), "{task:#}");
        let fixes: Vec<String> = task["fix"].as_array().unwrap().iter().map(text).collect();
        assert!(fixes.iter().any(|said| said.starts_with(fix)), "{fix}: {fixes:?}");
        self.at(place, &["status"]).end().ends(0).says(fix).says("nothing is lost");
    }

    /// With everything in its place again it goes on with what was done, and nobody is at fault.
    fn goes_on(self) {
        let Self { world, from, to, .. } = self;
        fs::rename(to, from).unwrap();
        world.run(&["resume"]).ends(0);
        let task = world.task("works");
        assert_eq!(task["state"], "landed", "{task:#}");
        for part in ["one", "two"] {
            let landed = world.repo.text(&["show", &format!("{}:parts/{part}.txt", world.target())]).unwrap();
            assert_eq!(landed, format!("part {part}"));
        }
        world.nothing_is_left();
    }
}

fn mv(from: &str, to: &Path) -> String {
    format!("mv {from} '{}'", to.display())
}

fn quoted(path: &Path) -> String {
    format!("'{}'", path.display())
}

/// It ended by this signal or wish, and said how it goes on.
#[track_caller]
fn left(mut running: Running, code: i32) -> Ran {
    assert!(running.ended_within(BOUND), "it does not end");
    running.end().ends(code).says("is not there any more").says("nothing is lost").says("outlast resume")
}

#[test]
fn a_repository_that_is_moved_is_told_of_at_both_places_and_its_run_can_be_left() {
    let mut moved = Moved::repository(&[]);
    let home = moved.world.env.home().to_owned();
    let (old, new) = (moved.from.clone(), moved.to.clone());
    let (unknown, known) = (mv("WHERE_IT_IS_NOW", &old), mv(&quoted(&new), &old));
    moved.is_told(&home, "held", "repository_gone", &unknown);
    moved.is_told(&new, "held", "repository_gone", &known);
    // Beside its engine, and after it.
    moved.at(&new, &["resume"]).end().ends(4).says(&known).says("outlast resume");
    moved.run.as_ref().unwrap().signal(Signal::SIGTERM);
    left(moved.run.take().unwrap(), 4);
    assert!(moved.world.living_shims().is_empty(), "its agents are ended");
    for place in [&home, &new] {
        moved.at(place, &["resume", &moved.id]).end().ends(4).says("mv ");
    }
    // Nothing is begun a second time there.
    moved.at(&new, &["run", "--yes"]).end().ends(4).says(&known).says("outlast run --again");
    let told = moved.at(&new, &["resume", "--json"]).end().ends(4).json();
    assert_eq!(told["error"]["code"], "repository/elsewhere", "{told:#}");
    assert!(text(&told["error"]["fix"][0]).starts_with(&known), "{told:#}");
    moved.goes_on();
}

#[test]
fn a_run_without_its_repository_is_stopped_and_left_by_whoever_need_not_wait() {
    let mut moved = Moved::repository(&[]);
    let stop = moved.at(&moved.to, &["stop"]);
    left(stop, 4);
    left(moved.run.take().unwrap(), 4);
    moved.goes_on();

    let mut moved = Moved::repository(&["--no-wait"]);
    left(moved.run.take().unwrap(), 4);
    moved.goes_on();
}

#[test]
fn a_git_folder_that_is_gone_is_told_of_in_its_checkout() {
    let mut moved = Moved::git_folder(&[]);
    let checkout = moved.world.repo.dir().to_owned();
    moved.is_told(&checkout, "held", "repository_gone", &mv("WHERE_IT_IS_NOW", &moved.from));
    moved.run.as_ref().unwrap().signal(Signal::SIGINT);
    left(moved.run.take().unwrap(), 4);
    moved.at(&checkout, &["resume"]).end().ends(4).says("mv ");
    moved.goes_on();
}

#[test]
fn a_store_that_is_gone_is_told_of_and_not_made_anew() {
    let mut moved = Moved::store(&[]);
    let checkout = moved.world.repo.dir().to_owned();
    let helps = mv("WHERE_IT_IS_NOW", &moved.from);
    moved.is_told(&checkout, "held", "store_gone", &helps);
    let stop = moved.at(&checkout, &["stop"]);
    left(stop, 12);
    left(moved.run.take().unwrap(), 12);
    let told = moved.at(&checkout, &["resume", "--json"]).end().ends(12).json();
    assert_eq!(told["error"]["code"], "host/store-gone", "{told:#}");
    assert!(text(&told["error"]["fix"][0]).starts_with(&helps), "{told:#}");
    assert!(!moved.from.exists(), "it is the place of the one that is put back");
    moved.goes_on();
}

/// A world whose target's lock is held by somebody, and the command that helps.
fn locked(run: &str) -> (World, PathBuf, String) {
    let world = World::new();
    world.plan(&Plan::new(&format!("target = \"landed\"\n{run}")).part("one"));
    let lock = world.repo.dir().join(".git/refs/heads/landed.lock");
    fs::write(&lock, "").unwrap();
    let helps = format!("rm {}", quoted(&lock));
    (world, lock, helps)
}

/// It ended, although the lock was never let go.
#[track_caller]
fn locked_out(mut running: Running, helps: &str) {
    assert!(running.ended_within(BOUND), "it does not end");
    running.end().ends(12).says("is held by another git").says(helps).says("outlast resume");
}

#[test]
fn a_lock_that_is_never_let_go_is_told_of_and_everybody_can_leave() {
    let (world, lock, helps) = locked("land = \"auto\"");
    locked_out(world.start(&["run", "--yes", "--no-wait"]), &helps);
    let task = world.task("one");
    assert_eq!((&task["cause"], task["attempts"].as_u64()), (&"tried_again".into(), Some(1)), "{task:#}");
    assert!(text(&task["fix"][0]).starts_with(&helps), "{task:#}");
    world.run(&["status"]).ends(0).says(&helps).says("is held by another git");
    let tried = || {
        let mut resumed = world.start(&["resume"]);
        resumed.until(&["it is tried again"]);
        resumed
    };
    let resumed = tried();
    resumed.signal(Signal::SIGTERM);
    locked_out(resumed, &helps);
    let resumed = tried();
    locked_out(world.start(&["stop"]), &helps);
    locked_out(resumed, &helps);
    fs::remove_file(&lock).unwrap();
    world.run(&["resume"]).ends(0);
    world.all_are("landed");
    world.nothing_is_left();
}

#[test]
fn who_lands_by_hand_is_told_of_a_lock_that_is_never_let_go() {
    let (world, lock, helps) = locked("");
    world.run(&["run", "--yes"]).ends(0);
    let mut land = world.start(&["land", "one"]);
    assert!(land.ended_within(BOUND), "it does not end");
    land.end().ends(12).says("tried_again").says("is held by another git").says(&helps);
    fs::remove_file(&lock).unwrap();
    // That it is to land is on record.
    world.run(&["land", "one"]).ends(0);
    world.all_are("landed");
}

#[test]
fn who_lands_by_hand_is_told_what_is_tried_again_while_they_wait() {
    let world = World::new();
    world.plan(&Plan::new("target = \"landed\"").part("one"));
    world.run(&["run", "--yes"]).ends(0);
    // Somebody's file in the place of the branch's log: git writes no log there.
    let log = world.repo.dir().join(".git/logs/refs/heads/landed");
    fs::create_dir_all(&log).unwrap();
    fs::write(log.join("note"), "mine\n").unwrap();
    let mut land = world.start(&["land", "one"]);
    land.until(&["one: ", "git update-ref", "it is tried again"]);
    fs::remove_dir_all(&log).unwrap();
    land.end().ends(0);
    world.all_are("landed");
}
