//! A store whose files are gone or hold garbage: what anybody still has is put back, and work goes on from what is whole.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use outlast_core::Oid;
use outlast_git::{Error, Needed, Store, Workspace, damaged};

use crate::fixture::{World, git, read, try_git, write};

fn object(world: &World, id: &str) -> PathBuf {
    world.store.objects_dir().join(&id[..2]).join(&id[2..])
}

fn fill(file: &Path, bytes: &[u8]) {
    fs::remove_file(file).unwrap();
    fs::write(file, bytes).unwrap();
}

fn look_through(world: &World) -> bool {
    world.store.look_through(&world.user, &Needed::default()).unwrap()
}

/// What is damaged, by the names of the files in the store.
fn told(world: &World) -> Vec<PathBuf> {
    damaged(world.store.path(), &Needed::default(), &|_| false).unwrap()
}

/// Every file that was set aside.
fn aside(world: &World) -> Vec<PathBuf> {
    fn below(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            match entry.is_dir() {
                true => below(&entry, found),
                false if entry.extension().is_some_and(|ending| ending == "damaged") => found.push(entry),
                false => {}
            }
        }
    }
    let mut found = Vec::new();
    below(world.store.path(), &mut found);
    found.sort();
    found
}

fn next(world: &World, workspace: &Workspace, parent: &Oid) -> outlast_git::Result<outlast_git::Checkpoint> {
    let mut spec = world.checkpoint_spec("t", None);
    spec.parent = Some(parent.clone());
    workspace.checkpoint(&world.store, &world.user, &spec)
}

/// Damages the file of an object; another object's file is at hand.
type Damage = (&'static str, fn(&Path, &Path));

const DAMAGES: [Damage; 5] = [
    ("gone", |file, _| fs::remove_file(file).unwrap()),
    ("truncated", |file, _| fill(file, &fs::read(file).unwrap()[..9])),
    ("random", |file, _| fill(file, b"\0\x01no object at all\xff")),
    ("another's", |file, other| fill(file, &fs::read(other).unwrap())),
    ("longer", |file, _| fill(file, &[&fs::read(file).unwrap()[..], b"behind it"].concat())),
];

#[test]
fn h15_a_sound_store_has_nothing_to_be_mended_and_stays_as_it_is() {
    let world = World::new();
    let workspace = world.workspace("t");
    for number in 0..100 {
        write(workspace.path(), &format!("many/{number}.txt"), format!("{number}\n"));
    }
    world.checkpoint(&workspace, "t");
    let before = crate::fixture::snapshot(world.store.path());
    assert!(!look_through(&world));
    assert_eq!(told(&world), Vec::<PathBuf>::new());
    assert_eq!(crate::fixture::snapshot(world.store.path()), before);
}

#[test]
fn h15_an_object_that_is_gone_or_garbage_is_put_back_from_the_workspace_that_has_it() {
    for (how, damage) in DAMAGES {
        let world = World::new();
        let workspace = world.workspace("t");
        write(workspace.path(), "deep/new.txt", "new\n");
        let kept = world.checkpoint(&workspace, "t");
        let folder = git(world.store.path(), &["rev-parse", &format!("{}:deep", kept.commit)]);
        let blob = git(world.store.path(), &["rev-parse", &format!("{}:deep/new.txt", kept.commit)]);
        let users = world.snapshot();
        let file = object(&world, &folder);
        damage(&file, &object(&world, &blob));
        let held = fs::read(&file).ok();
        // Opening costs nothing, and so finds nothing.
        let store = Store::open_or_init(world.store.path(), &world.user).unwrap();
        let world = World { store, ..world };
        assert_eq!(fs::read(&file).ok(), held, "{how}");
        assert_eq!(told(&world), std::slice::from_ref(&file), "{how}");
        assert!(look_through(&world), "{how}");
        assert_eq!(told(&world), Vec::<PathBuf>::new(), "{how}");
        world.fsck_objects(&kept.commit);
        assert_eq!(world.text(&kept.commit, "deep/new.txt"), "new", "{how}");
        let kept_aside: Vec<Vec<u8>> = aside(&world).iter().map(|file| fs::read(file).unwrap()).collect();
        assert_eq!(kept_aside, held.into_iter().collect::<Vec<_>>(), "{how}: it is kept");
        next(&world, &workspace, &kept.commit).unwrap();
        assert!(!look_through(&world), "{how}: once is enough");
        assert_eq!(world.snapshot(), users, "{how}: nothing of the user's is touched");
    }
}

#[test]
fn h15_a_task_goes_on_from_its_workspace_with_its_only_checkpoint_gone_or_garbage() {
    for (how, damage) in DAMAGES {
        for lost in ["commit", "tree"] {
            let world = World::new();
            let workspace = world.workspace("t");
            write(workspace.path(), "one.txt", "one\n");
            let kept = world.checkpoint(&workspace, "t");
            // The agent went on, so that nobody has that tree any more.
            write(workspace.path(), "two.txt", "two\n");
            let id = if lost == "commit" { &kept.commit } else { &kept.tree };
            let blob = git(world.store.path(), &["rev-parse", &format!("{}:one.txt", kept.commit)]);
            damage(&object(&world, id.as_str()), &object(&world, &blob));
            let store = Store::open_or_init(world.store.path(), &world.user).unwrap();
            let world = World { store, ..world };
            // What is behind a whole object keeps git alone from it.
            if how != "longer" {
                let failed = next(&world, &workspace, &kept.commit).unwrap_err();
                assert!(matches!(failed, Error::Object { .. }), "{how} {lost}: {failed}");
            }
            assert!(look_through(&world), "{how} {lost}");
            let again = next(&world, &workspace, &kept.commit).unwrap();
            world.fsck_objects(&again.commit);
            let parent = git(world.store.path(), &["rev-parse", &format!("{}^", again.commit)]);
            assert_eq!(parent, world.base.as_str(), "{how} {lost}: it stands on what is whole");
            for (file, text) in [("one.txt", "one"), ("two.txt", "two")] {
                assert_eq!(world.text(&again.commit, file), text, "{how} {lost}");
            }
        }
    }
}

#[test]
fn h15_an_object_of_the_same_kind_in_anothers_file_is_not_taken_for_it() {
    let world = World::new();
    let workspace = world.workspace("t");
    write(workspace.path(), "one.txt", "one\n");
    let first = world.checkpoint(&workspace, "t");
    write(workspace.path(), "one.txt", "two\n");
    let second = next(&world, &workspace, &first.commit).unwrap();
    for (id, other) in [(&second.commit, &first.commit), (&second.tree, &first.tree)] {
        let (file, sound) = (object(&world, id.as_str()), fs::read(object(&world, id.as_str())).unwrap());
        fill(&file, &fs::read(object(&world, other.as_str())).unwrap());
        let failed = world.store.diff(&world.base, &second.commit).unwrap_err();
        assert!(matches!(failed, Error::Object { .. }), "{failed}");
        fill(&file, &sound);
    }
}

#[test]
fn h15_a_workspace_that_is_gone_is_back_as_it_was_at_the_newest_checkpoint_that_is_whole() {
    for (lost, wanted) in [(&["two.txt"][..], Some("one")), (&["one.txt", "two.txt"], None), (&[], Some("two"))] {
        let world = World::new();
        let workspace = world.workspace("t");
        write(workspace.path(), "one.txt", "one\n");
        let first = world.checkpoint(&workspace, "t");
        write(workspace.path(), "two.txt", "two\n");
        let second =
            workspace.checkpoint(&world.store, &world.user, &world.checkpoint_spec("t", Some(&first))).unwrap();
        for file in lost {
            let blob = git(world.store.path(), &["rev-parse", &format!("{}:{file}", second.commit)]);
            fs::remove_file(object(&world, &blob)).unwrap();
        }
        fs::remove_dir_all(workspace.path()).unwrap();
        assert_eq!(look_through(&world), !lost.is_empty());
        let mut spec = world.spec("t");
        spec.restore = Some(second.commit.clone());
        let back = Workspace::create(&world.user, &world.store, &spec).unwrap();
        let (one, two) = (back.path().join("one.txt").exists(), back.path().join("two.txt").exists());
        assert_eq!((one, two), (wanted.is_some(), wanted == Some("two")));
        let restored = match wanted {
            Some("two") => Some(second.commit),
            Some(_) => Some(first.commit),
            None => None,
        };
        assert_eq!(back.restored(), restored);
    }
}

/// A store with a pack of a hundred objects, and the pack.
fn packed(world: &World) -> (Workspace, outlast_git::Checkpoint, PathBuf) {
    let workspace = world.workspace("t");
    for number in 0..100 {
        write(workspace.path(), &format!("many/{number}.txt"), format!("{number}\n").repeat(50));
    }
    let kept = world.checkpoint(&workspace, "t");
    let packs = fs::read_dir(world.store.objects_dir().join("pack")).unwrap().map(|entry| entry.unwrap().path());
    let pack = packs.into_iter().find(|file| file.extension().is_some_and(|ending| ending == "pack")).unwrap();
    (workspace, kept, pack)
}

#[test]
fn h15_a_damaged_pack_is_set_aside_and_what_can_be_read_of_it_is_written_again() {
    let damages: [Damage; 3] = [
        ("truncated", |pack, _| {
            let bytes = fs::read(pack).unwrap();
            fill(pack, &bytes[..bytes.len() / 2]);
        }),
        ("flipped", |pack, _| {
            let mut bytes = fs::read(pack).unwrap();
            let at = bytes.len() / 2;
            bytes[at] ^= 0xff;
            fill(pack, &bytes);
        }),
        ("gone", |pack, _| fs::remove_file(pack).unwrap()),
    ];
    for (how, damage) in damages {
        let world = World::new();
        let (workspace, kept, pack) = packed(&world);
        let index = pack.with_extension("idx");
        let listed = git(world.store.path(), &["verify-pack", "-v", index.to_str().unwrap()]);
        let is_object = |line: &&str| ["blob", "tree", "commit"].iter().any(|kind| line.contains(kind));
        let ids: Vec<&str> = listed.lines().filter(is_object).map(|line| &line[..40]).collect();
        damage(&pack, &index);
        let held = fs::read(&pack).ok();
        // Nobody else has any of it.
        fs::remove_dir_all(workspace.path()).unwrap();
        let store = Store::open_or_init(world.store.path(), &world.user).unwrap();
        let world = World { store, ..world };
        assert!(told(&world).contains(&pack), "{how}");
        assert!(look_through(&world), "{how}");
        assert!(!pack.exists() && !index.exists(), "{how}");
        assert_eq!(fs::read(pack.with_extension("pack.damaged")).ok(), held, "{how}: it is kept");
        assert!(pack.with_extension("idx.damaged").is_file(), "{how}");
        assert!(!told(&world).is_empty(), "{how}: it is told");
        // Of a damaged one, what is whole is there again.
        let lost = ids.iter().filter(|id| !try_git(world.store.path(), &["cat-file", "-e", id])).count();
        match how {
            "truncated" => assert!((1..ids.len()).contains(&lost), "{lost} of {}", ids.len()),
            "flipped" => assert_eq!(lost, 1, "of {}", ids.len()),
            _ => assert_eq!(lost, ids.len()),
        }
        assert!(!look_through(&world), "{how}: once is enough");
        let mut spec = world.spec("t");
        spec.restore = Some(kept.commit);
        let back = Workspace::create(&world.user, &world.store, &spec).unwrap();
        assert_eq!(back.restored(), None, "{how}");
    }
}

#[test]
fn h15_a_damaged_pack_costs_nothing_that_the_workspace_still_has() {
    let world = World::new();
    let (_workspace, kept, pack) = packed(&world);
    let bytes = fs::read(&pack).unwrap();
    fill(&pack, &bytes[..bytes.len() / 2]);
    let users = world.snapshot();
    let store = Store::open_or_init(world.store.path(), &world.user).unwrap();
    let world = World { store, ..world };
    assert!(look_through(&world));
    // The commit was at its end.
    assert_eq!(told(&world), [object(&world, kept.commit.as_str())]);
    world.fsck_objects(&kept.tree);
    assert_eq!(world.text(&kept.tree, "many/7.txt").lines().count(), 50);
    assert_eq!(world.snapshot(), users, "nothing of the user's is touched");
}

#[test]
fn h15_an_index_of_a_pack_that_is_gone_or_garbage_is_made_anew() {
    let damages: [fn(&Path); 3] = [
        |index| fs::remove_file(index).unwrap(),
        |index| fill(index, b"no index"),
        |index| {
            let mut bytes = fs::read(index).unwrap();
            let at = bytes.len() - 100;
            bytes[at] ^= 0xff;
            fill(index, &bytes);
        },
    ];
    for damage in damages {
        let world = World::new();
        let (workspace, kept, pack) = packed(&world);
        let index = pack.with_extension("idx");
        let sound = fs::read(&index).unwrap();
        damage(&index);
        let held = fs::read(&index).ok();
        fs::remove_dir_all(workspace.path()).unwrap();
        let store = Store::open_or_init(world.store.path(), &world.user).unwrap();
        let world = World { store, ..world };
        assert!(look_through(&world));
        assert_eq!(fs::read(&index).unwrap(), sound);
        assert_eq!(fs::read(index.with_extension("idx.damaged")).ok(), held);
        world.fsck_store();
        world.fsck_objects(&kept.commit);
    }
}

#[test]
fn h15_a_pack_that_an_open_store_has_read_is_read_no_more_once_it_is_set_aside() {
    let world = World::new();
    let (workspace, kept, pack) = packed(&world);
    let listed = git(world.store.path(), &["ls-tree", "-r", "--object-only", kept.commit.as_str()]);
    let blobs: Vec<Oid> = listed.lines().map(Oid::new).collect();
    blobs.iter().for_each(|blob| drop(world.store.blob(blob).unwrap()));
    let mut bytes = fs::read(&pack).unwrap();
    // In the first of its files, which stands behind the header; in its place, as a disk does it.
    bytes[20] ^= 0xff;
    fs::set_permissions(&pack, fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(&pack, &bytes).unwrap();
    assert!(blobs.iter().any(|blob| world.store.blob(blob).is_err()), "it is met with");
    assert!(look_through(&world));
    blobs.iter().for_each(|blob| drop(world.store.blob(blob).unwrap()));
    let again = next(&world, &workspace, &kept.commit).unwrap();
    assert_eq!(again.tree, kept.tree);
    world.fsck_objects(&again.commit);
}

#[test]
fn h15_a_head_refs_and_a_list_of_lenders_with_garbage_are_made_anew() {
    let world = World::new();
    let workspace = world.workspace("t");
    let kept = world.checkpoint(&workspace, "t");
    let at = |name: &str| world.store.path().join(name);
    let lenders = fs::read(at("objects/info/alternates")).unwrap();
    let reference = outlast_git::attempt_ref(&world.attempt("t"));
    for (name, garbage) in [("HEAD", "\u{1}garbage"), ("objects/info/alternates", "gar\0bage")] {
        fs::write(at(name), garbage).unwrap();
        assert_eq!(told(&world), [at(name)]);
        drop(Store::open_or_init(world.store.path(), &world.user).unwrap());
        assert_eq!(told(&world), Vec::<PathBuf>::new(), "{name}");
        assert_eq!(read(world.store.path(), &format!("{name}.damaged")), garbage, "it is kept");
    }
    assert_eq!(fs::read(at("objects/info/alternates")).unwrap(), lenders);
    fs::remove_file(at("objects/info/alternates")).unwrap();
    let store = Store::open_or_init(world.store.path(), &world.user).unwrap();
    assert_eq!(fs::read(at("objects/info/alternates")).unwrap(), lenders);
    // Text of another length, and of the same.
    for garbage in ["garbage\n".to_owned(), "g".repeat(40) + "\n"] {
        fs::write(at(&reference), &garbage).unwrap();
        assert_eq!(told(&world), [at(&reference)]);
        assert_eq!(store.empty_refs().unwrap().is_empty(), garbage.len() == 41);
        assert_eq!(store.damaged_refs().unwrap(), [reference.as_str()]);
        assert_eq!(store.last_checkpoint(&world.attempt("t")).unwrap(), None);
        store.mend_ref(&reference, Some(&kept.commit)).unwrap();
        assert_eq!(store.last_checkpoint(&world.attempt("t")).unwrap().as_ref(), Some(&kept.commit));
    }
    assert_eq!(told(&world), Vec::<PathBuf>::new());
}
