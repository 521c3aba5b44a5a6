"""The official Python SDK, generation 2, as the client of a scenario; mode: legacy or auto."""

import asyncio
import os
import warnings

import mcp_types as types
import steps
from mcp.client import Client
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

warnings.simplefilter("ignore")


def transport_for(target):
    if "stdio" in target:
        command, *args = target["stdio"]
        env = {**os.environ, **target.get("env", {})}
        return stdio_client(StdioServerParameters(command=command, args=args, env=env))
    if "http" in target:
        return streamable_http_client(target["http"])
    return sse_client(target["sse"])


class Ops:
    def __init__(self, client):
        self.client = client
        self.lists = {
            "tools": lambda cursor: client.list_tools(cursor=cursor),
            "resources": lambda cursor: client.list_resources(cursor=cursor),
            "resourceTemplates": lambda cursor: client.list_resource_templates(cursor=cursor),
            "prompts": lambda cursor: client.list_prompts(cursor=cursor),
        }
        self.ping = client.send_ping
        self.level = client.set_logging_level
        self.read = client.read_resource
        self.prompt = client.get_prompt
        self.subscribe = client.subscribe_resource
        self.unsubscribe = client.unsubscribe_resource
        self.roots_changed = client.send_roots_list_changed

    def call(self, tool, args, on_progress):
        return self.client.call_tool(tool, args, progress_callback=on_progress)

    def complete(self, ref, argument, context_arguments):
        kind = types.PromptReference if ref["type"] == "ref/prompt" else types.ResourceTemplateReference
        return self.client.complete(kind(**ref), argument, context_arguments)


async def main():
    scenario, target, mode = steps.arguments()
    inbox = steps.Inbox()

    async def on_message(message):
        if not isinstance(message, Exception):
            await inbox.add(message.method, steps.dump(message.params))

    async def roots(_context):
        await inbox.add("roots/list", None)
        return types.ListRootsResult(roots=[types.Root(uri=steps.ROOT, name="interop")])

    async def sample(_context, params):
        await inbox.add("sampling/createMessage", steps.dump(params))
        content = types.TextContent(type="text", text=steps.SAMPLED)
        return types.CreateMessageResult(role="assistant", model="interop-model", content=content)

    async def elicit(_context, params):
        await inbox.add("elicitation/create", steps.dump(params))
        schema = getattr(params, "requested_schema", None)
        return types.ElicitResult(action="accept", content=steps.elicited(schema))

    client = Client(
        transport_for(target),
        mode=mode,
        cache=None,
        sampling_callback=sample,
        elicitation_callback=elicit,
        list_roots_callback=roots,
        message_handler=on_message,
    )
    async with client:
        hello = {
            "protocolVersion": client.protocol_version,
            "serverInfo": steps.dump(client.server_info),
            "capabilities": steps.dump(client.server_capabilities),
            "instructions": client.instructions,
        }
        transcript = await steps.run(scenario, hello, Ops(client), inbox)
    steps.emit(transcript)


asyncio.run(main())
