//! Case H15 on the real binary: files of our store are gone or hold garbage. What they held is looked for once, by whoever meets
//! with that; a task goes on from its workspace, can be paused, stopped and given up, and `doctor` says what helps.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::damage::{killed_in_turn, killed_in_turn_of, only};
use crate::halt::{in_the_second_turn, stuck_in_the_second_turn};
use crate::user::Snapshot;
use crate::world::{Plan, World, text};

fn store(world: &World) -> PathBuf {
    world.homes()[0].join("store.git")
}

/// Every file below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// The files of the store's single objects, and the id that each is named after.
fn objects(world: &World) -> Vec<(PathBuf, String)> {
    let id = |file: &PathBuf| {
        let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
        let id = name(file.parent().unwrap()) + &name(file);
        (id.len() == 40 && id.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(id)
    };
    files(&store(world).join("objects")).into_iter().filter_map(|file| Some((file.clone(), id(&file)?))).collect()
}

fn fill(file: &Path, bytes: &[u8]) {
    fs::remove_file(file).unwrap();
    fs::write(file, bytes).unwrap();
}

/// Puts every object into one pack.
fn pack(world: &World) -> PathBuf {
    let objects = objects(world);
    let name = store(world).join("objects/pack/pack");
    let mut command = world.repo.command(&["pack-objects", "--quiet"]);
    command.arg(&name).env("GIT_DIR", store(world)).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut packing = command.spawn().unwrap();
    let ids: String = objects.iter().map(|(_, id)| format!("{id}\n")).collect();
    packing.stdin.take().unwrap().write_all(ids.as_bytes()).unwrap();
    let said = packing.wait_with_output().unwrap();
    assert!(said.status.success(), "{said:?}");
    objects.iter().for_each(|(file, _)| fs::remove_file(file).unwrap());
    PathBuf::from(format!("{}-{}.pack", name.display(), String::from_utf8(said.stdout).unwrap().trim()))
}

/// What is done to the store: each leaves the only checkpoint of a task without anything whole.
type Damage = (&'static str, fn(&World));

const DAMAGES: [Damage; 5] = [
    ("gone", |world| objects(world).iter().for_each(|(file, _)| fs::remove_file(file).unwrap())),
    ("gone with its refs", |world| {
        objects(world).iter().for_each(|(file, _)| fs::remove_file(file).unwrap());
        files(&store(world).join("refs/outlast")).iter().for_each(|file| fs::remove_file(file).unwrap());
    }),
    ("garbage", |world| objects(world).iter().for_each(|(file, _)| fill(file, b"\0\x01no object at all\xff"))),
    ("truncated", |world| {
        objects(world).iter().for_each(|(file, _)| {
            let bytes = fs::read(file).unwrap();
            fill(file, &bytes[..bytes.len() / 2]);
        });
    }),
    ("truncated pack", |world| {
        let pack = pack(world);
        let bytes = fs::read(&pack).unwrap();
        fill(&pack, &bytes[..bytes.len() / 4]);
    }),
];

/// What `doctor` says of the store, where it says anything.
fn doctor(world: &World) -> Option<String> {
    let told = world.run(&["doctor", "--offline", "--json"]).json();
    let found = told["checks"].as_array().unwrap().iter().find(|check| check["name"] == "store")?.clone();
    assert_eq!(found["state"], "error", "{found:#}");
    Some(format!("{} · {}", text(&found["detail"]), text(&found["fix"])))
}

/// A task that was killed in its third turn, with everything that the store has of it damaged, and what is the user's.
fn damaged(damage: fn(&World)) -> (World, Snapshot) {
    let world = killed_in_turn(3);
    let target = world.target();
    let users = Snapshot::of(&world.repo, Some(&target));
    damage(&world);
    (world, users)
}

/// The files that were set aside in the store.
fn aside(world: &World) -> usize {
    files(&store(world)).iter().filter(|file| file.extension().is_some_and(|ending| ending == "damaged")).count()
}

#[test]
fn h15_a_task_goes_on_from_its_workspace_with_its_checkpoints_gone_or_garbage() {
    for (how, damage) in DAMAGES {
        let (world, users) = damaged(damage);
        let told = doctor(&world).unwrap_or_else(|| panic!("{how}: doctor finds nothing"));
        assert!(told.contains("outlast resume") && told.contains("store.git"), "{how}: {told}");
        world.run(&["resume"]).ends(0).says("our store was damaged");
        world.all_are("landed");
        assert_eq!(world.task("work")["attempts"], 2, "{how}: no try is used up by it");
        for part in ["a", "b"] {
            let landed = world.repo.text(&["show", &format!("{}:parts/{part}.txt", world.target())]).unwrap();
            assert_eq!(landed, format!("part {part}"), "{how}");
        }
        assert_eq!(aside(&world) > 0, !how.starts_with("gone"), "{how}: what is damaged is kept");
        world.run(&["clean"]).ends(0);
        assert_eq!(doctor(&world), None, "{how}: nobody needs what is lost any more");
        users.is_untouched(how);
        world.nothing_is_left();
    }
}

#[test]
fn h15_a_task_can_be_paused_stopped_and_given_up_with_its_checkpoints_gone_or_garbage() {
    for (how, damage) in DAMAGES {
        let (world, users) = damaged(damage);
        world.run(&["pause"]).ends(0);
        // Whoever pauses it may have found its agent killed already.
        let state = text(&world.task("work")["state"]);
        assert!(matches!(state.as_str(), "parked" | "ready"), "{how}: {state}");
        world.run(&["stop"]).ends(0);
        world.run(&["discard", "work"]).ends(0);
        world.all_are("discarded");
        // All that it had done is kept.
        let archived = only(store(&world).join("refs/outlast/archive"));
        let archived = files(&archived);
        assert!(!archived.is_empty(), "{how}");
        let holds = |file: &PathBuf| {
            let commit = fs::read_to_string(file).unwrap();
            let mut show = world.repo.command(&["show", &format!("{}:parts/b.txt", commit.trim())]);
            let said = show.env("GIT_DIR", store(&world)).output().unwrap();
            String::from_utf8_lossy(&said.stdout) == "part b\n"
        };
        assert!(archived.iter().any(holds), "{how}: {archived:?}");
        assert_eq!(doctor(&world), None, "{how}");
        users.is_untouched(how);
        world.nothing_is_left();
    }
}

#[test]
fn h15_a_task_without_a_workspace_and_without_a_checkpoint_begins_anew_or_is_given_up() {
    for what in ["resume", "discard"] {
        for (how, damage) in DAMAGES {
            let (world, users) = damaged(damage);
            let tree = only(world.homes()[0].join("workspaces")).join("work");
            let run = tree.parent().unwrap().file_name().unwrap().to_owned();
            let record = store(&world).join("outlast/workspaces").join(run).join("work.d/workspace.json");
            fs::write(record, "").unwrap();
            if what == "resume" {
                world
                    .run(&["resume"])
                    .ends(0)
                    .says("begins from its base again (what was kept of it is lost)")
                    .says("work~damaged-1");
                world.all_are("landed");
            } else {
                world.run(&["pause"]).ends(0);
                world.run(&["discard", "work"]).ends(0).says("work~damaged-1").says("nothing of it can be kept");
                world.all_are("discarded");
            }
            // The files are where it was told.
            let aside = tree.with_file_name("work~damaged-1");
            assert_eq!(fs::read_to_string(aside.join("parts/a.txt")).unwrap(), "part a\n", "{how}");
            world.run(&["clean"]).ends(0);
            assert_eq!(doctor(&world), None, "{what} {how}");
            users.is_untouched(how);
            world.nothing_is_left();
        }
    }
}

#[test]
fn h15_a_store_that_is_damaged_under_a_living_engine_keeps_nobody_from_pausing_and_going_on() {
    for (how, damage) in DAMAGES {
        let world = stuck_in_the_second_turn();
        let run = world.start(&["run", "--yes"]);
        in_the_second_turn(&world);
        damage(&world);
        world.run(&["pause"]).ends(0);
        run.end().ends(6);
        world.all_are("parked");
        world.run(&["resume"]).ends(0);
        let task = world.task("works");
        assert_eq!((&task["state"], &task["attempts"]), (&"landed".into(), &2.into()), "{how}: {task:#}");
        for part in ["one", "two"] {
            let landed = world.repo.text(&["show", &format!("{}:parts/{part}.txt", world.target())]).unwrap();
            assert_eq!(landed, format!("part {part}"), "{how}");
        }
        world.nothing_is_left();
    }
}

#[test]
fn h15_who_looks_at_work_that_is_gone_is_told_what_helps() {
    let (world, _) = damaged(DAMAGES[0].1);
    let told = world.run(&["diff", "work"]).ends(12).says("outlast clean").says("outlast doctor");
    assert!(told.stderr.contains("git/failed"), "{told:?}");
    world.run(&["clean"]).ends(0).says("our store was damaged");
    let told = doctor(&world).expect("its checkpoint is lost until it goes on");
    assert!(told.contains("outlast resume"), "{told}");
}

#[test]
fn h15_what_nothing_has_met_with_yet_is_found_by_clean_and_doctor() {
    let world = killed_in_turn(3);
    world.run(&["resume"]).ends(0);
    world.all_are("landed");
    assert_eq!(doctor(&world), None);
    let users = Snapshot::of(&world.repo, None);
    let at = |name: &str| store(&world).join(name);
    let head = at("HEAD");
    let object = objects(&world).remove(0).0;
    let reference = files(&at("refs/outlast")).into_iter().find(|file| file.ends_with("result")).unwrap();
    let held = fs::read_to_string(&reference).unwrap();
    for file in [&head, &object, &reference] {
        fill(file, b"\x01garbage");
        let told = doctor(&world).unwrap();
        assert!(told.contains(&file.display().to_string()) && told.contains("outlast clean"), "{told}");
        world.run(&["clean"]).ends(0);
        assert_eq!(doctor(&world), None, "{}", file.display());
    }
    assert_eq!(fs::read_to_string(&reference).unwrap(), held);
    users.is_untouched("clean");
}

#[test]
fn h15_verified_work_lands_with_its_objects_gone_or_garbage_and_is_not_paid_for_again() {
    for (how, damage) in DAMAGES {
        let world = World::new();
        world.plan(&Plan::new("").part("one").task(
            "two",
            "write two.txt \"two\\n\"",
            "writes = [\"two.txt\"]\nneeds = [\"one\"]",
        ));
        world.run(&["run", "--yes"]).ends(0);
        world.all_are("done");
        let target = world.target();
        let users = Snapshot::of(&world.repo, Some(&target));
        damage(&world);
        world.run(&["land", "one"]).ends(0);
        world.run(&["land", "two"]).ends(0);
        for (file, text) in [("parts/one.txt", "part one"), ("two.txt", "two")] {
            assert_eq!(world.repo.text(&["show", &format!("{target}:{file}")]).unwrap(), text, "{how}");
        }
        let attempts = ["one", "two"].map(|task| world.task(task)["attempts"].as_u64());
        assert_eq!(attempts, [Some(1); 2], "{how}");
        world.run(&["clean"]).ends(0);
        assert_eq!(doctor(&world), None, "{how}");
        users.is_untouched(how);
        world.nothing_is_left();
    }
}

#[test]
fn h15_a_commit_of_the_agents_that_has_lost_a_folder_keeps_nobody_from_going_on() {
    let script =
        "write parts/a.txt \"part a\\n\"\nrun \"git add -A && git commit -qm mine\"\nwrite parts/b.txt \"part b\\n\"";
    let world = killed_in_turn_of(script, 4);
    let tree = only(world.homes()[0].join("workspaces")).join("work");
    let mut parse = world.repo.command(&["rev-parse", "HEAD:parts"]);
    let said = parse.env("GIT_DIR", tree.join(".git")).output().unwrap();
    let id = String::from_utf8(said.stdout).unwrap().trim().to_owned();
    let lost = objects(&world).into_iter().find(|(_, named)| *named == id).expect("the store has its folder").0;
    assert!(!tree.join(".git/objects").join(&id[..2]).join(&id[2..]).exists(), "and the workspace does not");
    fs::remove_file(lost).unwrap();
    world.run(&["resume"]).ends(0);
    world.all_are("landed");
    assert_eq!(world.task("work")["attempts"], 2, "no try is used up by it");
    for part in ["a", "b"] {
        let landed = world.repo.text(&["show", &format!("{}:parts/{part}.txt", world.target())]).unwrap();
        assert_eq!(landed, format!("part {part}"));
    }
    world.nothing_is_left();
}
