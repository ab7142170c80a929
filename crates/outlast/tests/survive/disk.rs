//! The disk with the state fills up: it is said, nothing is lost, and with room again it goes on.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::signal::Signal;
use nix::sys::statvfs::statvfs;
use outlast_testkit::provider::{Fault, LogEntry, Rule, Script, When};

use crate::filling::{KeptFull, fill};
use crate::running::Running;
use crate::world::{Plan, World};

/// Much longer than anybody needs to leave, on a busy machine with two cores.
const BOUND: Duration = Duration::from_secs(60);
/// Room for a run of a few small tasks, and quickly filled.
const SIZE_MIB: u32 = 24;

#[test]
fn e25_a_full_disk_is_told_and_resume_goes_on_when_there_is_room() {
    in_own_mounts("disk::on_a_small_disk");
}

#[test]
fn e25_on_a_disk_that_is_full_while_it_lands_nothing_is_half_written_and_everything_lands_once() {
    in_own_mounts("disk::landing_on_small_disks");
}

#[test]
fn e25_in_a_checkout_without_room_for_what_lands_nothing_is_written_until_there_is() {
    in_own_mounts("disk::landing_in_a_full_checkout");
}

#[test]
fn e25_a_check_that_finds_the_disk_full_refuses_no_landing() {
    in_own_mounts("disk::landing_with_a_check_that_fills_the_disk");
}

#[test]
fn e25_a_check_that_fills_the_disk_each_time_is_not_made_for_ever() {
    in_own_mounts("disk::landing_with_a_check_that_fills_the_disk_each_time");
}

#[test]
fn e25_on_a_full_disk_agents_are_held_and_go_on_by_themselves() {
    in_own_mounts("disk::held_until_there_is_room");
}

#[test]
fn e25_on_a_full_disk_everybody_can_leave_and_nothing_is_lost() {
    in_own_mounts("disk::left_by_signal");
    in_own_mounts("disk::left_by_stop");
    in_own_mounts("disk::left_by_whoever_need_not_wait");
}

#[test]
fn e25_a_journal_without_a_byte_of_room_holds_everything_and_can_be_left() {
    in_own_mounts("disk::held_with_the_journal");
    in_own_mounts("disk::left_with_the_journal");
}

#[test]
fn e25_a_disk_that_can_hold_no_more_files_is_full() {
    in_own_mounts("disk::held_without_a_file_left");
}

/// Runs a test of this program where it may mount. Where it must be able to (`OUTLAST_OWN_MOUNTS`), it never passes unrun.
pub(crate) fn in_own_mounts(test: &str) {
    let unshare = || {
        let mut unshare = Command::new("unshare");
        unshare.args(["--user", "--map-root-user", "--mount", "--"]);
        unshare
    };
    if !unshare().arg("true").status().is_ok_and(|status| status.success()) {
        assert!(std::env::var_os("OUTLAST_OWN_MOUNTS").is_none(), "`unshare --user --mount` does not work here");
        eprintln!("SKIPPED: this system allows no mounts of one's own (unshare --user --mount): {test}");
        return;
    }
    let mut child = unshare();
    child.arg(std::env::current_exe().unwrap()).args(["--exact", test, "--ignored", "--nocapture"]);
    assert!(child.status().unwrap().success());
}

pub(crate) fn mount_small(folder: &Path) {
    let size = format!("size={SIZE_MIB}m");
    mount(Some("tmpfs"), folder, Some("tmpfs"), MsFlags::empty(), Some(&*size)).unwrap();
}

#[test]
#[ignore = "its parent runs it where it may mount"]
fn landing_on_small_disks() {
    for (target, point) in [
        ("main", "after_candidate:1"),
        ("main", "before_move:1"),
        ("main", "after_move:1"),
        ("outlast/{run}", "before_move:2"),
        ("outlast/{run}", "after_move:2"),
    ] {
        full_while_it_lands(target, point);
    }
}

/// The engine is killed in the middle of a landing; state and checkout are full when the next one goes on with it.
fn full_while_it_lands(target: &str, point: &str) {
    let world = World::new();
    mount_small(world.env.outlast_home());
    move_to_small(&world);
    world.plan(&Plan::new(&format!("land = \"auto\"\ntarget = {target:?}")).part("one").part("two").part("three"));
    let base = world.repo.commit_id("HEAD").unwrap();
    killed(&world, point);
    let ballasts = [world.env.outlast_home().join("ballast"), world.repo.dir().join(".git/ballast")];
    ballasts.iter().for_each(|ballast| drop(fill(ballast)));
    goes_on_when_there_is_room(&world, &ballasts, &base, &["one", "three", "two"]);
    umount2(world.env.outlast_home(), MntFlags::MNT_DETACH).unwrap();
    umount2(world.repo.dir(), MntFlags::MNT_DETACH).unwrap();
}

#[test]
#[ignore = "its parent runs it where it may mount"]
fn landing_in_a_full_checkout() {
    let world = World::new();
    move_to_small(&world);
    // Small as objects, which are written first, and large as a file, which git writes after the README.
    let script = "read README.md\nedit README.md \"# Parts\" \"# All parts\"\n\
                  run \"mkdir -p parts && yes 'part big' | head -c 2700000 > parts/big.txt\"";
    let plan = Plan::new("land = \"auto\"\ntarget = \"main\"");
    world.plan(&plan.task("big", script, "writes = [\"README.md\", \"parts/**\"]"));
    let base = world.repo.commit_id("HEAD").unwrap();
    killed(&world, "before_move:1");
    let ballast = world.repo.dir().join(".git/ballast");
    let full = fill(&ballast);
    full.set_len(full.metadata().unwrap().len() - 300_000).unwrap();
    // An open file takes its room, whether or not it has a name.
    drop(full);
    goes_on_when_there_is_room(&world, &[ballast], &base, &["big"]);
    umount2(world.repo.dir(), MntFlags::MNT_DETACH).unwrap();
}

/// The engine is killed before it lands what it has checked; where a file `fill` lies, the check then fills the disk.
fn checked_on_a_small_disk(fills: &str) -> (World, String, PathBuf) {
    let world = World::new();
    mount_small(world.env.outlast_home());
    let fills = format!("test ! -e $TMPDIR/fill || {{ {fills}; exit 1; }}");
    let keys = format!("writes = [\"parts/**\"]\nverify = [\"sh check.sh\", \"{fills}\"]");
    world.plan(&Plan::new("land = \"auto\"").task("one", "write parts/one.txt \"part one\\n\"", &keys));
    let base = world.repo.commit_id("HEAD").unwrap();
    killed(&world, "after_candidate:1");
    let run = world.status()["run"].as_str().unwrap().to_owned();
    let temp = world.homes().remove(0).join("verify").join(run).join("temp");
    fs::write(temp.join("fill"), "").unwrap();
    (world, base, temp)
}

#[test]
#[ignore = "its parent runs it where it may mount"]
fn landing_with_a_check_that_fills_the_disk() {
    let (world, base, temp) = checked_on_a_small_disk("rm $TMPDIR/fill; cat /dev/zero > $TMPDIR/ballast");
    goes_on_when_there_is_room(&world, &[temp.join("ballast")], &base, &["one"]);
    umount2(world.env.outlast_home(), MntFlags::MNT_DETACH).unwrap();
}

#[test]
#[ignore = "its parent runs it where it may mount"]
fn landing_with_a_check_that_fills_the_disk_each_time() {
    // What it writes where it is checked goes before the next check, for which it leaves a little: there is room again.
    let (world, _, temp) = checked_on_a_small_disk("cat /dev/zero > ballast; truncate -s -300K ballast");
    world.run(&["resume"]).says("`outlast land` tries again: nothing was shown in 4 runs");
    world.all_are("done");
    fs::remove_file(temp.join("fill")).unwrap();
    world.run(&["land", "one"]).ends(0);
    world.all_are("landed");
    umount2(world.env.outlast_home(), MntFlags::MNT_DETACH).unwrap();
}

/// Moves the repository to a small disk of its own.
fn move_to_small(world: &World) {
    let (checkout, away) = (world.repo.dir(), world.env.root().join("away"));
    fs::rename(checkout, &away).unwrap();
    fs::create_dir(checkout).unwrap();
    mount_small(checkout);
    assert!(Command::new("cp").arg("-a").arg(away.join(".")).arg(checkout).status().unwrap().success());
}

fn killed(world: &World, point: &str) {
    let mut run = world.command(&["run", "--yes"]);
    run.env("OUTLAST_FAULT", point);
    let ran = Running::of(run).end();
    assert!(ran.was_killed(), "{point}:\n{}", ran.stderr);
}

/// The next engine says what it lacks, and touches nothing; with the ballasts gone everything lands, once.
fn goes_on_when_there_is_room(world: &World, ballasts: &[PathBuf], base: &str, tasks: &[&str]) {
    let mut resume = world.start(&["resume"]);
    resume.until(&["free some space"]);
    // Without the locks that it can do without, git looks and writes nothing.
    let status = || world.repo.text(&["--no-optional-locks", "status", "--porcelain"]).unwrap();
    assert_eq!(status(), "");
    ballasts.iter().for_each(|ballast| fs::remove_file(ballast).unwrap());
    // It either went on by itself, or left with the command that goes on.
    let ended = resume.end();
    if ended.code() != Some(0) {
        ended.ends(12).says("outlast resume");
        world.run(&["resume"]).ends(0);
    }
    world.all_are("landed");
    let mut landed = world.landed_on(&world.target(), base);
    landed.sort();
    assert_eq!(landed, tasks);
    assert_eq!(status(), "");
    assert_eq!(world.repo.text(&["fsck", "--strict", "--no-dangling"]).unwrap(), "");
    world.every_commit_passes(&world.target(), base);
    world.nothing_is_left();
}

#[test]
#[ignore = "its parent runs it where it may mount"]
fn on_a_small_disk() {
    // Every frame of the second turn takes a while: long enough to fill the disk before the agent is done.
    let slow = Rule {
        when: When { step: Some(2), ..When::default() },
        fault: Fault::Slow { per_frame_ms: 150 },
        times: Some(1),
    };
    let world = World::with_script(Script::default().with_fault(slow));
    mount_small(world.env.outlast_home());
    world.plan(&Plan::new("land = \"auto\"\nconcurrency = 2").part("one").part("two").part("three"));
    let base = world.repo.commit_id("HEAD").unwrap();

    let mut run = world.start(&["run", "--yes"]);
    world.provider_saw("a second turn", |log| log.iter().any(|entry| entry.step == Some(2)));
    let ballast = world.env.outlast_home().join("ballast");
    drop(fill(&ballast));
    run.until(&["free some space"]);
    // What is on record can be read without a byte of room.
    assert_eq!(world.states().len(), 3);
    fs::remove_file(&ballast).unwrap();
    // It either went on by itself, or left with the command that goes on.
    let ended = run.end();
    if ended.code() != Some(0) {
        ended.ends(12).says("outlast resume");
        world.run(&["resume"]).ends(0);
    }
    world.all_are("landed");
    assert_eq!(world.landed_on(&world.target(), &base).len(), 3);
    world.nothing_is_left();
}

#[test]
#[ignore = "its parent runs it where it may mount"]
fn held_without_a_file_left() {
    let late = Rule {
        when: When { step: Some(2), ..When::default() },
        fault: Fault::Hold { seconds: Some(4.0) },
        times: Some(1),
    };
    let world = World::with_script(Script::default().with_fault(late));
    let options = Some("size=60m,nr_inodes=2000");
    mount(Some("tmpfs"), world.env.outlast_home(), Some("tmpfs"), MsFlags::empty(), options).unwrap();
    let script = "write parts/one.txt \"part one\\n\"\nwrite parts/one.md \"about one\"";
    world.plan(&Plan::new("land = \"auto\"").task("one", script, "writes = [\"parts/one.*\"]\nretries = 0"));
    let base = world.repo.commit_id("HEAD").unwrap();
    let mut run = world.start(&["run", "--yes"]);
    world.provider_saw("a second turn", |log| log.iter().any(|entry| entry.step == Some(2)));
    let ballast = world.env.outlast_home().join("ballast");
    fs::create_dir(&ballast).unwrap();
    // It is to be full well before the second turn is answered.
    let mut files = 0;
    while File::create(ballast.join(files.to_string())).is_ok() {
        files += 1;
    }
    run.until(&["the disk is full", "free some space"]);
    let task = world.task("one");
    assert_eq!(task["cause"], "disk_full", "{task:#}");
    assert!(task["detail"].as_str().unwrap().contains("files (inodes) are free"), "{task:#}");
    run.signal(Signal::SIGTERM);
    assert!(run.ended_within(BOUND), "SIGTERM does not end it");
    run.end().ends(12).says("the disk is full").says("outlast resume");
    fs::remove_dir_all(&ballast).unwrap();
    world.run(&["resume"]).ends(0);
    Filled::all_landed(&world, &base);
}

/// A run that meets a full disk.
struct Filled {
    world: World,
    base: String,
    /// What fills it.
    ballast: PathBuf,
    run: Running,
}

impl Filled {
    /// Two tasks; somebody else fills the disk while the provider is at work on their second turns.
    fn by_somebody(arguments: &[&str]) -> Self {
        let late = Rule {
            when: When { step: Some(2), ..When::default() },
            fault: Fault::Hold { seconds: Some(2.0) },
            times: Some(2),
        };
        let script = |id: &str| format!("write parts/{id}.txt \"part {id}\\n\"\nwrite parts/{id}.md \"about {id}\\n\"");
        let (world, base, mut run) =
            Self::started(&["one", "two"], script, Script::default().with_fault(late), arguments);
        let both = |log: &[LogEntry]| log.iter().filter(|entry| entry.step == Some(2)).count() == 2;
        world.provider_saw("the second turns", both);
        let ballast = world.env.outlast_home().join("ballast");
        drop(fill(&ballast));
        run.until(&["the disk is full", "free some space"]);
        Self { world, base, ballast, run }
    }

    /// One task, whose agent writes something large and then fills the disk, so that what it has written cannot be kept. A
    /// little is left for what it notes itself, as agents do: one that cannot ends, and begins again when there is room.
    fn by_its_agent(arguments: &[&str]) -> Self {
        let script = |id: &str| {
            // A second attempt does it all again, but for this.
            let fill = "test -e filled || { cat /dev/zero > ballast; truncate -s -200K ballast; }; touch filled";
            format!(
                "write parts/{id}.txt \"part {id}\\n\"\nwrite parts/{id}.md \"about {id}\\n\"\n\
                 run \"head -c 400000 /dev/urandom > parts/{id}.bin; cd $TMPDIR; {fill}\""
            )
        };
        let (world, base, mut run) = Self::started(&["one"], script, Script::default(), arguments);
        run.until(&["the disk is full", "free some space"]);
        let run_id = world.status()["run"].as_str().unwrap().to_owned();
        let ballast = world.homes().remove(0).join("temp").join(run_id).join("one/ballast");
        assert!(ballast.is_file());
        Self { world, base, ballast, run }
    }

    fn started(
        tasks: &[&str],
        script: impl Fn(&str) -> String,
        provider: Script,
        arguments: &[&str],
    ) -> (World, String, Running) {
        let world = World::with_script(provider);
        mount_small(world.env.outlast_home());
        let mut plan = Plan::new("land = \"auto\"\nconcurrency = 2");
        for id in tasks {
            plan = plan.task(id, &script(id), &format!("writes = [\"parts/{id}.*\"]\nretries = 0"));
        }
        world.plan(&plan);
        let base = world.repo.commit_id("HEAD").unwrap();
        let run = world.start(&[&["run", "--yes"], arguments].concat());
        (world, base, run)
    }

    /// Nothing works, and it is said why and what helps.
    fn is_told(&self) {
        let status = self.world.status();
        assert_eq!(status["state"], "parked", "{status:#}");
        for task in status["tasks"].as_array().unwrap() {
            assert!(matches!(task["state"].as_str(), Some("held" | "parked")), "{task:#}");
            assert_eq!(task["cause"], "disk_full", "{task:#}");
            assert!(task["detail"].as_str().unwrap().contains("the disk is full"), "{task:#}");
            assert!(task["fix"].as_array().unwrap().contains(&"outlast clean".into()), "{task:#}");
        }
        let text = self.world.run(&["status"]).ends(0).says("waiting (").says("the disk is full").says("outlast clean");
        assert!(!text.stdout.contains("working"), "{}", text.stdout);
    }

    /// With room again everything lands once, and nobody is at fault.
    fn goes_on(world: &World, ballast: &Path, base: &str) {
        fs::remove_file(ballast).unwrap();
        world.run(&["resume"]).ends(0);
        Self::all_landed(world, base);
    }

    fn all_landed(world: &World, base: &str) {
        world.all_are("landed");
        let mut landed = world.landed_on(&world.target(), base);
        landed.sort();
        let tasks: Vec<String> = world.states().into_iter().map(|(id, _)| id).collect();
        assert_eq!(landed, tasks);
        for id in tasks {
            let about = world.repo.text(&["show", &format!("{}:parts/{id}.md", world.target())]).unwrap();
            assert_eq!(about, format!("about {id}"));
        }
        world.every_commit_passes(&world.target(), base);
        world.nothing_is_left();
        umount2(world.env.outlast_home(), MntFlags::MNT_DETACH).unwrap();
    }
}

#[test]
#[ignore = "its parent runs it where it may mount"]
fn held_until_there_is_room() {
    for filled in [Filled::by_somebody(&[]), Filled::by_its_agent(&[])] {
        filled.is_told();
        let Filled { world, base, ballast, run } = filled;
        // Nobody asks for anything more while there is no room.
        assert!(world.provider.log().iter().all(|entry| entry.step.is_none_or(|step| step <= 3)));
        fs::remove_file(&ballast).unwrap();
        run.end().ends(0);
        let status = world.status();
        let attempts = status["tasks"].as_array().unwrap().iter().map(|task| task["attempts"].as_u64().unwrap());
        assert!(attempts.eq(status["tasks"].as_array().unwrap().iter().map(|_| 1)), "its agent goes on: {status:#}");
        Filled::all_landed(&world, &base);
    }
}

#[test]
#[ignore = "its parent runs it where it may mount"]
fn left_by_signal() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let Filled { world, base, ballast, mut run } = Filled::by_its_agent(&[]);
        run.signal(signal);
        assert!(run.ended_within(BOUND), "{signal} does not end it");
        run.end().ends(12).says("the disk is full").says("outlast resume");
        assert!(world.living_shims().is_empty(), "its agents are ended");
        world.run(&["status"]).ends(0).says("the disk is full").says("outlast resume");
        // Who has no engine to ask is told at once, too.
        world.run(&["stop"]).ends(12).says("host/disk-full");
        Filled::goes_on(&world, &ballast, &base);
    }
    let Filled { world, base, ballast, mut run } = Filled::by_somebody(&[]);
    run.signal(Signal::SIGTERM);
    assert!(run.ended_within(BOUND), "it does not end");
    let ended = run.end();
    // What was kept already leaves little to write, which may fit into what the agents leave: then everything is saved.
    if ended.code() != Some(143) {
        ended.ends(12).says("the disk is full");
    }
    world.all_are("parked");
    Filled::goes_on(&world, &ballast, &base);
}

#[test]
#[ignore = "its parent runs it where it may mount"]
fn left_by_stop() {
    let Filled { world, base, ballast, mut run } = Filled::by_its_agent(&[]);
    let mut stop = world.start(&["stop"]);
    assert!(stop.ended_within(BOUND), "stop does not end");
    stop.end().ends(12).says("the disk is full").says("outlast resume");
    assert!(run.ended_within(BOUND), "the engine does not leave");
    run.end().ends(12);
    assert_eq!(world.status()["state"], "stopped");
    Filled::goes_on(&world, &ballast, &base);
}

#[test]
#[ignore = "its parent runs it where it may mount"]
fn left_by_whoever_need_not_wait() {
    for filled in [Filled::by_somebody(&["--no-wait"]), Filled::by_its_agent(&["--no-wait"])] {
        let Filled { world, base, ballast, mut run } = filled;
        assert!(run.ended_within(BOUND), "it waits all the same");
        run.end().ends(12).says("the disk is full").says("outlast resume");
        assert!(world.living_shims().is_empty(), "its agents are ended");
        Filled::goes_on(&world, &ballast, &base);
    }
}

/// With what the journal has set aside gone as well: whatever fills the disk may take it.
fn without_a_reserve() -> (Filled, KeptFull) {
    let filled = Filled::by_its_agent(&[]);
    // First, or the engine would lay by again what the reserve gives back.
    let full = KeptFull::at(filled.world.env.outlast_home().join("more"));
    let reserve = filled.world.homes().remove(0).join("journal.db.reserve");
    let is_left = || fs::metadata(&reserve).unwrap().len() > 0 || statvfs(&reserve).unwrap().blocks_available() > 0;
    while is_left() {
        File::options().write(true).open(&reserve).unwrap().set_len(0).unwrap();
    }
    (filled, full)
}

#[test]
#[ignore = "its parent runs it where it may mount"]
fn held_with_the_journal() {
    let (Filled { world, base, ballast, run }, full) = without_a_reserve();
    // That it is to stop cannot be put on record: this is said, and takes effect when it can be.
    let mut stop = world.start(&["stop"]);
    assert!(stop.ended_within(BOUND), "stop does not end");
    stop.end().ends(12).says("nothing can be put on record");
    assert_eq!(world.states().len(), 1);
    full.let_go();
    fs::remove_file(&ballast).unwrap();
    run.end().ends(0);
    assert_eq!(world.status()["state"], "stopped");
    world.run(&["resume"]).ends(0);
    Filled::all_landed(&world, &base);
}

#[test]
#[ignore = "its parent runs it where it may mount"]
fn left_with_the_journal() {
    let (Filled { world, base, ballast, mut run }, full) = without_a_reserve();
    run.signal(Signal::SIGTERM);
    assert!(run.ended_within(BOUND), "SIGTERM does not end it");
    run.end().ends(12).says("the disk is full").says("outlast resume");
    full.let_go();
    Filled::goes_on(&world, &ballast, &base);
}
