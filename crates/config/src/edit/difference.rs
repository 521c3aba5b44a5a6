//! Owns what a change means for data, and the smallest steps that make it. Pure; knows no format.

use serde_json::{Map, Value as Json};

use crate::problem::Problem;
use crate::tree::pointer;

use super::Change;

/// Makes the change in the data.
pub(super) fn apply(data: &mut Json, change: &Change) -> Result<(), Problem> {
    let Some((last, above)) = change.path().split_last() else {
        return Err(Problem::error("a change needs the name of a member"));
    };
    let mut here = data;
    for (depth, name) in above.iter().enumerate() {
        let place = pointer(above.get(..depth).unwrap_or_default());
        let members = object(here, &place)?;
        if !members.contains_key(name) {
            if matches!(change, Change::Remove { .. }) {
                return Ok(());
            }
            members.insert(name.clone(), Json::Object(Map::new()));
        }
        here = members.entry(name.clone()).or_insert(Json::Null);
    }
    let members = object(here, &pointer(above))?;
    match change {
        Change::Set { value, .. } => members.insert(last.clone(), value.clone()),
        Change::Remove { .. } => members.shift_remove(last),
    };
    Ok(())
}

fn object<'a>(data: &'a mut Json, place: &str) -> Result<&'a mut Map<String, Json>, Problem> {
    match data {
        Json::Object(members) => Ok(members),
        _ => Err(Problem::error("is no object, so it has no members that could be changed").field(place)),
    }
}

/// The change in steps of which none sets an object where an object is.
pub(super) fn steps(data: &Json, change: &Change) -> Vec<Change> {
    let there = change.path().iter().try_fold(data, |node, name| node.get(name));
    let mut steps = Vec::new();
    match (change, there) {
        (Change::Set { path, value }, Some(there)) => compare(&mut path.clone(), there, value, &mut steps),
        (Change::Set { .. }, None) | (Change::Remove { .. }, Some(_)) => steps.push(change.clone()),
        (Change::Remove { .. }, None) => {}
    }
    steps
}

fn compare(path: &mut Vec<String>, old: &Json, new: &Json, steps: &mut Vec<Change>) {
    match (old, new) {
        _ if old == new => {}
        // Two objects that share nothing are no older and newer version of one another.
        (Json::Object(old), Json::Object(new)) if old.keys().any(|name| new.contains_key(name)) => {
            for name in old.keys().filter(|name| !new.contains_key(*name)) {
                path.push(name.clone());
                steps.push(Change::remove(path));
                path.pop();
            }
            for (name, value) in new {
                path.push(name.clone());
                match old.get(name) {
                    Some(there) => compare(path, there, value, steps),
                    None => steps.push(Change::set(path, value.clone())),
                }
                path.pop();
            }
        }
        _ => steps.push(Change::set(path, new.clone())),
    }
}
