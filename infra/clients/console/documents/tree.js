// The tree of documents as far as it is loaded: a stretch of each parent's children, page by page in both directions.
import { signal } from "@preact/signals";
import { call } from "../api.js";
import { visible } from "../components/visible_text.js";

export const ROOT = "root";
const PAGE = 500;
const BEFORE = 50; // children that are loaded before one that is far from the first
const expanded = new Set(); // kept while other pages are shown

export class DocumentTree {
  constructor() {
    this.nodes = new Map();
    this.expanded = expanded;
    this.lists = new Map();
    // Rows that were put above others, so that these stay where they are in view.
    this.prepended = 0;
    // It grows with each change, so that views render again.
    this.version = signal(0);
  }

  changed() {
    this.version.value++;
  }

  // The list of a parent's children. `done` and `complete` are true at its end and at its beginning.
  list(parentId) {
    let list = this.lists.get(parentId);
    if (!list) {
      list = {
        parentId,
        ids: [],
        known: new Set(),
        next: {},
        done: false,
        previous: {},
        complete: true,
        loading: null,
        error: null,
      };
      this.lists.set(parentId, list);
    }
    return list;
  }

  // Load the next page of a list, or the one before it.
  load(list, backwards = false) {
    if (backwards ? list.complete : list.done) return Promise.resolve();
    list.loading ??= this.loadPage(list, backwards).finally(() => {
      list.loading = null;
      this.changed();
    });
    return list.loading;
  }

  async loadPage(list, backwards) {
    list.error = null;
    const { parentId, ids, next, previous } = list;
    const limit = backwards && !ids.length ? BEFORE : PAGE;
    try {
      const page = await call("agent-data/list_children", {
        parent_id: parentId,
        has_children: true,
        limit,
        backwards,
        ...(backwards ? previous : next),
      });
      if (this.lists.get(parentId) !== list) return; // reloaded meanwhile
      const added = page.children.map((child) => child.document_id).filter((id) => !list.known.has(id));
      for (const child of page.children) {
        this.nodes.set(child.document_id, child);
        list.known.add(child.document_id);
      }
      const cursor = { cursor: page.next_cursor };
      if (backwards) {
        if (ids.length) this.prepended += added.length - (page.next_cursor ? 0 : 1); // the row that stood for them goes
        ids.unshift(...added.reverse());
        Object.assign(list, { previous: cursor, complete: !page.next_cursor });
      } else {
        ids.push(...added);
        Object.assign(list, { next: cursor, done: !page.next_cursor });
      }
    } catch (error) {
      list.error = error;
      if (error.status === 404) list.done = true;
    }
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
    this.lists.delete(parentId);
    this.changed();
  }

  toggle(id, open = !this.expanded.has(id)) {
    if (open) this.expanded.add(id);
    else this.expanded.delete(id);
    this.changed();
  }

  // Expand what is above a document and load the page that it is on.
  async reveal(path, id) {
    const ids = [ROOT, ...path, id];
    for (let level = 0; level < ids.length - 1; level++) {
      if (level) this.expanded.add(ids[level]);
      const list = this.list(ids[level]);
      if (!list.ids.length) await this.load(list);
      if (!list.known.has(ids[level + 1]) && !list.done && !list.error)
        await this.loadAround(ids[level], ids[level + 1]);
    }
    this.changed();
  }

  // Load a stretch of children that ends with one of them instead of what is loaded.
  loadAround(parentId, id) {
    this.lists.delete(parentId);
    const list = Object.assign(this.list(parentId), {
      next: { from_child: id },
      previous: { from_child: id },
      complete: false,
    });
    return this.load(list, true);
  }

  update(id, fields) {
    const node = this.nodes.get(id);
    if (node) this.nodes.set(id, { ...node, ...fields });
    this.changed();
  }

  // Move a document on the server, and then here. `before` is the sibling that will follow it.
  async move(id, parentId, before) {
    const result = await call("agent-data/move_document", {
      document_id: id,
      new_parent_id: parentId,
      position: { before },
    });
    this.remove(id);
    const list = this.list(parentId);
    const index = before === undefined ? -1 : list.ids.indexOf(before);
    if (index >= 0 || list.done) {
      list.known.add(id);
      list.ids.splice(index >= 0 ? index : list.ids.length, 0, id);
    }
    const parent = this.nodes.get(parentId);
    if (parent) this.nodes.set(parentId, { ...parent, has_children: true });
    this.update(id, {
      parent_id: parentId,
      revision: result.revision,
      updated_at: result.updated_at,
      delete_at: result.delete_at,
    });
    return result;
  }

  // Return the id that follows a document among its siblings; undefined at the end. It loads the page if necessary.
  async next(id, steps = 1) {
    const list = this.list(this.nodes.get(id).parent_id);
    while (list.ids.indexOf(id) + steps >= list.ids.length && !list.done && !list.error) await this.load(list);
    return list.ids[list.ids.indexOf(id) + steps];
  }

  // Return the id of the document before it among its siblings; undefined at the beginning.
  async previous(id) {
    const list = this.list(this.nodes.get(id).parent_id);
    if (list.ids[0] === id && !list.error) await this.load(list, true);
    return list.ids[list.ids.indexOf(id) - 1];
  }

  // The rows: {kind: "node", id, level, size, position}, or {kind: "more", list, level, backwards} for what is not
  // loaded.
  rows() {
    const rows = [];
    const walk = (parentId, level) => {
      const list = this.list(parentId);
      if (!list.complete) rows.push({ kind: "more", list, level, backwards: true });
      list.ids.forEach((id, index) => {
        // Neither how many siblings there are is known before the last page, nor a position before the first.
        rows.push({
          kind: "node",
          id,
          level,
          size: list.done && list.complete ? list.ids.length : -1,
          position: list.complete ? index + 1 : undefined,
        });
        if (this.expanded.has(id)) walk(id, level + 1);
      });
      if (!list.done) rows.push({ kind: "more", list, level, backwards: false });
    };
    walk(ROOT, 1);
    return rows;
  }
}

export function titleOf(document) {
  return visible(document?.metadata?.title || document?.title || document?.document_id);
}
