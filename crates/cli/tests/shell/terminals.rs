//! What a person at a terminal sees: tables, pictures, progress, questions. The terminal is a real one.

use anyhow::{Result, ensure};
use toolway_testkit::SOON;

use crate::House;

#[test]
fn rows_are_a_table_and_texts_steer_nothing() -> Result<()> {
    let house = House::new()?;
    let command = house.command(
        r#"on tools/call/rows -> answer {"content":[{"type":"text","text":"{\"rows\":[{\"name\":\"a\",\"size\":1},{\"name\":\"b\",\"size\":20}]}"}],"structuredContent":{"rows":[{"name":"a","size":1},{"name":"b","size":20}]}}
on tools/call/evil -> text a\u001b[2J\u009b1mb"#,
    )?;
    let (code, seen) = house.seat(&["call", "--command", &command, "rows"])?.ends()?;
    assert_eq!((code, seen.as_str()), (Some(0), "name  size\na        1\nb       20\n"));
    let (code, seen) = house.seat(&["call", "--command", &command, "evil"])?.ends()?;
    assert_eq!((code, seen.as_str()), (Some(0), "a\\x1b[2J\\u{9b}1mb\n"));
    let (code, seen) = house.seat(&["call", "--json", "--command", &command, "evil"])?.ends()?;
    ensure!(code == Some(0) && seen.contains(r#""a\u001b[2J\u009b1mb""#), "{code:?} {seen:?}");
    house.leave()
}

#[test]
fn a_terminal_that_can_shows_pictures() -> Result<()> {
    let house = House::new()?.with_variable("TERM", "xterm-kitty");
    let command = house.command(
        r#"on tools/call/t -> answer {"content":[{"type":"image","data":"{png:3000}","mimeType":"image/png"}]}"#,
    )?;
    let (code, seen) = house.seat(&["call", "--command", &command, "t"])?.ends()?;
    ensure!(code == Some(0) && seen.starts_with("\u{1b}_Ga=T,f=100,q=2,m="), "{code:?} {seen:?}");
    house.leave()
}

#[test]
fn progress_is_drawn_and_taken_away() -> Result<()> {
    let mut house = House::new()?;
    let command = house.command(
        r#"on tools/call/t
    send {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":{token},"progress":3,"total":10,"message":"half\u001b[1m way"}}
    wait go
    text done"#,
    )?;
    let mut seat = house.seat(&["call", "--command", &command, "t"])?;
    seat.sees("\r\u{1b}[Kt: 3 of 10 (30%) half\\x1b[1m way")?;
    let mut server = house.rig.arrival()?;
    server.tell("arm go")?;
    let (code, seen) = seat.ends()?;
    assert_eq!(code, Some(0));
    ensure!(seen.ends_with("\r\u{1b}[Kdone\n"), "{seen:?}");
    house.leave()
}

const ASKS: &str = r#"on tools/call/t
    send {"jsonrpc":"2.0","id":"q1","method":"elicitation/create","params":{"message":"Who are you?","requestedSchema":{"type":"object","required":["name"],"properties":{"name":{"type":"string","title":"Name"},"age":{"type":"integer"}}}}}
    wait response:"q1"
    text went on"#;

#[test]
fn a_question_is_put_to_the_person() -> Result<()> {
    let mut house = House::new()?;
    let command = house.command(ASKS)?;
    let mut seat = house.seat(&["call", "--command", &command, "t"])?;
    let mut server = house.rig.arrival()?;
    seat.sees("Name (text, required): ")?;
    seat.types("Bo\n")?;
    seat.sees("age (whole number): ")?;
    seat.types("40\n")?;
    seat.sees("Send these answers? [Y/n] ")?;
    seat.types("y\n")?;
    server.wait_for(r#"{"action":"accept","content":{"name":"Bo","age":40}}"#, SOON)?;
    let (code, seen) = seat.ends()?;
    ensure!(code == Some(0) && seen.ends_with("went on\n"), "{code:?} {seen:?}");
    house.leave()
}

#[test]
fn the_end_of_input_declines_and_a_signal_ends_all() -> Result<()> {
    let mut house = House::new()?;
    let command = house.command(ASKS)?;
    let mut seat = house.seat(&["call", "--command", &command, "t"])?;
    let mut server = house.rig.arrival()?;
    seat.sees("Name (text, required): ")?;
    seat.types("\u{4}")?;
    server.wait_for(r#"{"action":"decline"}"#, SOON)?;
    assert_eq!(seat.ends()?.0, Some(0));

    let mut seat = house.seat(&["call", "--command", &command, "t"])?;
    let mut server = house.rig.arrival()?;
    seat.sees("Name (text, required): ")?;
    seat.interrupts()?;
    assert_eq!(seat.ends()?.0, Some(130));
    server.wait_gone(SOON)?;
    house.leave()
}
