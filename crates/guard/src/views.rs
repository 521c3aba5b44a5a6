//! Owns the second pass over a message: its text, its binary blocks and where its parts stand, in bounded memory.
//! Does not decide what is shown of them.

mod block;
mod media;
mod pretty;
mod text;
mod walk;

use std::io;
use std::ops::Range;

use toolway_wire::lex::{Container, Lexer, Run, Sink};
use toolway_wire::text::TextDecoder;

pub(crate) use block::{Block, BlockKind};
pub(crate) use pretty::{PRETTY_MAX, Pretty};
pub(crate) use text::Ends;

use crate::directory::{Directory, Temporary};
use crate::policy::Shape;
use crate::source::Source;
use block::{BinaryPart, TextPart};
use media::Decoder;
use text::{TextOut, TextPipe};
use walk::{Step, Walk, block_len, path_is_resource};

/// Blocks that are told apart; more are counted only.
const MAX_BLOCKS: usize = 10_000;
/// Files that one message's blocks are decoded into.
const MAX_FILES: usize = 1_000;
const MAX_MEMBERS: usize = 64;
const SMALL: usize = 8192;

/// Where the parts of a message stand that a rewritten one may need.
#[derive(Debug, Default)]
pub(crate) struct Spans {
    pub(crate) result: Option<Range<u64>>,
    /// `structuredContent`, or data of an error or of a log message that is no string.
    pub(crate) structured: Option<Range<u64>>,
    pub(crate) meta: Option<Range<u64>>,
    pub(crate) description: Option<Range<u64>>,
    pub(crate) code: Option<Range<u64>>,
    pub(crate) level: Option<Range<u64>>,
    pub(crate) logger: Option<Range<u64>>,
    /// Members of `result` that are none of the above nor contents: name and value.
    pub(crate) members: Vec<Range<u64>>,
    /// `result.content` is an array.
    pub(crate) has_content: bool,
}

/// The text of a message besides its ends.
#[derive(Debug, Default)]
pub(crate) enum TextView {
    /// There was none.
    #[default]
    None,
    File(Temporary),
    Memory(Vec<u8>),
    /// It could not be written, or is too large to keep; why, if there is a reason to tell.
    Missing(Option<String>),
}

/// What the pass found.
#[derive(Debug, Default)]
pub(crate) struct Viewed {
    pub(crate) blocks: Vec<Block>,
    /// All blocks, those too many to tell apart included.
    pub(crate) block_count: usize,
    pub(crate) text: TextView,
    pub(crate) ends: Ends,
    pub(crate) text_blocks: usize,
    pub(crate) spans: Spans,
}

impl Viewed {
    /// The only text block, if there is exactly one.
    pub(crate) fn single_text(&self) -> Option<&TextPart> {
        if self.text_blocks == 1 { self.blocks.iter().find_map(|block| block.text.as_ref()) } else { None }
    }
}

/// Goes through a message once. Files are made in `directory`; without one, text of up to `memory` bytes is kept
/// in memory. `keep` bytes are kept of each end of the text. What is not JSON to its end is viewed as far as it
/// goes.
pub(crate) fn view(
    source: Source<'_>,
    shape: Shape,
    directory: Option<&Directory>,
    memory: u64,
    keep: usize,
) -> io::Result<Viewed> {
    // With a directory a file is made when there is a text.
    let out = match directory {
        None if source.len() <= memory => TextOut::Memory(Vec::new()),
        _ => TextOut::Nowhere(None),
    };
    let mut viewer = Viewer {
        walk: Walk::new(),
        shape,
        directory,
        pipe: TextPipe::new(out, keep),
        taking: Taking::Nothing,
        small: Vec::new(),
        decoder: TextDecoder::default(),
        block: None,
        files: 0,
        part_start: (0, 0),
        member: (0, 0, false),
        in_atom: false,
        result_at: 0,
        viewed: Viewed::default(),
    };
    let mut lexer = Lexer::new();
    source.each(|chunk| Ok(lexer.feed(chunk, &mut viewer).is_ok()))?;
    Ok(viewer.finish())
}

#[derive(Debug)]
enum Taking {
    Nothing,
    Small(Step),
    Text,
    Binary(Box<Decoder>),
}

#[derive(Debug)]
struct Viewer<'a> {
    walk: Walk,
    shape: Shape,
    directory: Option<&'a Directory>,
    pipe: TextPipe,
    taking: Taking,
    small: Vec<u8>,
    decoder: TextDecoder,
    block: Option<Block>,
    files: usize,
    part_start: (u64, u64),
    /// Where the member at level 2 stands: its name, its value, and whether that is a container.
    member: (u64, u64, bool),
    in_atom: bool,
    result_at: u64,
    viewed: Viewed,
}

impl Viewer<'_> {
    /// A value begins at `at`; `container` is `None` for strings and atoms.
    fn begin(&mut self, container: Option<Container>, at: u64) {
        let path = self.walk.path();
        match path.len() {
            1 if path == [Step::Result] => self.result_at = at,
            2 => {
                self.member = (self.walk.key_at(), at, container.is_some());
                if path == [Step::Result, Step::Content] {
                    self.viewed.spans.has_content = container == Some(Container::Array);
                }
            }
            length if container == Some(Container::Object) && block_len(path) == Some(length) => {
                self.viewed.block_count += 1;
                self.block = Some(Block { span: at..at, ..Block::default() });
            }
            _ => {}
        }
    }

    fn end(&mut self, end: u64) {
        let path = self.walk.path();
        let length = path.len();
        if path == [Step::Result] {
            self.viewed.spans.result = Some(self.result_at..end);
        } else if length == 2 {
            self.top_member(end);
        } else if self.block.is_some() && block_len(path) == Some(length) {
            self.end_block(end);
        }
    }

    fn top_member(&mut self, end: u64) {
        use Step::{
            Code, Content, Contents, Data, Description, Error, IsError, Level, Logger, Message, Messages,
            Meta, Params, Result, StructuredContent,
        };
        let (key_at, at, is_container) = self.member;
        let span = at..end;
        let spans = &mut self.viewed.spans;
        match self.walk.path() {
            [Result, StructuredContent] => spans.structured = Some(span),
            [Error | Params, Data] if is_container => spans.structured = Some(span),
            [Result | Params, Meta] => spans.meta = Some(span),
            [Result, Description] => spans.description = Some(span),
            [Error, Code] => spans.code = Some(span),
            [Params, Level] => spans.level = Some(span),
            [Params, Logger] => spans.logger = Some(span),
            [Result, Content | Contents | Messages | IsError] | [Error, Message] => {}
            [Result, _] if spans.members.len() < MAX_MEMBERS => spans.members.push(key_at..end),
            _ => {}
        }
    }

    fn end_block(&mut self, end: u64) {
        let Some(mut block) = self.block.take() else { return };
        block.span.end = end;
        if self.viewed.blocks.len() < MAX_BLOCKS {
            self.viewed.blocks.push(block);
        }
    }

    fn begin_string(&mut self, at: u64) {
        use Step::{Blob, Data, Error, Message, MimeType, Name, Params, Resource, Text, Type, Uri};
        self.begin(None, at);
        let path = self.walk.path();
        let taking = match block_len(path).map(|length| path.get(length..).unwrap_or_default()) {
            Some([step @ (Type | MimeType | Name | Uri)] | [Resource, step @ (MimeType | Uri)]) => {
                Taking::Small(*step)
            }
            Some([Text] | [Resource, Text]) => Taking::Text,
            Some([Data | Blob] | [Resource, Blob]) => self.begin_binary(),
            _ => match (self.shape, path) {
                (Shape::Error, [Error, Message | Data]) | (Shape::LogMessage, [Params, Data]) => Taking::Text,
                _ => Taking::Nothing,
            },
        };
        if path_is_resource(self.walk.path())
            && let Some(block) = &mut self.block
        {
            block.resource = true;
        }
        if matches!(taking, Taking::Text) {
            self.begin_text();
        }
        self.taking = taking;
    }

    fn begin_binary(&self) -> Taking {
        let directory = self.directory.filter(|_| self.files < MAX_FILES);
        Taking::Binary(Box::new(Decoder::new(directory)))
    }

    fn begin_text(&mut self) {
        if self.viewed.text_blocks == 0 {
            if let Some(directory) = self.directory {
                self.pipe.begin_file(directory);
            }
        } else {
            self.pipe.plain(&format!("\n\n----- text {} -----\n\n", self.viewed.text_blocks + 1));
        }
        self.viewed.text_blocks += 1;
        self.part_start = (self.pipe.position(), self.pipe.breaks());
    }

    fn end_string(&mut self, end: u64) {
        match std::mem::replace(&mut self.taking, Taking::Nothing) {
            Taking::Nothing => {}
            Taking::Text => {
                self.pipe.end();
                let (start, breaks) = self.part_start;
                let part =
                    TextPart { range: start..self.pipe.position(), breaks: self.pipe.breaks() - breaks };
                match &mut self.block {
                    Some(block) => block.text = Some(part),
                    // The message of an error, or the data of a log message.
                    None => self.viewed.blocks.push(Block { text: Some(part), ..Block::default() }),
                }
            }
            Taking::Binary(decoder) => self.end_binary(*decoder),
            Taking::Small(step) => self.end_small(step),
        }
        self.end(end);
    }

    fn end_binary(&mut self, decoder: Decoder) {
        let Some(decoded) = decoder.finish() else { return };
        let Some(block) = &mut self.block else { return };
        self.files += usize::from(decoded.temporary.is_some());
        let extension = media::extension(&decoded.magic, block.mime.as_deref());
        block.binary = Some(BinaryPart { temporary: decoded.temporary, extension, bytes: decoded.bytes });
    }

    fn end_small(&mut self, step: Step) {
        self.decoder.end(&mut self.small);
        let fits = self.small.len() <= SMALL;
        let text = String::from_utf8_lossy(&self.small).into_owned();
        self.small.clear();
        if !fits {
            return;
        }
        let Some(block) = &mut self.block else { return };
        match step {
            Step::Type => block.type_name = text,
            Step::MimeType => {
                // Where the type came after the bytes, it may still help to name the file.
                if let Some(binary) = &mut block.binary
                    && binary.extension == "bin"
                {
                    binary.extension = media::extension(&[], Some(&text));
                }
                block.mime = Some(text);
            }
            Step::Uri => block.uri = Some(text),
            _ => block.name = Some(text),
        }
    }

    fn finish(mut self) -> Viewed {
        if matches!(self.taking, Taking::Text) {
            // The message broke off in a text: what came of it is all there is.
            self.end_string(0);
        }
        let (out, ends) = self.pipe.finish();
        self.viewed.ends = ends;
        self.viewed.text = match out {
            _ if self.viewed.text_blocks == 0 => TextView::None,
            TextOut::File(file) => TextView::File(file),
            TextOut::Memory(bytes) => TextView::Memory(bytes),
            TextOut::Nowhere(reason) => TextView::Missing(reason),
        };
        self.viewed
    }
}

impl Sink for Viewer<'_> {
    fn open(&mut self, container: Container, at: u64) {
        self.begin(Some(container), at);
        self.walk.open(container);
    }

    fn close(&mut self, _container: Container, end: u64) {
        self.walk.close();
        self.end(end);
    }

    fn string_begin(&mut self, key: bool, at: u64) {
        if key { self.walk.key_begin(at) } else { self.begin_string(at) }
    }

    #[inline]
    fn run(&mut self, run: Run<'_>) {
        if self.walk.in_key() {
            return self.walk.key_run(run);
        }
        match &mut self.taking {
            Taking::Nothing => {}
            Taking::Text => self.pipe.run(run),
            Taking::Binary(decoder) => decoder.run(run.bytes),
            Taking::Small(_) => {
                // One byte more than fits says that it did not.
                let room = (SMALL + 1).saturating_sub(self.small.len()).min(run.bytes.len());
                self.decoder.run(run.bytes.get(..room).unwrap_or_default(), &mut self.small);
            }
        }
    }

    #[inline]
    fn escape(&mut self, unit: u16, _raw: &[u8]) {
        if self.walk.in_key() {
            return self.walk.key_escape(unit);
        }
        match &mut self.taking {
            Taking::Nothing => {}
            Taking::Text => self.pipe.escape(unit),
            Taking::Binary(decoder) => decoder.escape(unit),
            Taking::Small(_) => {
                if self.small.len() <= SMALL {
                    self.decoder.escape(unit, &mut self.small);
                }
            }
        }
    }

    fn string_end(&mut self, end: u64) {
        if self.walk.in_key() { self.walk.key_end() } else { self.end_string(end) }
    }

    fn atom(&mut self, _bytes: &[u8], at: u64) {
        if !std::mem::replace(&mut self.in_atom, true) {
            self.begin(None, at);
        }
    }

    fn atom_end(&mut self, end: u64) {
        self.in_atom = false;
        self.end(end);
    }
}

#[cfg(test)]
mod tests;
