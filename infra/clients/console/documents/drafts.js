// Unsaved edits, kept in the browser until they are saved or discarded. Each tab has drafts of its own.
import { namesBeginning, read, write } from "../storage.js";

const PREFIX = "draft.";

export function newDraftId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

// Return the stored drafts as [{name, ...draft}], newest first.
export function storedDrafts() {
  const drafts = namesBeginning(PREFIX).map((name) => ({ ...read(name), name }));
  return drafts.filter((draft) => draft.document_id).sort((a, b) => b.at - a.at);
}

// Return the drafts that no open tab is working on. Without Web Locks (no secure context) these are all.
export async function abandonedDrafts(documentId) {
  const drafts = storedDrafts().filter((draft) => documentId === undefined || draft.document_id === documentId);
  if (!navigator.locks) return drafts;
  const { held } = await navigator.locks.query();
  const names = new Set(held.map((lock) => lock.name));
  return drafts.filter((draft) => !names.has(draft.name));
}

// Claim a draft for this tab until `release` is called. Return {save, discard, release}; `save` is false if the
// browser refuses.
export function claimDraft(name = `${PREFIX}${newDraftId()}`) {
  let release = () => {};
  const released = /** @type {Promise<void>} */ (
    new Promise((resolve) => {
      release = resolve;
    })
  );
  navigator.locks?.request(name, () => released);
  return {
    name,
    save: (draft) => write(name, { ...draft, at: Date.now() }),
    discard: () => write(name, undefined),
    release: () => release(),
  };
}

export function discardDraft(name) {
  write(name, undefined);
}
