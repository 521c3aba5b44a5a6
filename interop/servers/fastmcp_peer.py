"""A FastMCP server for the interop suite: ``fastmcp_peer.py stdio`` or ``fastmcp_peer.py http|http-json|sse PORT``."""

import base64
import struct
import sys
import zlib

import mcp_types as types
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.tools import ToolResult
from pydantic import BaseModel, ConfigDict

server = FastMCP("interop-fastmcp", version="1.0.0", instructions="Answers the same every time.")


class Rows(BaseModel):
    """Strict: nothing may be added, and both members must be there."""

    model_config = ConfigDict(extra="forbid")
    rows: list[str]
    next: str | None


@server.tool
def query(count: int) -> Rows:
    """Rows of 500 characters, with a strict output schema."""
    return Rows(rows=["r" * 500] * count, next=None)


@server.tool
def echo(message: str) -> str:
    """The message itself."""
    return message


@server.tool(output_schema=None)
def mixed(lines: int) -> ToolResult:
    """Much text, a small image, a link and an embedded resource, in this order."""
    image = base64.b64encode(picture(160, 120)).decode()
    return ToolResult(
        content=[
            types.TextContent(type="text", text="\n".join(f"line {n} é世😀" for n in range(lines))),
            types.ImageContent(type="image", data=image, mime_type="image/png"),
            types.ResourceLink(type="resource_link", uri="file:///x", name="x"),
            types.EmbeddedResource(
                type="resource",
                resource=types.TextResourceContents(uri="data://embedded", mime_type="text/plain", text="embedded"),
            ),
        ]
    )


@server.tool
def fails(size: int) -> str:
    """Always an error result."""
    raise ToolError("it failed: " + "x" * size)


@server.tool
async def slow(steps: int, ctx: Context) -> str:
    """Reports its progress."""
    for step in range(steps):
        await ctx.report_progress(step + 1, steps, f"step {step + 1}")
    return "done"


@server.tool
async def chatty(ctx: Context) -> str:
    """Logs at three levels before it answers."""
    await ctx.debug("a debug line")
    await ctx.info("an info line")
    await ctx.warning("a warning line")
    return "logged"


class Choice(BaseModel):
    """What is asked of the person at the client."""

    name: str
    count: int


@server.tool
async def asks(ctx: Context) -> str:
    """Asks the person at the client."""
    answer = await ctx.elicit("Which one?", response_type=Choice)
    return f"{answer.action}: {getattr(answer, 'data', None)}"


@server.resource("data://small")
def small() -> str:
    """A few words."""
    return "a small resource"


@server.resource("data://large")
def large() -> str:
    """Over any client's limit."""
    return "\n".join(f"row {n}" for n in range(20_000))


@server.resource("data://item/{name}")
def item(name: str) -> str:
    """One item of a template."""
    return f"item {name}"


@server.prompt
def review(code: str) -> str:
    """A prompt with an argument."""
    return f"Review this: {code}"


@server.prompt
def long_prompt() -> str:
    """A prompt over any client's limit."""
    return "word " * 10_000


def picture(width: int, height: int) -> bytes:
    """A valid PNG of noise that does not compress, the same at every start."""
    state, rows = 1, bytearray()
    for _ in range(height):
        rows.append(0)
        for _ in range(width * 3):
            state = (state * 1103515245 + 12345) & 0x7FFFFFFF
            rows.append(state >> 16 & 0xFF)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(rows))) + chunk(b"IEND", b"")


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run(transport="stdio", show_banner=False)
    else:
        kind, port = sys.argv[1], int(sys.argv[2])
        options = {"json_response": True} if kind == "http-json" else {}
        kind = kind.removesuffix("-json")
        server.run(transport=kind, host="127.0.0.1", port=port, show_banner=False, **options)
