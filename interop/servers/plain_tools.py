"""An ordinary server with the tools that the bridge's scripted host offers: ``plain_tools.py http PORT``.

It speaks both generations of the protocol. Its tools do what scenarios/bridge/clients.json says, under the bridge's names.
"""

import asyncio
import json
import pathlib
import re
import sys

import anyio
import mcp_types as types
import uvicorn
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

SCENARIO = pathlib.Path(__file__).resolve().parents[1] / "scenarios" / "bridge" / "clients.json"
TOOLS = {
    "pi__" + re.sub(r"[^A-Za-z0-9_-]+", "_", tool["name"]): tool
    for tool in json.loads(SCENARIO.read_text("utf-8"))["tools"]
}
waiting = {}  # calls that wait for each other


def text_of(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def content_of(value):
    """Text and images as they are, anything else as text."""
    if not isinstance(value, list):
        value = [{"type": "text", "text": value}]
    blocks = [
        types.ImageContent(type="image", data=block["data"], mime_type=block["mimeType"])
        if block["type"] == "image"
        else types.TextContent(type="text", text=block["text"] if block["type"] == "text" else text_of(block))
        for block in value
    ]
    return blocks or [types.TextContent(type="text", text="")]


async def together(name, count):
    calls = waiting.setdefault(name, [])
    ready = asyncio.get_running_loop().create_future()
    calls.append(ready)
    if len(calls) == count:
        for call in calls:
            call.set_result(None)
        calls.clear()
    await ready


async def list_tools(_context, _params):
    tools = [
        types.Tool(name=name, description=tool.get("description"), input_schema={**tool["parameters"], "type": "object"})
        for name, tool in TOOLS.items()
    ]
    return types.ListToolsResult(tools=tools)


async def call_tool(context, params):
    does = TOOLS[params.name]["does"]
    for update in does.get("progress", []):
        await context.session.report_progress(**update)
    if "stuck" in does:
        await anyio.sleep_forever()
    if "gather" in does:
        await together(params.name, does["gather"])
    if "fails" in does:
        raise MCPError(-32000, does["fails"])
    if "blocks" in does:
        return types.CallToolResult(content=content_of(does["blocks"]), is_error=True)
    answer = text_of(params.arguments) if "echo" in does else does.get("content", "")
    if does.get("isError"):
        return types.CallToolResult(content=content_of(answer), is_error=True)
    return types.CallToolResult(content=content_of(answer))


server = Server("pi-cursor-sdk-tool-bridge", version="0.1.0", on_list_tools=list_tools, on_call_tool=call_tool)
uvicorn.run(server.streamable_http_app(), host="127.0.0.1", port=int(sys.argv[2]), log_level="error")
