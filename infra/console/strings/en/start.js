export default {
  title: "Kho",
  intro: "Documents, memory, experiences, knowledge and devices for AI agents.",
  health: "Servers",
  healthy: "answers",
  servers: {
    "agent-data": "documents in a tree, answers from them",
    "memory-server": "conversations and their summaries",
    "tool-server": "web search and other tools",
    "recall-kit": "solved problems that agents share",
    "research-agent": "collections of your own documents",
    "device-server": "the tools of ESP32 devices",
  },
};
