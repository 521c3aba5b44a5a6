//! Owns the reading of the user file: bounded, lenient, every key by itself.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use serde_json::value::RawValue;

use crate::json::RawJson;

use super::section::{Section, Warnings, members};
use super::warning::Warning;
use super::{AgentTransport, NativeDisplay, Settings, TaskPresentation};

/// Nobody writes a settings file of more than 1 MiB.
pub(super) const LARGEST: u64 = 1024 * 1024;

/// Why a file was not read.
#[derive(Debug)]
pub(super) enum Unread {
    /// There is none.
    Missing,
    /// There is something else, or it is too large, or the system refuses.
    Unreadable(String),
}

/// The content of a settings file. What is no file (a pipe, a device) is never waited for.
pub(super) fn content(path: &Path) -> Result<Vec<u8>, Unread> {
    let unreadable = |error: &io::Error| Unread::Unreadable(format!("cannot be read: {error}"));
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(Unread::Missing),
        Err(error) => return Err(unreadable(&error)),
    };
    if !metadata.is_file() {
        return Err(Unread::Unreadable("is no file".to_owned()));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| unreadable(&error))?;
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| unreadable(&error))?;
    if bytes.len() as u64 > LARGEST {
        return Err(Unread::Unreadable(format!("is larger than {LARGEST} bytes")));
    }
    Ok(bytes)
}

/// The mark that some editors put before a text.
pub(super) const MARK: &[u8] = b"\xef\xbb\xbf";

/// The text without that mark.
pub(super) fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes.strip_prefix(MARK).unwrap_or(bytes)).ok()
}

impl Settings {
    /// Reads the user file. What is missing, unreadable or wrong has its default, and all but a missing file is told.
    /// Blocks for as long as the system needs for a small file.
    pub fn read(path: &Path) -> (Self, Vec<Warning>) {
        match content(path) {
            Ok(bytes) => Self::parse(&bytes),
            Err(Unread::Missing) => (Self::default(), Vec::new()),
            Err(Unread::Unreadable(why)) => (
                Self::default(),
                vec![Warning::file(format!("the settings file {why}; all settings have their defaults"))],
            ),
        }
    }

    /// Reads what stands in the user file.
    pub fn parse(bytes: &[u8]) -> (Self, Vec<Warning>) {
        let whole = |why: &str| {
            let message = format!("the settings file {why}; all settings have their defaults");
            (Self::default(), vec![Warning::file(message)])
        };
        let Some(raw) = text(bytes).and_then(|text| serde_json::from_str::<&RawValue>(text).ok()) else {
            return whole("is not well-formed JSON");
        };
        let Some(members) = members(raw) else {
            return whole("holds no JSON object");
        };
        let mut settings = Self::default();
        let warnings = settings.take(members);
        (settings, warnings)
    }

    /// Lays settings of a higher rank over these, as an object like that of the file: what it does not say stays.
    pub fn lay_over(&mut self, above: &RawJson) -> Vec<Warning> {
        let raw = serde_json::from_str::<&RawValue>(above.text()).ok();
        match raw.and_then(members) {
            Some(members) => self.take(members),
            None => vec![Warning::file("the settings above the file are no JSON object")],
        }
    }

    fn take(&mut self, members: Vec<(String, &RawValue)>) -> Vec<Warning> {
        let mut warnings = Warnings::default();
        let mut root = Section::root(members, &mut warnings);
        read(&mut root, self);
        root.finish();
        warnings.finish()
    }
}

fn read(root: &mut Section<'_, '_>, settings: &mut Settings) {
    root.ignored("$schema");
    root.section("tools", |tools| read_tools(tools, settings));
    root.section("local", |local| read_local(local, settings));
    root.section("models", |models| {
        models.flags("fastDefaults", &mut settings.models.fast_defaults);
        models.section("cache", |cache| {
            cache.flag("enabled", &mut settings.models.cache.enabled);
            settings.models.cache.ttl_ms = cache.number("ttlMs").unwrap_or(settings.models.cache.ttl_ms);
        });
    });
    root.section("debug", |debug| {
        debug.section("sdkEvents", |events| {
            let into = &mut settings.debug.sdk_events;
            events.flag("enabled", &mut into.enabled);
            if let Some(directory) = events.text("directory") {
                into.directory = directory;
            }
            events.flag("stderr", &mut into.stderr);
        });
    });
    root.legacy(
        "bridge",
        "is not read any more; tools.bridge has the switches, tools.bridge.exclude the deny list",
    );
}

fn read_tools(tools: &mut Section<'_, '_>, settings: &mut Settings) {
    let into = &mut settings.tools;
    tools.flag("manifest", &mut into.manifest);
    tools.section("bridge", |bridge| {
        let into = &mut into.bridge;
        bridge.flag("enabled", &mut into.enabled);
        bridge.flag("exposeBuiltins", &mut into.expose_builtins);
        if let Some(names) = bridge.texts("exclude") {
            let mut known = HashSet::new();
            let names = names.into_iter().map(|name| name.trim().to_owned());
            into.exclude = names.filter(|name| !name.is_empty() && known.insert(name.clone())).collect();
        }
        into.call_timeout_ms = bridge.number("callTimeoutMs").or(into.call_timeout_ms);
        bridge.section("debug", |debug| {
            debug.flag("stderr", &mut into.debug.stderr);
            if let Some(file) = debug.text("file") {
                into.debug.file = Some(file).filter(|file| !file.is_empty());
            }
        });
        bridge.legacy("excludeTools", "is not read any more; the deny list is tools.bridge.exclude");
    });
    tools.section("mcp", |mcp| {
        let into = &mut into.mcp;
        into.call_timeout_ms = mcp.number("callTimeoutMs").or(into.call_timeout_ms);
        into.connect_timeout_ms = mcp.number("connectTimeoutMs").or(into.connect_timeout_ms);
    });
    tools.section("display", |display| {
        let native = [("auto", NativeDisplay::Auto), ("on", NativeDisplay::On), ("off", NativeDisplay::Off)];
        display.choice("native", &mut into.display.native, &native);
        let presentations = [
            ("task", TaskPresentation::Task),
            ("subagent", TaskPresentation::Subagent),
            ("subagent-meta", TaskPresentation::SubagentMeta),
        ];
        display.choice("taskPresentation", &mut into.display.task_presentation, &presentations);
    });
}

fn read_local(local: &mut Section<'_, '_>, settings: &mut Settings) {
    let into = &mut settings.local;
    if let Some(sources) = local.texts("settingSources") {
        into.setting_sources = sources;
    }
    local.flag("preservePiAgentsContext", &mut into.preserve_pi_agents_context);
    local.flag("autoReview", &mut into.auto_review);
    local.flag("sandbox", &mut into.sandbox);
    local.flag("resume", &mut into.resume);
    let transports = [("default", AgentTransport::Default), ("http1", AgentTransport::Http1)];
    local.choice("transport", &mut into.transport, &transports);
}
