//! What a change leaves alone, in every format, and how a file is replaced.

use std::path::Path;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::tree::read_bytes;

fn edited(text: &str, format: Format, changes: &[Change]) -> String {
    String::from_utf8(edit(text.as_bytes(), format, changes).unwrap().bytes).unwrap()
}

const SETTINGS: &str = "\u{feff}{\r\n  // team servers\r\n  \"mcpServers\": {\r\n    \"good\": { \"command\": \"fakemcp\", \"args\": \
[\"a.script\",], },\r\n    \"typo\": { \"comand\": \"fakemcp\" },\r\n    \"http\": { \"type\": \"streamableHttp\", \
\"future_key\": {\"x\":1} }, /* ok */\r\n  },\r\n}";

#[test]
fn a_switched_off_server_leaves_comments_order_byte_order_mark_and_line_ends() {
    let disabled =
        edited(SETTINGS, Format::Jsonc, &[Change::set(&["mcpServers", "good", "disabled"], json!(true))]);
    let line = "\"good\": { \"command\": \"fakemcp\", \"args\": [\"a.script\",], },";
    let (before, after) = SETTINGS.split_once(line).unwrap();
    assert!(disabled.starts_with(before) && disabled.ends_with(after), "{disabled}");
    assert!(!disabled.replace("\r\n", "").contains('\n'), "{disabled:?}");
    let enabled =
        edited(&disabled, Format::Jsonc, &[Change::set(&["mcpServers", "good", "disabled"], json!(false))]);
    assert_eq!(enabled, disabled.replace("\"disabled\": true", "\"disabled\": false"));
}

#[test]
fn servers_are_added_and_removed_in_the_files_own_style() {
    let text = "{\n\t\"mcpServers\": {\n\t\t\"a\": {\"command\": \"x\"} // first\n\t}\n}\n";
    let two = edited(
        text,
        Format::Jsonc,
        &[Change::set(&["mcpServers", "b"], json!({"command": "y", "args": ["z"]}))],
    );
    assert_eq!(
        two,
        "{\n\t\"mcpServers\": {\n\t\t\"a\": {\"command\": \"x\"}, // first\n\t\t\"b\": {\n\t\t\t\"command\": \
         \"y\",\n\t\t\t\"args\": [\"z\"]\n\t\t}\n\t}\n}\n"
    );
    assert_eq!(edited(&two, Format::Jsonc, &[Change::remove(&["mcpServers", "b"])]), text);
    let fresh = edited("", Format::Jsonc, &[Change::set(&["mcpServers", "b", "url"], json!("u"))]);
    assert_eq!(fresh.trim_end(), "{\n  \"mcpServers\": {\n    \"b\": {\n      \"url\": \"u\"\n    }\n  }\n}");
}

#[test]
fn an_object_is_only_touched_where_it_differs() {
    let text = "{\"a\": {\n  // why\n  \"x\": 1, // one\n  \"y\": [1,  2],\n  \"z\": {\"k\":  0}\n}}";
    let changes = [Change::set(&["a"], json!({"x": 2, "y": [1, 2], "z": {"k": 0}}))];
    assert_eq!(edited(text, Format::Jsonc, &changes), text.replace("\"x\": 1", "\"x\": 2"));
}

#[test]
fn toml_keeps_its_comments_and_line_ends() {
    let text = "# mine\r\nmodel = \"o\" # which\r\n\r\n[mcp_servers.a]\r\ncommand = 'x'  # run\r\nenv = { K = \"v\" }\r\n\r\n# \
                tail\r\n[other]\r\nk = 1\r\n";
    let changes = [
        Change::set(&["mcp_servers", "a", "enabled"], json!(false)),
        Change::set(&["mcp_servers", "a", "command"], json!("y")),
        Change::set(&["mcp_servers", "a", "env", "L"], json!("w")),
        Change::set(&["mcp_servers", "b c"], json!({"url": "u", "http_headers": {"X-Y": "z"}, "n": 1.5})),
    ];
    let expected = "# mine\r\nmodel = \"o\" # which\r\n\r\n[mcp_servers.a]\r\ncommand = \"y\"  # run\r\nenv = { K = \"v\" , L \
                    = \"w\" }\r\nenabled = false\r\n\r\n[mcp_servers.\"b c\"]\r\nurl = \
                    \"u\"\r\nn = 1.5\r\n\r\n[mcp_servers.\"b c\".http_headers]\r\nX-Y = \"z\"\r\n\r\n# tail\r\n[other]\r\nk = 1\r\n";
    assert_eq!(edited(text, Format::Toml, &changes), expected);
    assert_eq!(
        edited(expected, Format::Toml, &[Change::remove(&["mcp_servers", "a"])]).matches("[mcp_").count(),
        2
    );
    let null = edit(b"", Format::Toml, &[Change::set(&["a"], json!(null))]).unwrap_err();
    assert_eq!(null[0].to_string(), "a: null cannot be written in TOML");
}

const GOOSE: &str = "# mine\nGOOSE_MODEL: x # which\nextensions:\n  # first\n  fetch:\n    cmd: uvx # run\n    args: \
[mcp-server-fetch]\n    enabled: true\n    envs: {}\n\n  # second\n  other:\n    type: sse\n    note: |\n      long # \
text\n      more\n\n# tail\nz: 1\n";

#[test]
fn yaml_keeps_every_line_that_is_not_the_members_own() {
    for (change, from, to) in [
        (Change::set(&["extensions", "fetch", "enabled"], json!(false)), "enabled: true", "enabled: false"),
        (Change::set(&["extensions", "fetch", "cmd"], json!("a: b")), "cmd: uvx", "cmd: \"a: b\""),
        (
            Change::set(&["extensions", "fetch", "timeout"], json!(5)),
            "    envs: {}\n",
            "    envs: {}\n    timeout: 5\n",
        ),
        (
            Change::set(&["extensions", "fetch", "envs", "K"], json!("1")),
            "    envs: {}\n",
            "    envs:\n      K: \"1\"\n",
        ),
        (
            Change::set(&["extensions", "new"], json!({"args": ["a", {"b": []}]})),
            "      more\n",
            "      more\n  new:\n    args:\n      - a\n      - b: []\n",
        ),
        (
            Change::remove(&["extensions", "other", "note"]),
            "    note: |\n      long # text\n      more\n",
            "",
        ),
        (Change::remove(&["GOOSE_MODEL"]), "GOOSE_MODEL: x # which\n", ""),
    ] {
        let expected = GOOSE.replacen(from, to, 1);
        assert_eq!(edited(GOOSE, Format::Yaml, &[change]), expected);
    }
}

#[test]
fn comments_that_yaml_loses_are_told() {
    let flow = "a: {b: 1} # x\n# y\n";
    let change = Change::set(&["a", "c"], json!([true]));
    let edited = edit(flow.as_bytes(), Format::Yaml, &[change]).unwrap();
    assert_eq!(edited.bytes, b"a:\n  b: 1\n  c:\n    - true\n# y\n");
    assert_eq!(edited.lost_comments, ["# x"]);
}

#[test]
fn what_is_no_object_is_not_turned_into_one() {
    for (text, format) in
        [("{\"a\": [1]}", Format::Jsonc), ("a = [1]\n", Format::Toml), ("a: [1]\n", Format::Yaml)]
    {
        let problems = edit(text.as_bytes(), format, &[Change::set(&["a", "b"], json!(1))]).unwrap_err();
        assert!(problems[0].to_string().starts_with("/a: is no object"), "{format:?} {}", problems[0]);
    }
}

fn value() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Json::from),
        any::<i32>().prop_map(Json::from),
        "[ -~äß\n\t]{0,12}".prop_map(Json::from),
        prop_oneof!["yes", "null", "1.5", "- x", "a: b", " x", "#", "~", "0x1"].prop_map(Json::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Json::from),
            proptest::collection::btree_map("[a-z :#.'\"ü-]{1,6}", inner, 0..4)
                .prop_map(|members| Json::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Any value, set anywhere, is what is read afterwards, and the bytes outside of the map stay.
    #[test]
    fn edits_change_what_they_say_and_nothing_else(value in value(), name in "[a-zA-Z_. ä-]{1,8}", which in 0..3usize) {
        let entry = ["good", "http", "new"][which];
        for (text, format, root, ends) in [
            (SETTINGS, Format::Jsonc, "mcpServers", "\r\n  },\r\n}"),
            ("# a\n[extensions.good] # b\ncommand = 'x'\n[z]\nk = 1 # c\n", Format::Toml, "extensions", ""),
            (&GOOSE.replace("fetch:", "good:"), Format::Yaml, "extensions", "\n# tail\nz: 1\n"),
        ] {
            let path = [root, entry, &name];
            let set = edited(text, format, &[Change::set(&path, value.clone())]);
            let before = text.split_once(root).map_or("", |(before, _)| before);
            prop_assert!(set.starts_with(before) && set.ends_with(ends), "{}", set);
            let read = tree::read(set.as_bytes(), format).unwrap();
            prop_assert_eq!(read.at_path(&path).map(Node::to_json), Some(value.clone()));
            let gone = edited(&set, format, &[Change::remove(&path)]);
            prop_assert!(tree::read(gone.as_bytes(), format).unwrap().at_path(&path).is_none());
        }
    }
}

fn set_a(path: &Path, seen: Option<&[u8]>) -> Result<Written, Vec<Problem>> {
    edit_file(path, Format::Jsonc, seen, &[Change::set(&["a"], json!(1))], Audience::Owner)
}

#[test]
fn a_new_file_and_its_directories_are_private() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("deep/er/mcp.json");
    assert!(set_a(&path, None).unwrap().changed);
    assert_eq!(read_bytes(&path).unwrap(), b"{\n  \"a\": 1\n}\n");
    assert!(!set_a(&path, Some(b"{\n  \"a\": 1\n}\n")).unwrap().changed);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        let shared = directory.path().join("shared/mcp.json");
        let change = [Change::set(&["a"], json!(1))];
        edit_file(&shared, Format::Jsonc, None, &change, Audience::Everybody).unwrap();
        let plain = directory.path().join("plain");
        std::fs::write(&plain, "").unwrap();
        assert_eq!(mode(&shared), mode(&plain));
    }
}

#[cfg(unix)]
#[test]
fn a_file_is_replaced_behind_its_link_with_its_mode() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let directory = tempfile::tempdir().unwrap();
    let (real, link) = (directory.path().join("real.json"), directory.path().join("link.json"));
    std::fs::write(&real, "{}").unwrap();
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o664)).unwrap();
    symlink("real.json", &link).unwrap();
    assert_eq!(set_a(&link, Some(b"{}")).unwrap().path, real);
    assert!(link.is_symlink() && std::fs::read_to_string(&real).unwrap().contains("\"a\": 1"));
    assert_eq!(std::fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o664);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2, "no temporary file is left");
    let cycle = directory.path().join("cycle.json");
    symlink("cycle.json", &cycle).unwrap();
    assert!(set_a(&cycle, None).unwrap_err()[0].to_string().contains("leads back to itself"));
}

#[test]
fn a_file_that_changed_meanwhile_or_is_protected_stays() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mcp.json");
    std::fs::write(&path, "{\"b\": 2}").unwrap();
    for seen in [None, Some(b"{}".as_slice())] {
        let told = set_a(&path, seen).unwrap_err()[0].to_string();
        assert!(
            told.ends_with("was changed by another program meanwhile; nothing was written (try again)"),
            "{told}"
        );
    }
    let mut permissions = std::fs::metadata(&path).unwrap().permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(&path, permissions).unwrap();
    assert!(set_a(&path, Some(b"{\"b\": 2}")).unwrap_err()[0].to_string().contains("is write-protected"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"b\": 2}");
}

#[test]
fn many_writers_lose_no_change() {
    let directory = tempfile::tempdir().unwrap();
    let path = &directory.path().join("mcp.json");
    std::fs::write(path, "{}").unwrap();
    std::thread::scope(|scope| {
        for index in 0..8 {
            scope.spawn(move || {
                loop {
                    let seen = read_bytes(path).unwrap();
                    let change = Change::set(&[format!("k{index}")], json!(index));
                    if edit_file(path, Format::Jsonc, Some(&seen), &[change], Audience::Owner).is_ok() {
                        break;
                    }
                }
            });
        }
    });
    let all = tree::read(&read_bytes(path).unwrap(), Format::Json).unwrap();
    assert_eq!(all.members().unwrap().len(), 8);
}

#[test]
fn a_removed_member_takes_only_its_own_comments_along() {
    for (format, text, gone) in [
        (Format::Jsonc, "{\n  // c1\n  \"a\": 1, // c2\n  // c3\n  \"b\": 2 // c4\n  // c5\n}", "c2"),
        (Format::Toml, "# c1\n\n# ca\n[s.a] # cb\nx = 1 # cc\n# c2\n[s.b] # c3\n# c4\n", "ca cb cc"),
        (
            Format::Yaml,
            "# c1\ns:\n  # c2\n  a: # ca\n    x: 1 # cb\n  # c3\n  b: 2 # c4\n  # c5\n# c6\n",
            "ca cb",
        ),
    ] {
        let path: &[&str] = if format == Format::Jsonc { &["a"] } else { &["s", "a"] };
        let left = edited(text, format, &[Change::remove(path)]);
        for comment in ["c1", "c2", "c3", "c4", "c5", "c6", "ca", "cb", "cc"] {
            let stays = text.contains(comment) && !gone.contains(comment);
            assert_eq!(left.contains(comment), stays, "{format:?} {comment}\n{left}");
        }
    }
}
