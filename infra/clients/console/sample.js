// A sample to look at: documents, a conversation, a collection, and on one machine simulated devices and an experience.
import { ApiError, call } from "./api.js";
import { isOneMachine } from "./auth.js";

const FOLDER = "sample-greenhouse";
const CONVERSATION = "sample-greenhouse";
const COLLECTION = "sample-plants";

// Ids of the sample, for links to it.
export const SAMPLE = { document: "sample-lamp", conversation: CONVERSATION, collection: COLLECTION };

const DOCUMENTS = [
  [
    FOLDER,
    "root",
    "Greenhouse",
    "# Greenhouse\n\nEverything about the *greenhouse* behind the house.\n\n| place | plants |\n" +
      "|---|---|\n| north | ferns, mosses |\n| south | tomatoes, chillies |\n",
  ],
  [
    "sample-watering",
    FOLDER,
    "Watering",
    "# Watering\n\nFerns are watered in the morning, because wet leaves burn in the noon sun.\n\n" +
      "- Tomatoes: every second day, at the root.\n- Mosses: spray, never pour.\n",
  ],
  [
    "sample-tuoi-nuoc",
    FOLDER,
    "Tưới nước",
    "# Tưới nước\n\nDương xỉ được tưới vào buổi sáng, vì nắng trưa làm cháy lá ướt.\n",
  ],
  ["sample-lamp", FOLDER, "Lamp schedule", "# Lamp schedule\n\nThe lamp is on from 6:00 to 9:00.\n"],
];
// A change of a document after its first version, so that its history has something to show.
const CHANGE = [
  "sample-lamp",
  "# Lamp schedule\n\nThe lamp is on from 5:30 to 8:30, and in December from 17:00 to 19:00 too.\n",
];

/** @type {[import("./types").Role, string][]} */
const MESSAGES = [
  ["user", "When do I water the ferns?"],
  ["assistant", "In the morning: wet leaves burn in the noon sun."],
  ["user", "And the tomatoes?"],
  ["assistant", "Every second day, at the root."],
  ["user", "The lamp was on at night. Is that right?"],
  ["assistant", "No. Its schedule is 6:00 to 9:00. I can change the schedule, or look at the lamp itself."],
  ["user", "Change it to 5:30 to 8:30."],
  ["assistant", "Done. The document 'Lamp schedule' has a second revision now."],
];
const SUMMARY = "The user keeps a greenhouse with ferns and tomatoes. The lamp's schedule was changed to 5:30–8:30.";

const FILES = [
  {
    path: "ferns.md",
    content:
      "# Ferns\n\n## Light\n\nFerns grow in half shade. Direct sun makes their leaves brown.\n\n## Water\n" +
      "\nKeep the soil moist, never wet. In winter water half as much.\n",
  },
  {
    path: "chillies.md",
    content:
      "# Chillies\n\n## Sowing\n\nSow in February at 25 °C. The seeds take ten days.\n\n## Feeding\n\n" +
      "Feed every two weeks once the first flowers open.\n",
  },
  { path: "cay-ot.md", content: "# Cây ớt\n\nGieo hạt vào tháng hai ở 25 °C. Hạt nảy mầm sau mười ngày.\n" },
];

const EXPERIENCE = {
  title: "A board answers no call after the router restarts",
  problem_description: "After the router restarts, the board shows as connected, but every tool call times out.",
  root_cause: "The board keeps the old TCP connection, which the router has forgotten.",
  solution: "Lower the keepalive of the broker to 60 seconds: the board notices the loss and connects again.",
  keywords: ["esp32", "mqtt", "keepalive"],
};

// Each step of the sample: its name, and what makes it. A step that is there already changes nothing.
/** @type {[string, () => Promise<any>][]} */
export const STEPS = [
  ["documents", loadDocuments],
  ["conversation", loadConversation],
  ["collection", loadCollection],
];
if (isOneMachine) {
  STEPS.push(["experience", loadExperience]);
  STEPS.push(["devices", () => call("device-server/devices/simulate")]);
}

async function loadDocuments() {
  for (const [document_id, parent_id, title, body] of DOCUMENTS) {
    const document = { document_id, parent_id, content: { body }, metadata: { title, tags: ["sample"] } };
    const created = await unless(["ALREADY_EXISTS"], call("agent-data/create_document", document));
    if (!created) await restoreDocument(document_id);
  }
  const [document_id, body] = CHANGE;
  const change = { document_id, last_known_revision: 1, patch: { content: { body } } };
  await unless(["CONFLICT", "NOT_FOUND"], call("agent-data/update_document", change));
}

// Bring a deleted document back; one that is there stays as it is, with the deletion that is scheduled for it.
async function restoreDocument(document_id) {
  if (await unless(["NOT_FOUND"], call("agent-data/get_document", { document_id }))) return;
  // It may have been moved below a document that is deleted.
  await unless(["PARENT_DELETED"], call("agent-data/restore_document", { document_id }));
}

async function loadConversation() {
  const id = { conversation_id: CONVERSATION };
  const conversation = await unless(["NOT_FOUND"], call("memory-server/memory/get_conversation", id));
  const newest =
    conversation && (await call("memory-server/memory/list_messages", { ...id, limit: MESSAGES.length + 1 })).messages;
  const stored = newest?.reverse() ?? [];
  // A conversation that goes on otherwise than the sample stays as it is.
  if (stored.some(({ content }, index) => content !== MESSAGES[index]?.[1])) return;
  for (const [role, content] of MESSAGES.slice(stored.length)) {
    await call("memory-server/memory/add_message", { ...id, role, content });
  }
  if (!conversation?.summary?.text) await call("memory-server/memory/set_summary", { ...id, summary: SUMMARY });
}

async function loadCollection() {
  const { collections } = await call("research-agent/manage_collections", { action: "list", limit: 1000 });
  if (!collections?.some((each) => each.name === COLLECTION)) {
    await call("research-agent/manage_collections", { action: "create", collection_name: COLLECTION });
  }
  await call("research-agent/ingest_documents", { collection: COLLECTION, documents: FILES });
}

async function loadExperience() {
  const { data } = await call("recall-kit/query_experiences", { keywords: EXPERIENCE.title });
  const known = Object.values(data ?? {}).find(Array.isArray) ?? [];
  if (!known.some((each) => each.title === EXPERIENCE.title)) await call("recall-kit/submit_experience", EXPERIENCE);
}

// Return the result, or undefined if the call fails by one of these codes.
async function unless(codes, promise) {
  try {
    return await promise;
  } catch (error) {
    if (error instanceof ApiError && codes.includes(error.code)) return undefined;
    throw error;
  }
}
