//! A store that is damaged, of another version, of somebody else, full, or not to be written.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Result, ensure};
use toolway_auth::AuthError;
use toolway_testkit::SOON;

use crate::desk::{Called, Desk, Person, call};
use crate::processes::Other;

fn mode(path: &Path, mode: u32) -> Result<()> {
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(mode))?)
}

async fn fails(desk: &Desk, path: &Path, whys: &[&str]) -> Result<AuthError> {
    let error = call(&desk.again(|_| {}).session(desk.server()?), "whoami").await?.error()?;
    let text = desk.text(&error);
    ensure!(text.contains(&path.display().to_string()), "{text} does not name {}", path.display());
    for why in whys {
        ensure!(text.contains(why), "{text} does not say {why}");
    }
    ensure!(desk.issuer.journal().refreshes().is_empty());
    Ok(error)
}

#[tokio::test]
async fn what_cannot_be_read_is_said_and_keeps_nobody_from_signing_in() -> Result<()> {
    let damages: [fn(&mut Vec<u8>); 6] = [
        |bytes| bytes.truncate(bytes.len() / 2),
        Vec::clear,
        |bytes| bytes.fill(b'x'),
        |bytes| bytes.resize(2 << 20, b'x'),
        |bytes| {
            // A letter of what is sealed.
            let place = bytes.len() - 20;
            bytes[place] = if bytes[place] == b'A' { b'B' } else { b'A' };
        },
        |bytes| *bytes = b"{\"version\":1,\"nonce\":\"AA==\",\"data\":\"\"}".to_vec(),
    ];
    for damage in damages {
        let desk = Desk::plain()?;
        desk.signed_in().await?;
        let file = desk.sealed()?.remove(0);
        let mut bytes = fs::read(&file)?;
        damage(&mut bytes);
        fs::write(&file, &bytes)?;
        fails(&desk, &file, &[]).await?;
        let all = desk.auth.all().await?;
        ensure!(all.len() == 1 && all[0].1.is_err(), "{all:?}");
        let session = desk.signed_in().await?;
        ensure!(matches!(call(&session, "whoami").await?, Called::Good(_)));
        ensure!(matches!(
            call(&desk.again(|_| {}).session(desk.server()?), "whoami").await?,
            Called::Good(_)
        ));
        desk.clean()?;
    }
    Ok(())
}

#[tokio::test]
async fn a_file_in_anothers_place_is_not_taken_for_it() -> Result<()> {
    let desk = Desk::plain()?;
    desk.signed_in().await?;
    let file = desk.sealed()?.remove(0);
    let mut server = desk.server()?;
    server.account = "other".to_owned();
    desk.auth.session(server).login(&[], false, &Person::default()).await?;
    let other = desk.sealed()?.into_iter().find(|path| *path != file).unwrap();
    fs::copy(&other, &file)?;
    fails(&desk, &file, &["damaged", "sign in again"]).await?;
    desk.clean()
}

#[tokio::test]
async fn what_a_newer_version_wrote_is_never_touched() -> Result<()> {
    let desk = Desk::plain()?;
    let session = desk.signed_in().await?;
    let file = desk.sealed()?.remove(0);
    let newer = b"{\"version\":99,\"something\":\"else\"}";
    fs::write(&file, newer)?;
    let error = fails(&desk, &file, &["newer version (99)", "update this program"]).await?;
    ensure!(matches!(error, AuthError::Newer { version: 99, .. }), "{error:?}");
    let fresh = desk.again(|_| {}).session(desk.server()?);
    let person = Person::default();
    for done in [
        fresh.login(&[], false, &person).await.map(drop),
        fresh.login(&[], true, &person).await.map(drop),
        fresh.revoke().await.map(drop),
        fresh.token().await.map(drop),
        fresh.status().await.map(drop),
    ] {
        ensure!(matches!(done, Err(AuthError::Newer { .. })), "{done:?}");
    }
    ensure!(person.count() == 0 && fs::read(&file)? == newer);
    // Who has a token in memory goes on with it.
    ensure!(matches!(call(&session, "whoami").await?, Called::Good(_)));
    desk.clean()
}

#[tokio::test]
async fn a_key_that_is_lost_or_damaged_is_said_and_another_made() -> Result<()> {
    let desk = Desk::plain()?;
    let running = desk.signed_in().await?;
    let key = desk.directory().join("key");
    let old = fs::read(&key)?;
    fs::write(&key, b"key AAAA\n")?;
    fails(&desk, &key, &["no key", "remove it, and sign in again"]).await?;
    let person = Person::default();
    let fresh = desk.again(|_| {}).session(desk.server()?);
    let error = fresh.login(&[], false, &person).await.unwrap_err();
    ensure!(desk.text(&error).contains("no key") && person.count() == 0, "{error}");
    fs::remove_file(&key)?;
    fails(&desk, &key, &["missing", "sign in again"]).await?;
    fresh.login(&[], false, &person).await?;
    ensure!(fs::read(&key)? != old && person.count() == 1);
    // A process that has run all the while, with the old key, finds what was kept with the new one.
    ensure!(desk.issuer.revoke_family("AT1"));
    ensure!(matches!(call(&running, "whoami").await?, Called::Good(_)));
    ensure!(matches!(call(&fresh, "whoami").await?, Called::Good(_)));
    desk.clean()
}

#[tokio::test]
async fn what_others_could_read_is_tightened() -> Result<()> {
    let desk = Desk::plain()?;
    let session = desk.signed_in().await?;
    mode(&desk.directory(), 0o755)?;
    let files = [desk.sealed()?.remove(0), desk.directory().join("key")];
    for file in &files {
        mode(file, 0o644)?;
    }
    desk.issuer.expire_access_tokens();
    drop(session);
    ensure!(matches!(call(&desk.again(|_| {}).session(desk.server()?), "whoami").await?, Called::Good(_)));
    let found = |path: &Path| Ok::<_, anyhow::Error>(fs::metadata(path)?.permissions().mode() & 0o777);
    ensure!(found(&desk.directory())? == 0o700);
    for file in &files {
        ensure!(found(file)? == 0o600, "{}", file.display());
    }
    desk.clean()
}

#[tokio::test]
async fn a_directory_that_is_none_is_said_before_anybody_is_asked() -> Result<()> {
    let desk = Desk::plain()?;
    let file = desk.directory();
    fs::write(&file, b"")?;
    mode(&file, 0o644)?;
    let person = Person::default();
    let error = desk.session()?.login(&[], false, &person).await.unwrap_err();
    let text = desk.text(&error);
    ensure!(text.contains("is no directory") && text.contains(&file.display().to_string()), "{text}");
    ensure!(person.count() == 0 && fs::metadata(&file)?.permissions().mode() & 0o777 == 0o644);
    // Below a file there can be none.
    let auth = desk.again(|settings| settings.directory = file.join("sign-ins"));
    let error = auth.session(desk.server()?).login(&[], false, &person).await.unwrap_err();
    ensure!(desk.text(&error).contains("cannot be made") && person.count() == 0, "{error}");
    desk.clean()
}

/// Programs that take the right to write from what they start. Root may write everywhere, unless it gives that up.
fn read_only() -> &'static [&'static str] {
    if rustix::process::geteuid().is_root() {
        &["setpriv", "--bounding-set=-dac_override", "--inh-caps=-dac_override"]
    } else {
        &["env"]
    }
}

/// No file can grow, as on a disk that is full.
const FULL: [&str; 4] = ["sh", "-c", "trap '' XFSZ; ulimit -f 0; exec \"$@\"", "sh"];

#[tokio::test]
async fn where_nothing_can_be_kept_no_token_is_used_up() -> Result<()> {
    for full in [true, false] {
        let desk = Desk::plain()?;
        desk.signed_in().await?;
        let by = if full { &FULL[..] } else { read_only() };
        let once = || {
            if !full {
                mode(&desk.directory(), 0o500)?;
            }
            let said = Other::confined(&desk, by)?.ended(SOON)?;
            mode(&desk.directory(), 0o700)?;
            anyhow::Ok(said)
        };
        // A token that is good is used.
        let said = once()?;
        ensure!(said[0] == ("good".to_owned(), "AT1 mcp".to_owned()), "{said:?}");
        // One that is not, is not renewed: the new one would be lost, and with it the sign-in of all.
        desk.issuer.expire_access_tokens();
        let said = once()?;
        let (what, text) = &said[0];
        ensure!(what == "error" && text.contains(&desk.directory().display().to_string()), "{said:?}");
        ensure!(text.contains("cannot be written"), "{said:?}");
        ensure!(desk.issuer.journal().refreshes().is_empty(), "{}", desk.issuer.journal().told());
        // And when there is room again, all is well.
        ensure!(
            call(&desk.again(|_| {}).session(desk.server()?), "whoami").await?
                == Called::Good("AT2 mcp".to_owned())
        );
        desk.clean()?;
    }
    Ok(())
}
