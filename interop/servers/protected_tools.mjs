// A small MCP server that is protected by a real authorization server, oidc-provider, both on 127.0.0.1:
// `protected_tools.mjs OIDC_PROVIDER_MODULE JOURNAL`. It prints its addresses as a line of JSON and serves until stdin
// ends; a line `expire` makes all tokens that were shown to the resource so far worthless to it. The journal is a line of JSON for each thing that the authorization server did and each request of the resource;
// no token stands in it.
import { appendFileSync } from "node:fs";
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [module, journal] = process.argv.slice(2);
const { default: Provider, errors } = await import(pathToFileURL(module));

const SCOPES = "mcp admin";
const MACHINE = { id: "machine", secret: "a secret:with%signs/of&all+kinds=" };
const GUARD = { id: "resource", secret: "the resource's own secret" };
const DOCUMENT = "https://toolway.example/client.json";

const note = (event, members) => appendFileSync(journal, JSON.stringify({ event, ...members }) + "\n");

async function listen(server) {
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${server.address().port}`;
}

// Ports are known before what is served there, which names them.
const handlers = {};
const servers = ["issuer", "resource"].map((name) => createServer((request, response) => handlers[name](request, response)));
const [issuer, origin] = await Promise.all(servers.map(listen));
const resource = `${origin}/mcp`;

const provider = new Provider(issuer, {
  clients: [
    {
      client_id: MACHINE.id,
      client_secret: MACHINE.secret,
      grant_types: ["client_credentials"],
      redirect_uris: [],
      response_types: [],
      scope: SCOPES,
    },
    { client_id: GUARD.id, client_secret: GUARD.secret, grant_types: [], redirect_uris: [], response_types: [] },
  ],
  cookies: { keys: ["a key of a test"] },
  features: {
    clientCredentials: { enabled: true },
    clientIdMetadataDocument: { enabled: true, ack: "draft-02" },
    introspection: { enabled: true },
    registration: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo(_context, indicator) {
        if (indicator !== resource) throw new errors.InvalidTarget();
        return { scope: SCOPES, audience: resource, accessTokenFormat: "opaque" };
      },
    },
    revocation: { enabled: true },
  },
  // There is no network: the one document that there is stands here.
  async fetch(url) {
    note("fetch", { url: String(url) });
    if (String(url) !== DOCUMENT) return new Response("", { status: 404 });
    return Response.json({
      client_id: DOCUMENT,
      client_name: "Toolway",
      application_type: "native",
      redirect_uris: ["http://127.0.0.1/callback"],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: "none",
    });
  },
  findAccount: (_context, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  pkce: { required: () => true },
  rotateRefreshToken: true,
  scopes: ["openid", "offline_access", ...SCOPES.split(" ")],
  ttl: { AccessToken: 3600, ClientCredentials: 3600, Grant: 86400, Interaction: 600, RefreshToken: 86400, Session: 86400 },
});
const grant = (context) => ({
  grant: context.oidc.params?.grant_type,
  client: context.oidc.client?.clientId,
  auth: context.oidc.client?.clientAuthMethod,
  scope: context.oidc.params?.scope,
  resource: context.oidc.params?.resource,
});
provider.on("grant.success", (context) => note("grant", grant(context)));
provider.on("grant.error", (context, error) => note("grant refused", { ...grant(context), error: error.error }));
provider.on("authorization.success", (context) => note("authorization", grant(context)));
provider.on("authorization.error", (context, error) => note("authorization refused", { ...grant(context), error: error.error }));
provider.on("registration_create.success", (_context, client) => note("registration", { client: client.clientId }));
provider.on("revocation.error", (_context, error) => note("revocation refused", { error: error.error }));
provider.on("grant.revoked", () => note("grant revoked", {}));
handlers.issuer = provider.callback();

const shown = new Set();
const expired = new Set();

// The resource asks its authorization server about each token (RFC 7662).
async function introspect(token) {
  if (expired.has(token)) return {};
  shown.add(token);
  const encoded = [GUARD.id, GUARD.secret].map(encodeURIComponent).join(":");
  const answer = await fetch(`${issuer}/token/introspection`, {
    method: "POST",
    headers: { authorization: `Basic ${Buffer.from(encoded).toString("base64")}` },
    body: new URLSearchParams({ token }),
  });
  return answer.json();
}

function send(response, status, body, headers = {}) {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(body === undefined ? "" : JSON.stringify(body));
}

const METADATA = "/.well-known/oauth-protected-resource/mcp";

function challenge(response, status, error, scope) {
  const parts = [error && `error="${error}"`, scope && `scope="${scope}"`, `resource_metadata="${origin}${METADATA}"`];
  send(response, status, { error }, { "www-authenticate": `Bearer ${parts.filter(Boolean).join(", ")}` });
}

const tool = (name) => ({ name, inputSchema: { type: "object" } });

function result(message, known) {
  switch (message.method) {
    case "initialize":
      return {
        protocolVersion: message.params.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: "protected", version: "1" },
      };
    case "ping":
      return {};
    case "tools/list":
      return { tools: [tool("whoami"), tool("admin")] };
    case "tools/call": {
      const text = message.params.name === "admin" ? "you are an administrator" : `${known.sub ?? known.client_id}: ${known.scope}`;
      return { content: [{ type: "text", text }] };
    }
  }
}

async function protect(request, response) {
  const { pathname } = new URL(request.url, origin);
  if (pathname === METADATA) {
    return send(response, 200, { resource, authorization_servers: [issuer], scopes_supported: SCOPES.split(" ") });
  }
  if (pathname !== "/mcp") return send(response, 404, {});
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const token = /^Bearer (.+)$/i.exec(request.headers.authorization ?? "")?.[1];
  const known = token ? await introspect(token) : {};
  const good = known.active === true && [known.aud].flat().includes(resource);
  const message = request.method === "POST" ? JSON.parse(Buffer.concat(chunks)) : {};
  note("request", { method: message.method ?? request.method, tool: message.params?.name, token: token !== undefined, good });
  if (!good) return challenge(response, 401, token && "invalid_token", "mcp");
  const granted = (known.scope ?? "").split(" ");
  const needed = message.method === "tools/call" && message.params.name === "admin" ? "admin" : "mcp";
  if (!granted.includes(needed)) return challenge(response, 403, "insufficient_scope", needed);
  if (request.method === "DELETE") return send(response, 200);
  if (request.method !== "POST") return send(response, 405, undefined, { allow: "POST, DELETE" });
  if (message.id === undefined) return send(response, 202);
  const answer = result(message, known);
  const outcome = answer ? { result: answer } : { error: { code: -32601, message: "method not found" } };
  send(response, 200, { jsonrpc: "2.0", id: message.id, ...outcome });
}

handlers.resource = (request, response) => protect(request, response).catch((error) => send(response, 500, { error: String(error) }));

process.stdout.write(JSON.stringify({ issuer, resource, machine: MACHINE, document: DOCUMENT }) + "\n");
createInterface({ input: process.stdin })
  .on("line", () => {
    shown.forEach((token) => expired.add(token));
    process.stdout.write("expired\n");
  })
  .on("close", () => process.exit(0));
