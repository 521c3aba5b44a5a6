// Puts a stdio server of the 2026-07-28 revision behind Streamable HTTP, for the conformance suite:
// `stdio_bridge.mjs PORT COMMAND [ARGS...]`. One upstream process; ids and progress tokens are made unique.
// It judges nothing but what HTTP itself needs, so that what differs between two runs comes from upstream.
import { spawn } from "node:child_process";
import { createServer } from "node:http";
import { createInterface } from "node:readline";

const [port, command, ...args] = process.argv.slice(2);
const SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId";
const STATUS = { "-32601": 404, "-32600": 400, "-32602": 400, "-32020": 400, "-32021": 400, "-32022": 400 };

const upstream = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
upstream.on("exit", () => process.exit(1));
const calls = new Map(); // our id -> the open call
let next = 1;

class Call {
  constructor(request, response) {
    this.own = next++;
    this.id = request.id;
    this.token = request.params?._meta?.progressToken;
    this.listens = request.method === "subscriptions/listen";
    this.response = response;
  }

  event(message) {
    if (!this.response.headersSent) {
      this.response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
    }
    this.response.write(`event: message\ndata: ${JSON.stringify(message)}\n\n`);
  }

  end(message) {
    if (this.response.headersSent) {
      this.event(message);
      this.response.end();
      return;
    }
    this.response.writeHead(STATUS[message.error?.code] ?? 200, { "content-type": "application/json" });
    this.response.end(JSON.stringify(message));
  }
}

function owner(message) {
  const { progressToken, _meta } = message.params ?? {};
  if (progressToken !== undefined) return calls.get(progressToken);
  if (_meta?.[SUBSCRIPTION] !== undefined) return calls.get(Number(_meta[SUBSCRIPTION]));
  return [...calls.values()].findLast((call) => !call.listens);
}

createInterface({ input: upstream.stdout }).on("line", (line) => {
  const message = JSON.parse(line);
  if (message.method === undefined) {
    const call = calls.get(message.id);
    if (!call) return;
    const meta = message.result?._meta;
    if (meta?.[SUBSCRIPTION] !== undefined) meta[SUBSCRIPTION] = call.id;
    calls.delete(message.id);
    call.end({ ...message, id: call.id });
    return;
  }
  const call = owner(message);
  if (!call) return;
  if (message.params?.progressToken !== undefined) message.params.progressToken = call.token;
  if (message.params?._meta?.[SUBSCRIPTION] !== undefined) message.params._meta[SUBSCRIPTION] = call.id;
  call.event(message);
});

function forward(message) {
  upstream.stdin.write(`${JSON.stringify(message)}\n`);
}

/** The headers that must repeat what the body says. */
function mismatch(message, headers) {
  const { _meta, name, uri } = message.params ?? {};
  const said = _meta?.["io.modelcontextprotocol/protocolVersion"];
  if (said !== undefined && headers["mcp-protocol-version"] !== said) return "MCP-Protocol-Version";
  if (headers["mcp-method"]?.trim() !== message.method) return "Mcp-Method";
  const named = { "tools/call": name, "prompts/get": name, "resources/read": uri }[message.method];
  if (named !== undefined && decoded(headers["mcp-name"] ?? "") !== named) return "Mcp-Name";
  return undefined;
}

function decoded(header) {
  const encoded = /^=\?base64\?(.*)\?=$/.exec(header.trim());
  return encoded ? Buffer.from(encoded[1], "base64").toString("utf8") : header.trim();
}

function refuse(response, id, code, text) {
  response.writeHead(400, { "content-type": "application/json" });
  response.end(JSON.stringify({ jsonrpc: "2.0", id: id ?? null, error: { code, message: text } }));
}

function accept(text, headers, response) {
  let message;
  try {
    message = JSON.parse(text);
  } catch {
    refuse(response, null, -32700, "parse error");
    return;
  }
  if (message.id === undefined) {
    forward(message);
    response.writeHead(202).end();
    return;
  }
  const header = mismatch(message, headers);
  if (header !== undefined) {
    refuse(response, message.id, -32020, `header ${header} differs from the body`);
    return;
  }
  const call = new Call(message, response);
  calls.set(call.own, call);
  response.on("close", () => {
    if (calls.delete(call.own)) {
      forward({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: call.own } });
    }
  });
  const renamed = { ...message, id: call.own };
  if (call.token !== undefined) {
    renamed.params = { ...message.params, _meta: { ...message.params._meta, progressToken: call.own } };
  }
  forward(renamed);
}

const server = createServer((request, response) => {
  if (request.method !== "POST") {
    response.writeHead(405, { allow: "POST" }).end();
    return;
  }
  const chunks = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", () => accept(Buffer.concat(chunks).toString("utf8"), request.headers, response));
});

// A server of both eras decides by the first request which one this connection speaks.
const opening = {
  end: () => server.listen(Number(port), "127.0.0.1"),
  event: () => {},
};
calls.set(0, opening);
forward({
  jsonrpc: "2.0",
  id: 0,
  method: "server/discover",
  params: {
    _meta: {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientCapabilities": {},
      "io.modelcontextprotocol/clientInfo": { name: "stdio-bridge", version: "1.0.0" },
    },
  },
});
process.on("SIGTERM", () => {
  upstream.kill();
  process.exit(0);
});
