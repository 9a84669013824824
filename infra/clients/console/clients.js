// Settings of MCP clients for this server: snippets and install links, as docs/clients.md describes them.

export const TOOLSETS = ["", "documents", "memory", "knowledge", "experiences", "devices", "search"];

// Return each client's entries: {client, kind: "link" | "snippet" | "address", place, text}. `withKey` sends a key of
// the environment, otherwise the client signs in where the server asks for it.
export function clientSettings(origin, { toolset = "", withKey = false } = {}) {
  const url = `${origin}/mcp${toolset && `/${toolset}`}`;
  return [
    { client: "cursor", ...cursor(url, withKey) },
    { client: "vscode", ...vsCode(url, withKey) },
    { client: "claude_code", ...claudeCode(url, withKey) },
    { client: "codex", ...codex(url, withKey) },
    { client: "claude_ai", cloud: true, snippets: [{ place: "url", text: url }] },
    { client: "chatgpt", cloud: true, snippets: [{ place: "url", text: toolset ? url : `${origin}/mcp/search` }] },
  ];
}

// Return true for an address that only this machine reaches, which clients in a cloud do not.
export function isLoopback(origin) {
  return /^https?:\/\/(localhost|127\.0\.0\.1|\[::1\])(:|$)/.test(origin);
}

function cursor(url, withKey) {
  const server = { url, ...(withKey && { headers: { Authorization: "Bearer ${env:KHO_KEY}" } }) };
  const link = `https://cursor.com/install-mcp?name=kho&config=${encodeURIComponent(btoa(JSON.stringify(server)))}`;
  return { link, snippets: [{ place: "~/.cursor/mcp.json", text: json({ mcpServers: { kho: server } }) }] };
}

function vsCode(url, withKey) {
  const server = { type: "http", url, ...(withKey && { headers: { Authorization: "Bearer ${input:kho-key}" } }) };
  const inputs = [{ type: "promptString", id: "kho-key", description: "Key of Kho", password: true }];
  const settings = encodeURIComponent(JSON.stringify({ name: "kho", ...server, ...(withKey && { inputs }) }));
  const link = `https://insiders.vscode.dev/redirect?url=${encodeURIComponent(`vscode:mcp/install?${settings}`)}`;
  return {
    link,
    snippets: [{ place: ".vscode/mcp.json", text: json({ ...(withKey && { inputs }), servers: { kho: server } }) }],
  };
}

function claudeCode(url, withKey) {
  const header = withKey ? ' --header "Authorization: Bearer $KHO_KEY"' : "";
  const server = { type: "http", url, ...(withKey && { headers: { Authorization: "Bearer ${KHO_KEY}" } }) };
  return {
    snippets: [
      { place: "terminal", text: `claude mcp add --transport http kho ${url}${header}` },
      { place: ".mcp.json", text: json({ mcpServers: { kho: server } }) },
    ],
  };
}

function codex(url, withKey) {
  const key = withKey ? '\nbearer_token_env_var = "KHO_KEY"' : "";
  return { snippets: [{ place: "~/.codex/config.toml", text: `[mcp_servers.kho]\nurl = "${url}"${key}` }] };
}

function json(value) {
  return JSON.stringify(value, null, 2);
}
