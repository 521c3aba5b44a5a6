// A minimal host for `toolway bridge`, as docs/host-protocol.md has it: it offers two tools, opens a run, hands the MCP
// server to an agent, runs what the agent calls, and closes. No packages are needed.
//
//     node host.ts [TOOLWAY [serve]]        Node.js 22.18 or later, which strips the types itself
//
// TOOLWAY is the program, `toolway` by default. The agent here is a stand-in of thirty lines: put yours in its place. With
// `serve` there is none: the MCP server is printed as one line of JSON, for any agent, until stdin ends.

import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { once } from "node:events";

type Json = any;
type Call = { call: string; tool: string; name: string; arguments: Json };
type Running = { signal: AbortSignal; progress: (progress: Json) => Promise<Json> };
type Tool = { description: string; parameters: Json; run: (args: Json, running: Running) => Promise<string> };
type Server = { key: string; type: "http"; url: string };

const tools: Record<string, Tool> = {
  add: {
    description: "Adds two numbers.",
    parameters: {
      type: "object",
      properties: { a: { type: "number" }, b: { type: "number" } },
      required: ["a", "b"],
    },
    async run({ a, b }) {
      // The bridge does not check arguments: the host does.
      if (typeof a !== "number" || typeof b !== "number") throw new Error("a and b must be numbers");
      return String(a + b);
    },
  },
  wait: {
    description: "Waits for some milliseconds.",
    parameters: { type: "object", properties: { ms: { type: "number" } }, required: ["ms"] },
    async run({ ms }, { signal, progress }) {
      await progress({ progress: 0, total: ms });
      signal.throwIfAborted(); // an event that has come already is not heard
      return new Promise((resolve, reject) => {
        const timer = setTimeout(() => resolve(`waited ${ms} ms`), ms);
        signal.addEventListener("abort", () => (clearTimeout(timer), reject(signal.reason)));
      });
    },
  },
};

/** The bridge's process: requests by id, notifications by method. */
class Bridge {
  readonly ended: Promise<number | null>;
  private readonly process: ChildProcessWithoutNullStreams;
  private readonly waiting = new Map<number, { resolve: (result: Json) => void; reject: (error: Error) => void }>();
  private readonly handlers: Record<string, (params: Json) => void>;
  private last = 0;

  constructor(program: string, handlers: Record<string, (params: Json) => void>) {
    this.handlers = handlers;
    this.process = spawn(program, ["bridge", "--profile", "host"], { stdio: ["pipe", "pipe", "inherit"] }) as Json;
    this.process.stdin.on("error", () => {}); // it has ended; `ended` says so
    // Not by `readline`: for that a line also ends at U+2028, which JSON may have in its texts.
    let rest = "";
    this.process.stdout.setEncoding("utf8").on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) this.take(JSON.parse(line));
    });
    this.ended = new Promise((resolve) => {
      this.process.on("error", (error) => (console.error(error.message), resolve(null)));
      this.process.on("close", resolve);
    });
    void this.ended.then(() => this.waiting.forEach(({ reject }) => reject(new Error("the bridge has ended"))));
  }

  ask(method: string, params: Json = {}): Promise<Json> {
    const id = ++this.last;
    this.process.stdin.write(JSON.stringify({ jsonrpc: "2.0", id, method, params }) + "\n");
    return new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject }));
  }

  private take(message: Json) {
    if (message.method) return this.handlers[message.method]?.(message.params);
    const waiting = this.waiting.get(message.id);
    this.waiting.delete(message.id);
    if (message.error) waiting?.reject(new Error(message.error.message));
    else waiting?.resolve(message.result);
  }
}

const running = new Map<string, AbortController>();

/** Runs a call once and tells how it went. */
async function run({ call, tool, arguments: args }: Call) {
  const stop = new AbortController();
  running.set(call, stop);
  let answer: Json;
  try {
    const progress = (values: Json) => bridge.ask("call/progress", { call, ...values });
    const text = await tools[tool].run(args, { signal: stop.signal, progress });
    answer = { content: [{ type: "text", text }] };
  } catch (error) {
    answer = { content: [{ type: "text", text: String((error as Error)?.message ?? error) }], isError: true };
  }
  running.delete(call);
  const { settled } = await bridge.ask("call/result", { call, ...answer });
  console.log(`host: ${tool} ${settled ? "answered" : "was too late"}`);
}

const bridge = new Bridge(process.argv[2] ?? "toolway", {
  "calls/started": ({ calls }: { calls: Call[] }) => calls.forEach((call) => void run(call).catch(console.error)),
  "call/cancelled": ({ call, reason }) => running.get(call)?.abort(new Error(reason)),
});

/** A stand-in for the agent: an MCP client that lists the tools and calls them. */
async function agent(server: Server) {
  let session: string | undefined;
  const post = async (message: Json) => {
    const response = await fetch(server.url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": "2025-11-25",
        ...(session && { "mcp-session-id": session }),
      },
      body: JSON.stringify({ jsonrpc: "2.0", ...message }),
    });
    session ??= response.headers.get("mcp-session-id") ?? undefined;
    const body = await response.text();
    const messages = body.startsWith("{") ? [body] : [...body.matchAll(/^data: ?(\{.*)$/gm)].map((match) => match[1]);
    return messages.map((text) => JSON.parse(text)).find((answer) => answer.id === message.id);
  };
  const clientInfo = { name: "stand-in", version: "1" };
  const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo };
  await post({ id: 1, method: "initialize", params });
  await post({ method: "notifications/initialized" });
  const listed = await post({ id: 2, method: "tools/list" });
  console.log(`agent: sees ${listed.result.tools.map((tool: Json) => tool.name).join(", ")}`);
  const call = async (id: number, name: string, args: Json) => {
    const { result, error } = await post({ id, method: "tools/call", params: { name, arguments: args } });
    console.log(`agent: ${name} ${result?.isError || error ? "failed" : "said"}: ${error?.message ?? result.content[0].text}`);
  };
  await Promise.all([call(3, "host__wait", { ms: 50 }), call(4, "host__add", { a: 2, b: 3 })]);
  await call(5, "host__add", { a: "two" });
}

/** Leaves the agent to others, until stdin ends. */
async function serve({ key, type, url }: Server) {
  console.log(JSON.stringify({ mcpServers: { [key]: { type, url } } }));
  process.stdin.resume();
  await Promise.race([once(process.stdin, "end"), bridge.ended]);
  process.stdin.unref();
}

await bridge.ask("initialize", { protocolVersion: 1, host: { name: "example", version: "1.0" }, profile: "host" });
const declared = Object.entries(tools).map(([name, { description, parameters }]) => ({ name, description, parameters }));
await bridge.ask("tools/declare", { tools: declared });
const { run: id, server, reason } = await bridge.ask("run/open");
if (server) await (process.argv[3] === "serve" ? serve(server) : agent(server));
else console.log(`nothing is exposed: ${reason}`);
if (id) await bridge.ask("run/close", { run: id });
await bridge.ask("shutdown");
process.exitCode = (await bridge.ended) ?? 1;
