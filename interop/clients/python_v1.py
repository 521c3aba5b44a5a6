"""The official Python SDK, generation 1, as the client of a scenario."""

import asyncio
import os
from contextlib import AsyncExitStack

import mcp.types as types
import steps
from mcp import ClientSession, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from pydantic import AnyUrl


def transport_for(target):
    if "stdio" in target:
        command, *args = target["stdio"]
        env = {**os.environ, **target.get("env", {})}
        return stdio_client(StdioServerParameters(command=command, args=args, env=env))
    if "http" in target:
        return streamable_http_client(target["http"])
    return sse_client(target["sse"])


class Ops:
    def __init__(self, session):
        self.session = session
        page = lambda cursor: types.PaginatedRequestParams(cursor=cursor) if cursor else None
        self.lists = {
            "tools": lambda cursor: session.list_tools(params=page(cursor)),
            "resources": lambda cursor: session.list_resources(params=page(cursor)),
            "resourceTemplates": lambda cursor: session.list_resource_templates(params=page(cursor)),
            "prompts": lambda cursor: session.list_prompts(params=page(cursor)),
        }
        self.ping = session.send_ping
        self.level = session.set_logging_level
        self.prompt = session.get_prompt
        self.roots_changed = session.send_roots_list_changed

    def call(self, tool, args, on_progress):
        return self.session.call_tool(tool, args, progress_callback=on_progress)

    def read(self, uri):
        return self.session.read_resource(AnyUrl(uri))

    def subscribe(self, uri):
        return self.session.subscribe_resource(AnyUrl(uri))

    def unsubscribe(self, uri):
        return self.session.unsubscribe_resource(AnyUrl(uri))

    def complete(self, ref, argument, context_arguments):
        kind = types.PromptReference if ref["type"] == "ref/prompt" else types.ResourceTemplateReference
        return self.session.complete(kind(**ref), argument, context_arguments)


async def main():
    scenario, target, _ = steps.arguments()
    inbox = steps.Inbox()

    async def on_message(message):
        if isinstance(message, types.ServerNotification):
            await inbox.add(message.root.method, steps.dump(message.root.params))

    async def roots(_context):
        await inbox.add("roots/list", None)
        return types.ListRootsResult(roots=[types.Root(uri=steps.ROOT, name="interop")])

    async def sample(_context, params):
        await inbox.add("sampling/createMessage", steps.dump(params))
        content = types.TextContent(type="text", text=steps.SAMPLED)
        return types.CreateMessageResult(role="assistant", model="interop-model", content=content)

    async def elicit(_context, params):
        await inbox.add("elicitation/create", steps.dump(params))
        schema = getattr(params, "requestedSchema", None)
        return types.ElicitResult(action="accept", content=steps.elicited(schema))

    done = []
    try:
        async with AsyncExitStack() as stack:
            read, write, *_ = await stack.enter_async_context(transport_for(target))
            session = await stack.enter_async_context(
                ClientSession(
                    read,
                    write,
                    sampling_callback=sample,
                    elicitation_callback=elicit,
                    list_roots_callback=roots,
                    message_handler=on_message,
                )
            )
            hello = steps.dump(await session.initialize())
            transcript = await steps.run(scenario, hello, Ops(session), inbox, done)
    except Exception as error:
        # An HTTP status that this generation does not know ends the whole client.
        if (status := steps.refusal(error)) is None:
            raise
        done.append({"error": {"code": status}})
        transcript = {"server": None, "steps": done, "events": inbox.messages}
    steps.emit(transcript)


asyncio.run(main())
