use super::*;

fn approval(name: &str) -> Approval {
    Approval { file: "/p/mcp.json".into(), name: name.to_owned(), digest: "d".to_owned(), at: 1 }
}

#[test]
fn writers_do_not_lose_each_others_approvals() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("own/trust.json");
    let threads: Vec<_> = (0..8)
        .map(|number| {
            let path = path.clone();
            std::thread::spawn(move || {
                let mut store = TrustStore::read(path).unwrap();
                store.change(|approved| approved.push(approval(&number.to_string()))).unwrap();
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let store = TrustStore::read(&path).unwrap();
    let names: Vec<_> = store.approvals().iter().map(|approval| approval.name.as_str()).collect();
    assert_eq!(names, ["0", "1", "2", "3", "4", "5", "6", "7"]);
}

#[test]
fn what_is_no_store_is_neither_used_nor_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trust.json");
    for text in ["{", "[]", r#"{"version": 2, "approved": []}"#, r#"{"version": 1, "approved": [], "x": 1}"#]
    {
        fs::write(&path, text).unwrap();
        assert!(TrustStore::read(&path).is_err(), "{text}");
        let mut store = TrustStore::empty(&path);
        assert!(store.change(|approved| approved.push(approval("a"))).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}

#[cfg(unix)]
#[test]
fn file_and_directory_are_the_users_alone() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("own/trust.json");
    let mut store = TrustStore::read(&path).unwrap();
    store.change(|approved| approved.push(approval("a"))).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    assert_eq!(TrustStore::read(&path).unwrap().approvals(), [approval("a")]);
}
