//! Behaviour of the local preview, on real files.

use std::fs;

use super::*;

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let cwd = folder.path().join("work");
    fs::create_dir_all(cwd.join("src")).unwrap();
    (folder, cwd)
}

#[test]
fn a_file_of_the_working_directory_is_shown() {
    let (_folder, cwd) = folder();
    fs::write(cwd.join("src/a.txt"), "hello").unwrap();
    assert_eq!(text(&Disk, &cwd, "src/a.txt"), Some(("hello".to_owned(), true)));
    assert_eq!(text(&Disk, &cwd, cwd.join("src/a.txt").to_str().unwrap()), Some(("hello".to_owned(), true)));
    fs::write(cwd.join("big"), "é".repeat(TEXT_BYTES)).unwrap();
    let (shown, whole) = text(&Disk, &cwd, "big").unwrap();
    assert_eq!((shown.len(), whole), (TEXT_BYTES, false));
    fs::write(cwd.join("odd"), format!("x{}", "é".repeat(TEXT_BYTES))).unwrap();
    assert_eq!(text(&Disk, &cwd, "odd").unwrap().0.len(), TEXT_BYTES - 1);
}

#[cfg(unix)]
#[test]
fn lesson_35_a_preview_never_leaves_the_workspace_through_links_or_shows_sensitive_names() {
    use std::os::unix::fs::symlink;
    let (folder, cwd) = folder();
    let outside = folder.path().join("outside.txt");
    fs::write(&outside, "outside").unwrap();
    fs::create_dir_all(cwd.join(".ssh")).unwrap();
    fs::create_dir_all(cwd.join("secrets")).unwrap();
    for name in
        [".env", ".env.local", ".npmrc", ".netrc", "credentials.json", "tls.key", ".ssh/config", "secrets/a"]
    {
        fs::write(cwd.join(name), "secret").unwrap();
        assert_eq!(text(&Disk, &cwd, name), None, "{name}");
    }
    symlink(&outside, cwd.join("link")).unwrap();
    symlink(folder.path(), cwd.join("up")).unwrap();
    symlink(cwd.join(".env"), cwd.join("plain.txt")).unwrap();
    symlink(cwd.join("secrets"), cwd.join("src/docs")).unwrap();
    fs::write(cwd.join("fine.txt"), "fine").unwrap();
    symlink(cwd.join("fine.txt"), cwd.join("server.pem")).unwrap();
    symlink(cwd.join("fine.txt"), cwd.join("alias.txt")).unwrap();
    for name in [
        "link",
        "up/outside.txt",
        "../outside.txt",
        "src/../../outside.txt",
        "plain.txt",
        "src/docs/a",
        "server.pem",
        "",
        ".",
        "src",
    ] {
        assert_eq!(text(&Disk, &cwd, name), None, "{name}");
    }
    assert_eq!(text(&Disk, &cwd, outside.to_str().unwrap()), None);
    assert_eq!(text(&Disk, &cwd, "alias.txt"), Some(("fine".to_owned(), true)));
    // The working directory may itself be reached by a link.
    symlink(&cwd, folder.path().join("here")).unwrap();
    assert_eq!(text(&Disk, &folder.path().join("here"), "fine.txt"), Some(("fine".to_owned(), true)));
}

#[test]
fn what_is_no_text_is_not_shown() {
    let (_folder, cwd) = folder();
    fs::write(cwd.join("nul"), b"a\0b").unwrap();
    fs::write(cwd.join("latin"), b"caf\xe9 au lait").unwrap();
    assert_eq!(
        (text(&Disk, &cwd, "nul"), text(&Disk, &cwd, "latin"), text(&Disk, &cwd, "a\0b")),
        (None, None, None)
    );
}

#[test]
fn an_image_is_shown_by_its_bytes_and_not_its_name() {
    let (_folder, cwd) = folder();
    fs::write(cwd.join("a.txt"), b"\x89PNG\r\n\x1a\nrest").unwrap();
    fs::write(cwd.join("b.png"), b"no image").unwrap();
    assert!(matches!(image(&Disk, &cwd, "a.txt"), Some(CardBlock::Image { mime_type: "image/png", .. })));
    assert_eq!(image(&Disk, &cwd, "b.png"), None);
    let large = fs::File::create(cwd.join("large.png")).unwrap();
    io::Write::write_all(&mut &large, b"\x89PNG").unwrap();
    large.set_len(IMAGE_BYTES as u64 + 1).unwrap();
    assert_eq!(image(&Disk, &cwd, "large.png"), None);
}
