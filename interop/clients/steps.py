"""Runs a scenario step by step over one client and returns the transcript.

It knows no SDK: ``ops`` is the adapter of one client generation.
"""

import asyncio
import json
import sys

DEADLINE_SECONDS = 30
RELIST_SECONDS = 0.5


class Inbox:
    """Messages the server sent by itself, in the order of arrival."""

    def __init__(self):
        self.messages = []
        self.arrived = asyncio.Condition()

    async def add(self, method, params):
        if method == "notifications/progress":
            return  # belongs to its call, and a server may report on after a cancellation
        async with self.arrived:
            self.messages.append({"method": method, "params": params})
            self.arrived.notify_all()

    def count(self, method):
        return sum(1 for message in self.messages if message["method"] == method)

    async def wait(self, method, count, limit=DEADLINE_SECONDS):
        async with self.arrived:
            await asyncio.wait_for(self.arrived.wait_for(lambda: self.count(method) >= count), limit)
        return {"seen": method}


async def every(list_page, member):
    items, cursor = [], None
    while True:
        page = dump(await list_page(cursor))
        items += page[member]
        cursor = page.get("nextCursor")
        if cursor is None:
            return {member: items}


async def listed(step, ops, inbox):
    """The list; with ``until``, asked again at every change (or now and then) until it has these names."""
    what, changed = step["what"], f"notifications/{step['what']}/list_changed"
    clock = asyncio.get_running_loop().time
    deadline = clock() + DEADLINE_SECONDS
    while True:
        changes = inbox.count(changed)
        items = await every(ops.lists[what], what)
        names = {item.get("name") for item in items[what]}
        if names.issuperset(step.get("until", [])) or clock() > deadline:
            return items
        try:
            await inbox.wait(changed, changes + 1, RELIST_SECONDS)
        except asyncio.TimeoutError:
            pass


def dump(value):
    if value is None:
        return None
    return value.model_dump(mode="json", by_alias=True, exclude_unset=True)


async def cancelled(step, ops):
    started = asyncio.Event()

    async def on_progress(*_):
        started.set()

    call = asyncio.create_task(ops.call(step["tool"], step.get("args", {}), on_progress))
    await asyncio.wait_for(started.wait(), DEADLINE_SECONDS)
    call.cancel()
    try:
        await call
    except asyncio.CancelledError:
        return {"finished": False}
    return {"finished": True}


async def perform(step, ops, inbox):
    match step["do"]:
        case "list":
            return await listed(step, ops, inbox)
        case "call":
            progress = []

            async def on_progress(*update):
                named = zip(("progress", "total", "message"), update)
                progress.append({name: value for name, value in named if value is not None})

            callback = on_progress if step.get("progress") else None
            result = dump(await ops.call(step["tool"], step.get("args", {}), callback))
            return {"result": result, "progress": progress} if callback else result
        case "calls":
            calls = [ops.call(call["tool"], call.get("args", {}), None) for call in step["calls"]]
            return [dump(result) for result in await asyncio.gather(*calls)]
        case "read":
            return dump(await ops.read(step["uri"]))
        case "prompt":
            return dump(await ops.prompt(step["name"], step.get("args")))
        case "complete":
            arguments = step.get("context", {}).get("arguments")
            return dump(await ops.complete(step["ref"], step["argument"], arguments))
        case "level":
            return dump(await ops.level(step["level"]))
        case "subscribe":
            return dump(await ops.subscribe(step["uri"]))
        case "unsubscribe":
            return dump(await ops.unsubscribe(step["uri"]))
        case "ping":
            return dump(await ops.ping())
        case "roots_changed":
            return dump(await ops.roots_changed())
        case "wait":
            return await inbox.wait(step["method"], step.get("count", 1))
        case "cancel":
            return await cancelled(step, ops)
    raise ValueError(f"unknown step {step['do']}")


def failure(error):
    inner = getattr(error, "error", None)
    return {
        "code": getattr(inner, "code", None),
        "message": getattr(inner, "message", None) or f"{type(error).__name__}: {error}",
        "data": getattr(inner, "data", None),
    }


async def run(scenario, server, ops, inbox, steps=None):
    """The transcript; ``steps`` has what came so far, should the client end before the scenario does."""
    steps = [] if steps is None else steps
    for step in scenario["steps"]:
        try:
            steps.append({"result": await perform(step, ops, inbox)})
        except Exception as error:
            steps.append({"error": failure(error)})
    return {"server": server, "steps": steps, "events": inbox.messages}


def refusal(error):
    """The HTTP status with which a server has ended a client, or None."""
    for inner in getattr(error, "exceptions", []):
        if (found := refusal(inner)) is not None:
            return found
    return getattr(getattr(error, "response", None), "status_code", None)


def elicited(requested_schema):
    content = {}
    for name, schema in (requested_schema or {}).get("properties", {}).items():
        kind = schema.get("type")
        if "default" in schema:
            content[name] = schema["default"]
        elif "enum" in schema:
            content[name] = schema["enum"][0]
        elif kind == "boolean":
            content[name] = True
        elif kind in ("integer", "number"):
            content[name] = schema.get("minimum", 7)
        elif kind == "string" and "format" not in schema:
            content[name] = "elicited"
    return content


SAMPLED = "sampled \u00e9\u4e16\U0001f600"
ROOT = "file:///tmp/interop-root"


def arguments():
    """argv: SCENARIO.json TARGET-as-JSON MODE"""
    scenario, target = sys.argv[1], json.loads(sys.argv[2])
    mode = sys.argv[3] if len(sys.argv) > 3 else "legacy"
    with open(scenario, encoding="utf-8") as file:
        return json.load(file), target, mode


def emit(transcript):
    json.dump(transcript, sys.stdout)
    sys.stdout.flush()
