//! Compares the facade's public API with a list of the names and signatures that a Burn 0.22 program may use.
//!
//! The list is read by `list`, the facade's rustdoc JSON by `rustdoc`; both are brought into one canonical form by `canon`, so that the names of arguments and of
//! type parameters, lifetimes, and bounds written inline or after `where` make no difference.

mod canon;
mod list;
mod render;
mod rustdoc;

use crate::{Outcome, workspace};
use list::{Entry, Expect};
use rustdoc::World;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// How one entry of the list fares.
enum Verdict {
    Matched,
    Missing,
    Differs(String),
}

/// Where the list lies: an argument, `KILN_API_LIST`, or beside the repository.
fn list_path(argument: Option<PathBuf>) -> PathBuf {
    argument
        .or_else(|| std::env::var_os("KILN_API_LIST").map(PathBuf::from))
        .unwrap_or_else(|| workspace::root().join("../shared/api/public-api.txt"))
}

/// Whether the list is at its usual place, so that CI can hold the figure to its floor.
pub fn list_is_here() -> bool {
    list_path(None).exists()
}

/// Prints what is missing or differs, by module; with `--check-floor`, fails if fewer entries match than `xtask/api-floor.txt` says.
pub fn run(args: &[String]) -> Outcome {
    let (mut module, mut list, mut floor, mut quiet) = (None, None, false, false);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--module" => module = Some(args.next().ok_or("--module needs a path")?.replace("kiln", "burn")),
            "--check-floor" => floor = true,
            "--summary" => quiet = true,
            path if !path.starts_with('-') => list = Some(PathBuf::from(path)),
            other => return Err(format!("unknown argument {other:?}; see `cargo xtask help`")),
        }
    }
    let path = list_path(list);
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut entries = list::read(&text);
    if let Some(module) = &module {
        let below = format!("{module}::");
        entries.retain(|entry| entry.module == *module || entry.module.starts_with(&below));
    }
    if entries.is_empty() {
        return Err(format!("{} lists nothing for this module", path.display()));
    }
    let world = World::load()?;
    let matched = report(&world, &entries, quiet);
    println!("api: {matched}/{}", entries.len());
    match floor {
        true if module.is_none() => hold_floor(matched),
        _ => Ok(()),
    }
}

/// Prints one block a module and returns how many entries match.
fn report(world: &World, entries: &[Entry], quiet: bool) -> usize {
    let mut modules: BTreeMap<&str, (usize, usize, Vec<String>)> = BTreeMap::new();
    for entry in entries {
        let (matched, listed, notes) = modules.entry(&entry.module).or_default();
        *listed += 1;
        match judge(world, entry) {
            Verdict::Matched => *matched += 1,
            Verdict::Missing => notes.push(format!("  missing  {}", entry.text)),
            Verdict::Differs(ours) => notes.push(format!("  differs  {}\n           ours: {ours}", entry.text)),
        }
    }
    let mut total = 0;
    for (module, (matched, listed, notes)) in modules {
        total += matched;
        println!("{} {matched}/{listed}", module.replacen("burn", "kiln", 1));
        if !quiet {
            notes.iter().for_each(|note| println!("{note}"));
        }
    }
    total
}

fn judge(world: &World, entry: &Entry) -> Verdict {
    let path = format!("{}::{}", entry.module.replacen("burn", "kiln", 1), entry.item);
    match &entry.expect {
        Expect::Exists => match world.exists(&path) {
            true => Verdict::Matched,
            false => Verdict::Missing,
        },
        Expect::Header(canonical) => match world.headers(&path) {
            found if found.iter().any(|ours| canon::header_fits(canonical, ours)) => Verdict::Matched,
            found => found.into_iter().next().map_or(Verdict::Missing, Verdict::Differs),
        },
        Expect::Member { name, canonical } => match world.members(&path) {
            found if found.iter().any(|ours| ours.1 == *canonical) => Verdict::Matched,
            found => match found.into_iter().find(|ours| ours.0 == *name) {
                Some(ours) => Verdict::Differs(ours.1),
                None => Verdict::Missing,
            },
        },
        Expect::Implements(canonical) => match world.implements(canonical) {
            true => Verdict::Matched,
            false => Verdict::Missing,
        },
    }
}

fn hold_floor(matched: usize) -> Outcome {
    let path = workspace::root().join("xtask/api-floor.txt");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let floor: usize = text.trim().parse().map_err(|_| format!("{} does not hold a number", workspace::shown(&path)))?;
    if matched < floor {
        return Err(format!("{matched} entries match, fewer than the {floor} of {}", workspace::shown(&path)));
    }
    if matched > floor {
        println!("the floor in {} can rise from {floor} to {matched}", workspace::shown(&path));
    }
    Ok(())
}
