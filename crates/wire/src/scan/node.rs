//! Owns the map of a message: which places in it matter to the scanner. Everything else is [`Node::Skip`].

/// A place in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Node {
    /// Nothing here or below matters.
    #[default]
    Skip,
    /// The message's own object.
    Message,
    Jsonrpc,
    Id,
    Method,
    Params,
    Result,
    Error,
    Name,
    Uri,
    RequestId,
    ProtocolVersion,
    ParamsMeta,
    ProgressToken,
    IsError,
    ResultType,
    NextCursor,
    StructuredContent,
    /// `result.content`, or the `content` of a prompt message: an array of blocks, or one block.
    Content,
    /// A content block.
    Block,
    BlockType,
    BlockData,
    /// `result.messages`.
    Messages,
    /// An element of `result.messages`.
    PromptMessage,
}

impl Node {
    /// The place of the member `name` of an object at this place.
    #[inline]
    pub(super) fn member(self, name: &[u8]) -> Self {
        match self {
            Self::Message => match name {
                b"jsonrpc" => Self::Jsonrpc,
                b"id" => Self::Id,
                b"method" => Self::Method,
                b"params" => Self::Params,
                b"result" => Self::Result,
                b"error" => Self::Error,
                _ => Self::Skip,
            },
            Self::Params => match name {
                b"name" => Self::Name,
                b"uri" => Self::Uri,
                b"requestId" => Self::RequestId,
                b"protocolVersion" => Self::ProtocolVersion,
                b"_meta" => Self::ParamsMeta,
                _ => Self::Skip,
            },
            Self::ParamsMeta => match name {
                b"io.modelcontextprotocol/protocolVersion" => Self::ProtocolVersion,
                b"progressToken" => Self::ProgressToken,
                _ => Self::Skip,
            },
            Self::Result => match name {
                b"content" => Self::Content,
                b"isError" => Self::IsError,
                b"structuredContent" => Self::StructuredContent,
                b"resultType" => Self::ResultType,
                b"nextCursor" => Self::NextCursor,
                b"messages" => Self::Messages,
                b"protocolVersion" => Self::ProtocolVersion,
                _ => Self::Skip,
            },
            Self::PromptMessage if name == b"content" => Self::Content,
            Self::Block | Self::Content => match name {
                b"type" => Self::BlockType,
                b"data" => Self::BlockData,
                _ => Self::Skip,
            },
            _ => Self::Skip,
        }
    }

    /// The place of the elements of an array at this place.
    pub(super) fn element(self) -> Self {
        match self {
            Self::Content => Self::Block,
            Self::Messages => Self::PromptMessage,
            _ => Self::Skip,
        }
    }

    /// An object here is a content block.
    pub(super) fn is_block(self) -> bool {
        matches!(self, Self::Block | Self::Content)
    }

    /// The bytes kept of a scalar here; 0 where none are wanted.
    pub(super) fn kept_bytes(self) -> usize {
        match self {
            Self::Id | Self::RequestId => 4096,
            Self::Uri => 8192,
            Self::Method | Self::Name => 1024,
            Self::ProtocolVersion | Self::ResultType => 128,
            Self::Jsonrpc | Self::BlockType | Self::IsError | Self::NextCursor => 16,
            _ => 0,
        }
    }
}
