//! Completions and manual pages of the real binary.

use anyhow::{Result, ensure};

use crate::House;

#[test]
fn every_shell_has_completions() -> Result<()> {
    let house = House::new()?;
    for (shell, text) in [
        ("bash", "complete -F _toolway"),
        ("zsh", "#compdef toolway"),
        ("fish", "complete -c toolway"),
        ("powershell", "Register-ArgumentCompleter"),
    ] {
        let told = house.run(["completions", shell])?.ended(0)?;
        ensure!(told.out.contains(text) && told.out.contains("save-to"), "{shell}");
    }
    house.leave()
}

#[test]
fn bash_takes_its_completions() -> Result<()> {
    let house = House::new()?;
    house.write("it.bash", &house.run(["completions", "bash"])?.ended(0)?.out)?;
    let code = "source ./it.bash && COMP_WORDS=(toolway com) COMP_CWORD=1 && _toolway toolway com toolway && echo \"${COMPREPLY[*]}\"";
    let output = std::process::Command::new("bash")
        .args(["--norc", "-c", code])
        .current_dir(house.rig.path())
        .output()?;
    let said = String::from_utf8(output.stdout)?;
    ensure!(said == "completions\n", "{said:?} {}", String::from_utf8_lossy(&output.stderr));
    house.leave()
}

#[test]
fn manual_pages_are_printed_and_written() -> Result<()> {
    let house = House::new()?;
    house.run(["man"])?.ended(0)?.says(&[".TH toolway 1"])?;
    house.run(["man", "saved", "list"])?.ended(0)?.says(&[".TH toolway-saved-list 1"])?;
    house.run(["man", "cal"])?.ended(2)?.says(&["did you mean call?"])?;
    house.run(["man", "--dir", "pages/man1"])?.ended(0)?;
    for name in ["toolway.1", "toolway-call.1", "toolway-list.1", "toolway-stdio.1"] {
        let page = std::fs::read_to_string(house.rig.path().join("pages/man1").join(name))?;
        ensure!(page.contains(".SH SYNOPSIS"), "{name}: {page}");
    }
    house.leave()
}
