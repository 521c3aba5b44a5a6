#!/usr/bin/env python3
"""A small host for `toolway bridge`, with a list of things to do and a slow tool: python3 host.py [PATH OF toolway]

Prints the MCP server for the agent as one line of JSON on stdout, and a log on stderr. A line on stdin answers a
question: "y", or anything else for no. The end of stdin ends the host (exit code 0), and so do Ctrl-C (130) and SIGTERM
(143). Exit code 1: the bridge has failed; 2: it could not be started. Standard library only, Python 3.9 or newer.
"""
import asyncio, itertools, json, os, pathlib, signal, subprocess, sys, threading

TOOLS, TODO, TYPES = {}, [], {"string": str, "integer": int}

def tool(description, ask=None, **arguments):  # all arguments are required; `ask` is a question to the user
    return lambda function: TOOLS.setdefault(function.__name__, (function, description, ask, arguments))

@tool("Adds an entry to the list of things to do.", text="string")
async def todo_add(progress, text):
    TODO.append(text)
    return f"{len(TODO)} to do"

@tool("All entries of the list of things to do.")
async def todo_list(progress):
    return [{"type": "text", "text": entry} for entry in TODO]

@tool("Removes all entries. The user is asked first.", ask="Remove all entries?")
async def todo_clear(progress):
    TODO.clear()
    return "the list is empty"

@tool("Waits for a number of seconds.", seconds="integer")
async def slow(progress, seconds):
    for second in range(seconds):
        await progress(progress=second, total=seconds)
        await asyncio.sleep(1)  # where the call is cancelled, CancelledError ends it here
    return f"waited for {seconds} seconds"

def log(text):  # for people: names and outcomes, never arguments, results or the address
    print(f"host: {text}", file=sys.stderr, flush=True)

class BridgeError(Exception): """The bridge has answered with an error, or is gone."""

class Host:
    async def main(self, program):
        self.loop, self.ids, self.waiting, self.calls = asyncio.get_running_loop(), itertools.count(1), {}, {}
        self.typed, self.ended, self.asking = asyncio.Queue(), asyncio.Queue(), asyncio.Lock()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda number, _: self.loop.call_soon_threadsafe(self.ended.put_nowait, 128 + number))
        # A process group of its own (512 on Windows): Ctrl-C is for the host, which then ends the bridge in order.
        options = {"creationflags": 512} if os.name == "nt" else {"start_new_session": True}
        options.update(stdin=subprocess.PIPE, stdout=subprocess.PIPE, limit=2**30)  # limit: of a line
        try:
            self.bridge = await asyncio.create_subprocess_exec(program, "bridge", **options)
        except OSError as error:
            log(f"{program} cannot be started: {error}")
            return 2
        self.reading = asyncio.ensure_future(self.read())
        self.reading.add_done_callback(lambda _: self.ended.put_nowait(1))
        try:
            await self.open()
            threading.Thread(target=self.read_stdin, daemon=True).start()
            code = await self.ended.get()
            await asyncio.wait_for(self.request("shutdown"), 5)  # all open calls are rejected
        except (BridgeError, asyncio.TimeoutError) as error:
            log(str(error) or "the bridge does not answer")
            code = 1
        self.bridge.stdin.close()  # alone it would end the bridge too
        if (await asyncio.wait([asyncio.ensure_future(self.bridge.wait())], timeout=5))[1]:
            self.bridge.kill()
        return code

    async def open(self):
        await self.request("initialize", protocolVersion=1, host={"name": "example"}, profile="host")
        await self.request("tools/declare", tools=[{"name": name, "description": text, "parameters": {
            "type": "object", "properties": {key: {"type": kind} for key, kind in wanted.items()},
            "required": list(wanted), "additionalProperties": False}} for name, (_, text, _, wanted) in TOOLS.items()])
        file = pathlib.Path(__file__).resolve().parent / "skills" / "weekly-review" / "SKILL.md"
        head = dict(line.split(": ", 1) for line in file.read_text("utf-8").split("---")[1].strip().splitlines())
        await self.request("skills/declare", skills=[{**head, "filePath": str(file)}])
        run = await self.request("run/open")
        if not run["server"]:
            raise BridgeError(f"nothing to serve: {run['reason']}")
        key = run["server"].pop("key")  # the url is a secret: a real host gives it to its agent and to nobody else
        print(json.dumps({"mcpServers": {key: run["server"]}}), flush=True)

    async def request(self, method, **params):
        number = next(self.ids)
        line = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}, allow_nan=False)
        if self.bridge.stdout.at_eof():
            raise BridgeError("the bridge is gone")
        self.waiting[number] = answer = self.loop.create_future()
        self.bridge.stdin.write(line.encode() + b"\n")
        message = await answer
        if "error" in message:
            raise BridgeError(message["error"]["message"])
        return message["result"]

    async def read(self):  # never waits for a response: nobody else would read it
        async for line in self.bridge.stdout:
            message = json.loads(line)
            method, params = message.get("method"), message.get("params")
            if method == "calls/started":
                for call in params["calls"]:
                    self.calls[call["call"]] = asyncio.ensure_future(self.run(**call))
            elif method == "call/cancelled" and params["call"] in self.calls:
                self.calls.pop(params["call"]).cancel()
            elif not method and not (answer := self.waiting.pop(message["id"])).done():
                answer.set_result(message)
        for answer in self.waiting.values():
            answer.done() or answer.set_result({"error": {"message": "the bridge is gone"}})

    async def run(self, call, tool, arguments, **_):
        tell = lambda method, **params: self.request(method, call=call, **params)
        try:
            content, failed = await self.execute(tool, arguments, tell)
            try:
                answer = await tell("call/result", content=content, isError=failed)
            except (BridgeError, TypeError, ValueError):  # too long for a line, or no JSON: the agent must not wait
                answer = await tell("call/fail", reason="the result could not be sent")
            log(f"{tool}: {'failed' if failed else 'done'}{'' if answer['settled'] else ', and nobody waits for it'}")
        except (asyncio.CancelledError, BridgeError) as error:
            log(f"{tool}: {str(error) or 'cancelled'}")
        self.calls.pop(call, None)

    async def execute(self, tool, arguments, tell):  # -> content, isError
        function, _, question, wanted = TOOLS[tool]
        if {key: type(value) for key, value in arguments.items()} != {key: TYPES[kind] for key, kind in wanted.items()}:
            return f"The arguments must be {json.dumps(wanted)}.", True  # the bridge does not check them
        if question and not await self.confirmed(question):
            return "The user has not allowed this.", True
        if not (await tell("call/admit"))["admitted"]:  # cancelled meanwhile
            return "not run", True
        try:
            return await function(lambda **params: tell("call/progress", **params), **arguments), False
        except Exception as error:  # the tool has failed: the agent is told, and the host goes on
            return f"{type(error).__name__}: {error}", True

    async def confirmed(self, question):
        async with self.asking:  # one question at a time; what was typed before it is no answer
            self.typed = asyncio.Queue()
            log(f"{question} [y/n]")
            return await self.typed.get() == "y"

    def read_stdin(self):
        for line in open(0, "rb", buffering=0, closefd=False):
            self.loop.call_soon_threadsafe(self.typed.put_nowait, line.strip().decode("utf-8", "replace"))
        self.loop.call_soon_threadsafe(self.ended.put_nowait, 0)

if __name__ == "__main__":
    sys.exit(asyncio.run(Host().main(*(sys.argv[1:2] or ["toolway"]))))
