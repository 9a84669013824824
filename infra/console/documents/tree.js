// The tree of documents as far as it is loaded: children page by page, and the rows that are in view.
import { signal } from "@preact/signals";
import { call } from "../api.js";

export const ROOT = "root";
const PAGE = 500;

export class DocumentTree {
  constructor() {
    this.nodes = new Map();
    this.expanded = new Set();
    this.lists = new Map();
    this.showDeleted = false;
    // It grows with each change, so that views render again.
    this.version = signal(0);
  }

  changed() {
    this.version.value++;
  }

  // The list of a parent's children, or of its deleted children.
  list(parentId, deleted = false) {
    const key = `${deleted ? "deleted" : "alive"} ${parentId}`;
    let list = this.lists.get(key);
    if (!list) {
      list = { parentId, deleted, ids: [], known: new Set(), cursor: undefined, done: false, loading: null, error: null };
      this.lists.set(key, list);
    }
    return list;
  }

  // Load the next page of a list.
  load(list) {
    if (list.done) return Promise.resolve();
    list.loading ??= this.loadPage(list).finally(() => {
      list.loading = null;
      this.changed();
    });
    return list.loading;
  }

  async loadPage(list) {
    list.error = null;
    const { parentId, deleted, cursor } = list;
    try {
      const page = await call("agent-data/list_children", { parent_id: parentId, deleted, has_children: true, limit: PAGE, cursor });
      if (this.lists.get(`${deleted ? "deleted" : "alive"} ${parentId}`) !== list) return; // reloaded meanwhile
      for (const child of page.children) this.put(child, list);
      list.cursor = page.next_cursor;
      list.done = !page.next_cursor;
    } catch (error) {
      list.error = error;
      if (error.status === 404) list.done = true;
    }
  }

  put(child, list) {
    this.nodes.set(child.document_id, { ...child, gone: list.deleted });
    if (list.known.has(child.document_id)) return;
    list.known.add(child.document_id);
    list.ids.push(child.document_id);
  }

  remove(id) {
    for (const list of this.lists.values()) {
      if (list.known.delete(id)) list.ids.splice(list.ids.indexOf(id), 1);
    }
  }

  // Forget everything and load what is in view.
  reload() {
    this.lists.clear();
    this.changed();
  }

  // Load the children of one parent again.
  refresh(parentId) {
    for (const kind of ["alive", "deleted"]) this.lists.delete(`${kind} ${parentId}`);
    this.changed();
  }

  toggle(id, open = !this.expanded.has(id)) {
    if (open) this.expanded.add(id);
    else this.expanded.delete(id);
    this.changed();
  }

  setShowDeleted(show) {
    this.showDeleted = show;
    this.changed();
  }

  // Expand what is above a document and load the pages that it is on.
  async reveal(path, id) {
    const ids = [ROOT, ...path, id];
    for (let level = 0; level < ids.length - 1; level++) {
      if (level) this.expanded.add(ids[level]);
      const list = this.list(ids[level]);
      while (!list.known.has(ids[level + 1]) && !list.done && !list.error) await this.load(list);
    }
    this.changed();
  }

  update(id, fields) {
    const node = this.nodes.get(id);
    if (node) this.nodes.set(id, { ...node, ...fields });
    this.changed();
  }

  // Move a document on the server, and then here. `before` is the sibling that will follow it.
  async move(id, parentId, before) {
    const result = await call("agent-data/move_document", { document_id: id, new_parent_id: parentId, position: { before } });
    this.remove(id);
    const list = this.list(parentId);
    const index = before === undefined ? -1 : list.ids.indexOf(before);
    if (index >= 0 || list.done) {
      list.known.add(id);
      list.ids.splice(index >= 0 ? index : list.ids.length, 0, id);
    }
    const parent = this.nodes.get(parentId);
    if (parent) this.nodes.set(parentId, { ...parent, has_children: true });
    this.update(id, { parent_id: parentId, revision: result.revision, updated_at: result.updated_at, delete_at: result.delete_at });
    return result;
  }

  // Return the id that follows a document among its siblings; undefined at the end. It loads the page if necessary.
  async next(id, steps = 1) {
    const list = this.list(this.nodes.get(id).parent_id);
    while (list.ids.indexOf(id) + steps >= list.ids.length && !list.done && !list.error) await this.load(list);
    return list.ids[list.ids.indexOf(id) + steps];
  }

  previous(id) {
    const { ids } = this.list(this.nodes.get(id).parent_id);
    return ids[ids.indexOf(id) - 1];
  }

  // The rows in view: {kind: "node", id, level, gone} or {kind: "more", list, level}.
  rows() {
    const rows = [];
    const walkList = (list, level) => {
      for (const id of list.ids) {
        rows.push({ kind: "node", id, level, gone: list.deleted });
        if (this.expanded.has(id)) walk(id, level + 1, list.deleted);
      }
      if (!list.done) rows.push({ kind: "more", list, level });
    };
    const walk = (parentId, level, gone) => {
      if (!gone) walkList(this.list(parentId), level);
      if (this.showDeleted) walkList(this.list(parentId, true), level);
    };
    walk(ROOT, 1, false);
    return rows;
  }
}

export function titleOf(document) {
  return document?.metadata?.title || document?.title || document?.document_id || "";
}
