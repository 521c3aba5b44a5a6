//! How the answers of servers are shown: text, tables, images, files. It must not know how they were asked for.

mod content;
mod file;
mod graphics;
mod structured;
mod terminal;
mod text;

pub(crate) use content::{Shown, show_block, show_result};
pub(crate) use file::Shelf;
pub(crate) use terminal::Terminal;
pub(crate) use text::{fit, json, one_line, safe, whole_line};
