export default {
  title: "Connect",
  intro: "An MCP client gets Kho's tools with these settings. Copy what belongs to yours.",
  toolset: "Tools",
  toolsets: {
    all: "All tools",
    documents: "Documents",
    memory: "Conversations",
    knowledge: "Knowledge",
    experiences: "Experiences",
    devices: "Devices",
    search: "Search (two tools, for deep research)",
  },
  credentials: "Who calls",
  by_sign_in: "The client signs in",
  by_key: "A key of Kho",
  key_help:
    "Make a key with: kho keys create --tenant <name> --role writer. Clients read it from the environment variable KHO_KEY.",
  install: "Add to {name}",
  unreachable:
    "It connects from its own cloud, and cannot reach this address: Kho needs a public https address (KHO_PUBLIC_URL).",
  jump_links: "Clients",
  clients: {
    cursor: "Cursor",
    vscode: "VS Code",
    claude_code: "Claude Code",
    codex: "Codex",
    claude_ai: "claude.ai",
    chatgpt: "ChatGPT",
  },
  places: { url: "Address of the server", terminal: "In a terminal" },
  steps: {
    cursor: "Follow the link, or put this into the file.",
    vscode: "Follow the link, or put this into the file of your project.",
    claude_code: "Run the command, or put the settings into the file of a project that others share.",
    codex: "Put this into the file, then start Codex again.",
    claude_ai:
      "Settings → Connectors → Add custom connector. Name: Kho; leave the OAuth fields empty; then Add and Connect.",
    chatgpt:
      "Settings → Apps → Advanced settings: switch Developer mode on. Then Create app, authentication OAuth, and this address.",
  },
};
