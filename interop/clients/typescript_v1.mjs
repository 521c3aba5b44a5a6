// The official TypeScript SDK, generation 1, as the client of a scenario.
import { readFileSync } from "node:fs";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { answers, argumentsOf, capabilities, Inbox, isGone, run } from "./steps.mjs";

function transportFor(target) {
  if (target.stdio) {
    const [command, ...args] = target.stdio;
    return new StdioClientTransport({ command, args, env: { ...process.env, ...target.env } });
  }
  if (target.http) return new StreamableHTTPClientTransport(new URL(target.http));
  return new SSEClientTransport(new URL(target.sse));
}

const { scenario, target } = argumentsOf(process.argv, readFileSync);
const client = new Client({ name: "interop-typescript-1", version: "1.0.0" }, { capabilities });
const inbox = new Inbox();
client.setRequestHandler(ListRootsRequestSchema, async () => answers.roots);
client.setRequestHandler(CreateMessageRequestSchema, async () => answers.sampling);
client.setRequestHandler(ElicitRequestSchema, async (request) => answers.elicitation(request.params));

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
  call: (name, args, options) => client.callTool({ name, arguments: args }, undefined, options),
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
