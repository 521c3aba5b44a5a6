// The official TypeScript SDK, generation 2, as the client of a scenario; mode: legacy or auto.
import { readFileSync } from "node:fs";
import { Client, SSEClientTransport, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { answers, argumentsOf, capabilities, Inbox, isGone, run } from "./steps.mjs";

function transportFor(target) {
  if (target.stdio) {
    const [command, ...args] = target.stdio;
    return new StdioClientTransport({ command, args, env: { ...process.env, ...target.env } });
  }
  if (target.http) return new StreamableHTTPClientTransport(new URL(target.http));
  return new SSEClientTransport(new URL(target.sse));
}

const { scenario, target, mode } = argumentsOf(process.argv, readFileSync);
const client = new Client(
  { name: "interop-typescript-2", version: "1.0.0" },
  { capabilities, versionNegotiation: { mode } },
);
const inbox = new Inbox();
client.setRequestHandler("roots/list", async () => answers.roots);
client.setRequestHandler("sampling/createMessage", async () => answers.sampling);
client.setRequestHandler("elicitation/create", async (request) => answers.elicitation(request.params));

const transport = transportFor(target);
transport.onmessage = (message) => inbox.add(message);
await client.connect(transport);
const server = {
  info: client.getServerVersion(),
  capabilities: client.getServerCapabilities(),
  instructions: client.getInstructions() ?? null,
};
const ops = {
  list: {
    tools: (page) => client.listTools(page),
    resources: (page) => client.listResources(page),
    resourceTemplates: (page) => client.listResourceTemplates(page),
    prompts: (page) => client.listPrompts(page),
  },
  call: (name, args, options) => client.callTool({ name, arguments: args }, options),
  read: (uri) => client.readResource({ uri }),
  prompt: (name, args) => client.getPrompt({ name, arguments: args }),
  complete: (params) => client.complete(params),
  level: (level) => client.setLoggingLevel(level),
  subscribe: (uri) => client.subscribeResource({ uri }),
  unsubscribe: (uri) => client.unsubscribeResource({ uri }),
  ping: () => client.ping(),
  rootsChanged: () => client.sendRootsListChanged(),
};
const transcript = await run(scenario, server, ops, inbox);
if (target.http) {
  await transport.terminateSession().catch((error) => {
    if (!isGone(error, scenario)) throw error;
  });
}
await client.close();
process.stdout.write(JSON.stringify(transcript), () => process.exit(0));
