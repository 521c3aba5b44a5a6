//! Owns giving a message and its views their names, and the entry in the index. After it the files are complete.

use std::time::SystemTime;

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use toolway_wire::{Envelope, Id};

use crate::GuardError;
use crate::config::{PathMap, shown_path};
use crate::directory::Temporary;
use crate::name::{SavedName, random_bits};
use crate::policy::{CallInfo, Shape};
use crate::reshape::{ShownFile, Whereabouts, uri_of};
use crate::saved::{SavedEntry, SavedFile, Store, now_us};
use crate::spill::SpoolFile;
use crate::views::{TextView, Viewed};

/// The names that a message's files will have.
#[derive(Debug)]
pub(super) struct Naming<'a> {
    store: &'a Store,
    maps: &'a [PathMap],
    name: SavedName,
    at: SystemTime,
}

/// What the index tells of a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct About<'a> {
    pub(super) message: &'a Envelope,
    pub(super) call: Option<&'a CallInfo>,
    pub(super) shape: Shape,
    pub(super) redacted: bool,
    pub(super) json_text: bool,
}

impl<'a> Naming<'a> {
    pub(super) fn new(
        store: &'a Store,
        maps: &'a [PathMap],
        message: &Envelope,
        call: Option<&CallInfo>,
    ) -> Self {
        let at = SystemTime::now();
        let method = method(message, call);
        let subject = call.and_then(|call| call.tool.as_deref().or(call.uri.as_deref()));
        let id = message.id().map(Id::to_string);
        let name = SavedName::new(OffsetDateTime::from(at), method, subject, id.as_deref(), random_bits());
        Self { store, maps, name, at }
    }

    fn file(&self, extension: &str) -> String {
        format!("{}.{extension}", self.name.stem)
    }

    fn shown(&self, file: &str) -> String {
        shown_path(&self.store.path(file), self.maps)
    }

    /// For every block the file that it will be in, as the client sees it.
    pub(super) fn block_files(&self, viewed: &Viewed) -> Vec<Option<ShownFile>> {
        let shown = |(index, block): (usize, &crate::views::Block)| {
            let binary = block.binary.as_ref().filter(|binary| binary.temporary.is_some())?;
            let path = self.shown(&self.file(&format!("{}.{}", index + 1, binary.extension)));
            Some(ShownFile {
                path,
                kind: kind(&block.type_name),
                bytes: binary.bytes,
                mime: block.mime.clone(),
            })
        };
        viewed.blocks.iter().enumerate().map(shown).collect()
    }

    /// Renames everything, the message first, and appends to the index.
    pub(super) fn commit(
        self,
        file: SpoolFile,
        sha256: &[u8; 32],
        viewed: &mut Viewed,
        pretty: Option<(Temporary, u64)>,
        about: About<'_>,
    ) -> Result<Whereabouts, GuardError> {
        let mut entry = self.entry(&file, sha256, viewed, about);
        file.temporary.keep(&entry.file)?;
        let mut whereabouts = Whereabouts {
            id: self.name.id.clone(),
            path: self.shown(&entry.file),
            uri: uri_of(&self.shown(&entry.file)),
            sha256: entry.sha256.clone(),
            redacted: about.redacted,
            ..Whereabouts::default()
        };
        self.views(viewed, pretty, &mut entry, &mut whereabouts);
        if let Err(error) = self.store.add(&entry) {
            tracing::warn!(%error, "a saved result is not in the index");
            whereabouts.reason = Some(error.to_string());
        }
        Ok(whereabouts)
    }

    /// Names the views. One that cannot be named is told as missing; the message itself is safe.
    fn views(
        &self,
        viewed: &mut Viewed,
        pretty: Option<(Temporary, u64)>,
        entry: &mut SavedEntry,
        whereabouts: &mut Whereabouts,
    ) {
        match std::mem::take(&mut viewed.text) {
            TextView::File(temporary) => {
                let text = SavedFile {
                    file: self.file("txt"),
                    kind: "text".into(),
                    bytes: viewed.ends.bytes,
                    lines: Some(viewed.ends.lines()),
                };
                whereabouts.text_path = self.keep(temporary, text, None, entry, whereabouts);
            }
            TextView::Missing(reason) => {
                whereabouts.reason = reason.map(|reason| format!("no text view: {reason}"));
            }
            TextView::None | TextView::Memory(_) => {}
        }
        if let Some((temporary, lines)) = pretty {
            let bytes = temporary.file.metadata().map_or(0, |metadata| metadata.len());
            let pretty = SavedFile {
                file: self.file("pretty.json"),
                kind: "pretty".into(),
                bytes,
                lines: Some(lines),
            };
            let path = self.keep(temporary, pretty, None, entry, whereabouts);
            whereabouts.pretty = path.map(|path| (path, lines));
        }
        for (index, block) in viewed.blocks.iter_mut().enumerate() {
            let Some(binary) = &mut block.binary else { continue };
            let Some(temporary) = binary.temporary.take() else { continue };
            let file = SavedFile {
                file: self.file(&format!("{}.{}", index + 1, binary.extension)),
                kind: kind(&block.type_name).into(),
                bytes: binary.bytes,
                lines: None,
            };
            self.keep(temporary, file, block.mime.clone(), entry, whereabouts);
        }
    }

    fn keep(
        &self,
        temporary: Temporary,
        file: SavedFile,
        mime: Option<String>,
        entry: &mut SavedEntry,
        whereabouts: &mut Whereabouts,
    ) -> Option<String> {
        match temporary.keep(&file.file) {
            Ok(_) => {
                let path = self.shown(&file.file);
                let kind = match file.kind.as_str() {
                    "text" => "text",
                    "pretty" => "pretty",
                    other => kind(other),
                };
                whereabouts.files.push(ShownFile { path: path.clone(), kind, bytes: file.bytes, mime });
                entry.files.push(file);
                Some(path)
            }
            Err(error) => {
                whereabouts.reason = Some(error.to_string());
                None
            }
        }
    }

    fn entry(&self, file: &SpoolFile, sha256: &[u8; 32], viewed: &Viewed, about: About<'_>) -> SavedEntry {
        let owned = |text: Option<&String>| text.map(|text| text.chars().take(1024).collect());
        let call = about.call;
        let structured = viewed.spans.structured.clone().filter(|_| about.message.has_structured_content());
        SavedEntry {
            id: self.name.id.clone(),
            at: OffsetDateTime::from(self.at).format(&Rfc3339).unwrap_or_default(),
            at_us: now_us(self.at),
            server: call.map(|call| call.server.clone()).unwrap_or_default(),
            session: call.map(|call| call.session.clone()).unwrap_or_default(),
            method: method(about.message, call).to_owned(),
            tool: owned(call.and_then(|call| call.tool.as_ref())),
            uri: owned(call.and_then(|call| call.uri.as_ref())),
            file: self.file("json"),
            files: Vec::new(),
            bytes: file.len,
            chars: about.message.size().chars,
            lines: viewed.ends.lines(),
            sha256: hexadecimal(sha256),
            redacted: about.redacted,
            is_error: about.message.is_error().or((about.shape == Shape::Error).then_some(true)),
            structured: structured.map(|span| (span.start, span.end)),
            json_text: about.json_text,
        }
    }
}

fn method<'a>(message: &'a Envelope, call: Option<&'a CallInfo>) -> &'a str {
    call.map(|call| call.method.as_str()).or_else(|| message.method()).unwrap_or("message")
}

fn kind(type_name: &str) -> &'static str {
    match type_name {
        "image" => "image",
        "audio" => "audio",
        _ => "binary",
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(64), |mut out, byte| {
        if write!(out, "{byte:02x}").is_err() {
            out.clear();
        }
        out
    })
}
