//! The store on a disk of its own: what is kept is what is read, and nobody's change is lost.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use toolway_secret::Secret;
use url::Url;

use super::*;
use crate::token::Tokens;

fn store(directory: &Path) -> Arc<Store> {
    Arc::new(Store::new(directory.join("store"), KeyringUse::Never))
}

fn entry(account: &str, access: &str) -> Entry {
    Entry {
        issuer: "https://as.example".to_owned(),
        asked: "https://mcp.example/mcp".to_owned(),
        resource: Url::parse("https://mcp.example/mcp").unwrap(),
        account: account.to_owned(),
        client: ClientRecord {
            id: "client".to_owned(),
            secret: Some(Secret::new("s")),
            origin: Origin::Registered,
            in_body: true,
            redirect: Some("http://127.0.0.1:1/callback".to_owned()),
            secret_ends: Some(7),
        },
        endpoints: Endpoints {
            token: Url::parse("https://as.example/token").unwrap(),
            revocation: Url::parse("https://as.example/revoke").ok(),
        },
        tokens: Some(Tokens {
            access: Secret::new(access),
            refresh: Some(Secret::new("refresh")),
            obtained_at_ms: 5,
            expires_in: Some(Duration::from_secs(9)),
            scopes: vec!["a".to_owned(), "b".to_owned()],
        }),
        wanted: vec!["c".to_owned()],
        ended: Some("why".to_owned()),
        generation: 0,
        changed_at: 0,
    }
}

fn kept(store: &Arc<Store>, entry: &Entry, over: Over) -> Option<Entry> {
    match store.prepare(&entry.id()).unwrap().keep(entry.clone(), over).unwrap() {
        Written::Kept(kept) => Some(*kept),
        Written::Overtaken => None,
    }
}

fn access(entry: &Entry) -> String {
    entry.tokens.as_ref().unwrap().access.expose().to_owned()
}

#[test]
fn a_change_is_kept_over_what_it_was_made_from_alone() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let id = entry("", "").id();
    assert!(store.read(&id).unwrap().is_none() && !directory.path().join("store").exists());
    let first = kept(&store, &entry("", "one"), Over::Generation(0)).unwrap();
    assert_eq!(first.generation, 1);
    // Of what was there before, and of what was never there.
    assert!(kept(&store, &entry("", "stale"), Over::Generation(0)).is_none());
    assert!(kept(&store, &entry("", "stale"), Over::Generation(2)).is_none());
    assert_eq!(access(&store.read(&id).unwrap().unwrap()), "one");
    let second = kept(&store, &entry("", "two"), Over::Generation(1)).unwrap();
    let third = kept(&store, &entry("", "three"), Over::Anything).unwrap();
    assert_eq!((second.generation, third.generation), (2, 3));
    assert!(
        !store.remove(&id, 2).unwrap() && store.remove(&id, 3).unwrap() && !store.remove(&id, 3).unwrap()
    );
    assert!(kept(&store, &entry("", "gone"), Over::Generation(3)).is_none(), "who signed out stays so");
}

#[test]
fn nothing_of_an_entry_that_is_secret_is_printed() {
    let mut entry = entry("", "s3cret-access");
    entry.client.secret = Some(Secret::new("s3cret-client"));
    let printed = format!("{entry:?} {entry:#?}");
    assert!(printed.contains("https://as.example") && !printed.contains("s3cret"), "{printed}");
}

#[test]
fn what_is_found_is_of_the_account_and_the_client() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let out = Entry { tokens: None, ..entry("", "") };
    let other = ClientRecord { id: "other".to_owned(), ..out.client.clone() };
    let other = Entry { client: other, ..entry("", "of the other") };
    let longer = Entry { asked: "https://mcp.example/mcp2".to_owned(), ..entry("", "elsewhere") };
    for entry in [&out, &other, &longer, &entry("work", "at work")] {
        kept(&store, entry, Over::Generation(0)).unwrap();
    }
    let found = |client, account| {
        let found = store.find("https://mcp.example/mcp", client, account).unwrap();
        found.iter().map(|entry| (entry.client.id.clone(), entry.tokens.is_some())).collect::<Vec<_>>()
    };
    let (in_other, out_of_first) = (("other".to_owned(), true), ("client".to_owned(), false));
    assert_eq!(found(None, ""), [in_other.clone(), out_of_first.clone()]);
    assert_eq!((found(Some("client"), ""), found(Some("other"), "")), (vec![out_of_first], vec![in_other]));
    assert_eq!((found(None, "work").len(), found(None, "nobody").len()), (1, 0));
    assert_eq!(store.all().unwrap().len(), 4);
}

#[test]
fn what_a_killed_process_left_is_cleared_away_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let (mine, other) = (entry("", "mine"), entry("work", "other"));
    kept(&store, &mine, Over::Generation(0)).unwrap();
    let left = |id: &EntryId| directory.path().join(format!("store/{id}.Xyz.new"));
    fs::write(left(&mine.id()), "half").unwrap();
    fs::write(left(&other.id()), "another's, at work now").unwrap();
    kept(&store, &mine, Over::Generation(1)).unwrap();
    assert!(!left(&mine.id()).exists() && left(&other.id()).exists());
    // Room that is not used leaves nothing.
    drop(store.prepare(&mine.id()).unwrap());
    let new = fs::read_dir(directory.path().join("store")).unwrap().flatten();
    assert_eq!(new.filter(|file| file.file_name().to_string_lossy().ends_with(".new")).count(), 1);
}

#[test]
fn a_seal_is_of_one_key_and_one_place() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (first, second) = (store(one.path()), store(other.path()));
    first.writable().unwrap();
    second.writable().unwrap();
    let path = Path::new("/x/name.sealed");
    let sealed = first.sealer.seal(path, b"text").unwrap();
    assert_eq!(first.sealer.open(Path::new("/y/name.sealed"), &sealed).unwrap().as_slice(), b"text");
    assert_ne!(first.sealer.seal(path, b"text").unwrap(), sealed, "no nonce is used twice");
    for (sealer, name) in [(&first, "/x/other.sealed"), (&second, "/x/name.sealed")] {
        let error = sealer.sealer.open(Path::new(name), &sealed).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("damaged"), "{error}");
    }
    // None of the bytes can be changed.
    for place in 0..sealed.len() - 2 {
        let mut changed = sealed.clone();
        changed[place] ^= 1;
        let opened = first.sealer.open(path, &changed);
        assert!(opened.is_err(), "byte {place} of {}", String::from_utf8_lossy(&changed));
    }
}

#[tokio::test(start_paused = true)]
async fn a_lock_has_one_holder_and_says_who_and_what_it_left() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let id = entry("", "").id();
    let mut held = store.lock(&id, Duration::from_secs(1)).await.unwrap();
    assert_eq!(held.before(), "");
    let error = store.lock(&id, Duration::from_secs(3)).await.unwrap_err().to_string();
    let own = format!("process {}", std::process::id());
    assert!(error.contains(&own) && error.contains("more than 3 s"), "{error}");
    assert!(store.try_lock_named(&format!("{id}.lock")).unwrap().is_none());
    // Another sign-in has another lock.
    drop(store.lock(&entry("work", "").id(), Duration::ZERO).await.unwrap());
    held.leave("a word that is longer than what was there");
    held.leave("a word");
    drop(held);
    assert_eq!(store.lock(&id, Duration::ZERO).await.unwrap().before(), "a word");
}

proptest! {
    #[test]
    fn an_entry_is_read_as_it_was_written(
        account in ".{0,12}", secret in proptest::option::of(".{0,12}"), access in ".{1,20}",
        refresh in proptest::option::of(".{1,20}"), life in proptest::option::of(any::<u64>()),
        at in any::<u64>(), scopes in proptest::collection::vec("[a-z:]{1,8}", 0..4), ended in proptest::option::of(".{0,20}"),
    ) {
        let mut entry = entry(&account, "");
        entry.client.secret = secret.map(Secret::new);
        entry.tokens = Some(Tokens {
            access: Secret::new(access), refresh: refresh.map(Secret::new), obtained_at_ms: at,
            expires_in: life.map(Duration::from_secs), scopes,
        });
        entry.ended = ended;
        let written = entry.written();
        let read = Entry::read(&written).unwrap();
        let again = read.written();
        prop_assert_eq!(again.as_slice(), written.as_slice());
        prop_assert_eq!(read.id(), entry.id());
    }

    #[test]
    fn whatever_is_in_a_file_is_read_to_an_end(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Err(error) = Entry::read(&bytes) {
            prop_assert!(error.starts_with("column"), "{}", error);
        }
    }
}
