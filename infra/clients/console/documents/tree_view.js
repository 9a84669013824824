// The tree of documents: one row each, moved by drag or by keyboard.
import { useEffect, useRef, useState } from "preact/hooks";
import { toast } from "../components/toast.js";
import { VirtualList } from "../components/virtual_list.js";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { go, link } from "../router.js";
import { ROOT, titleOf } from "./tree.js";

const ROW_PIXELS = 36;
const EXPAND_AFTER_MS = 700; // a dragged document opens the one below it after this
const DEEPEST_INDENT = 12;

export function TreeView({ tree, selected }) {
  const [active, setActive] = useState(null);
  const latest = useRef(null); // `active` of the last rendering, for what waits for an answer
  latest.current = active;
  const [target, setTarget] = useState(null); // of a drag: {id, place}
  const wanted = useRef(null); // the row that gets the focus as soon as it is there
  const moves = useRef({ last: Promise.resolve(), count: 0 }); // that are not done yet
  const box = useRef(null);
  tree.version.value; // render again with each change
  const rows = tree.rows();
  const current = rows.some((row) => row.id === active)
    ? active
    : rows.some((row) => row.id === selected)
      ? selected
      : rows.find((row) => row.kind === "node")?.id;
  const index = rows.findIndex((row) => row.id === current && row.kind === "node");
  useEffect(() => setActive(selected ?? null), [selected]);
  useEffect(() => {
    if (!wanted.current) return;
    const row = [...(box.current?.querySelectorAll("[role=treeitem]") ?? [])].find(
      (each) => each.dataset.id === wanted.current,
    );
    if (row) {
      wanted.current = null;
      row.focus({ preventScroll: true });
    }
  });

  const focus = (id) => {
    wanted.current = id;
    setActive(id);
    if (id === latest.current) tree.changed();
  };
  // The first of these that has a row: a document may be moved to where nothing is loaded.
  const focusOneOf = (...ids) => {
    const known = new Set(tree.rows().map((row) => row.id));
    const shown = ids.find((id) => known.has(id));
    if (shown) focus(shown);
  };
  const step = (offset) => {
    for (let at = index + offset; at >= 0 && at < rows.length; at += Math.sign(offset)) {
      if (rows[at].kind === "node") return focus(rows[at].id);
    }
    return undefined;
  };
  // Moves follow one another: where a document goes depends on where the one before it went.
  const move = (id, place) => {
    moves.current.count++;
    moves.current.last = moves.current.last.then(() => moveNow(id, place)).finally(() => moves.current.count--);
  };
  const moveNow = async (id, place) => {
    const node = tree.nodes.get(id);
    const before = latest.current;
    try {
      const goal = await place(node);
      if (!goal) return;
      await tree.move(id, goal.parentId, goal.before);
      if (goal.parentId !== ROOT) {
        const list = tree.list(goal.parentId);
        if (!list.known.has(id)) await tree.load(list);
        tree.toggle(goal.parentId, true);
      }
      if (latest.current === before) focusOneOf(id, goal.parentId); // unless another row was chosen meanwhile
      const parent = tree.nodes.get(goal.parentId);
      toast(
        t(parent ? "documents.moved_below" : "documents.moved_top", { title: titleOf(node), parent: titleOf(parent) }),
      );
    } catch (error) {
      toast(`${error.message} ${error.guidance ?? ""}`, "wrong");
    }
  };
  const places = {
    ArrowUp: async ({ document_id: id, parent_id: parentId }) => {
      const before = await tree.previous(id);
      return before && { parentId, before };
    },
    ArrowDown: async ({ document_id: id, parent_id: parentId }) =>
      (await tree.next(id)) && { parentId, before: await tree.next(id, 2) },
    ArrowRight: async ({ document_id: id }) => {
      const parentId = await tree.previous(id);
      return parentId && { parentId };
    },
    ArrowLeft: async ({ parent_id: parentId }) => {
      const parent = tree.nodes.get(parentId);
      return parent && { parentId: parent.parent_id, before: await tree.next(parentId) };
    },
  };
  const keys = (event, row) => {
    const node = tree.nodes.get(row.id);
    const open = tree.expanded.has(row.id);
    const actions = {
      ArrowDown: () => step(1),
      ArrowUp: () => step(-1),
      Home: async () => {
        const top = tree.list(ROOT);
        if (!top.complete) {
          tree.refresh(ROOT);
          await tree.load(tree.list(ROOT));
        }
        focus(tree.list(ROOT).ids[0]);
      },
      End: () => focus(rows.findLast((each) => each.kind === "node").id),
      PageDown: () => step(Math.min(10, rows.length - 1 - index) || 1),
      PageUp: () => step(-Math.min(10, index) || -1),
      ArrowRight: () => (open ? step(1) : node.has_children && tree.toggle(row.id, true)),
      ArrowLeft: () => (open ? tree.toggle(row.id, false) : node.parent_id !== ROOT && focus(node.parent_id)),
      Enter: () => go(link("documents", [row.id])),
      " ": () => go(link("documents", [row.id])),
    };
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.target !== event.currentTarget) return;
    const action = event.altKey ? places[event.key] && (() => move(row.id, places[event.key])) : actions[event.key];
    if (!action) return;
    event.preventDefault();
    if (event.altKey && event.repeat && moves.current.count) return; // a key held down moves no faster than it is seen
    action();
  };
  const drag = {
    start: (event, row) => {
      event.dataTransfer.setData("text/plain", row.id);
      event.dataTransfer.effectAllowed = "move";
    },
    over: (event, row) => {
      if (!event.dataTransfer.types.includes("text/plain")) return;
      event.preventDefault();
      const place = placeOf(event, tree.expanded.has(row.id));
      if (target?.id === row.id && target.place === place) return;
      clearTimeout(target?.timer);
      const opens = place === "into" && tree.nodes.get(row.id).has_children && !tree.expanded.has(row.id);
      const timer = opens ? setTimeout(() => tree.toggle(row.id, true), EXPAND_AFTER_MS) : 0;
      setTarget({ id: row.id, place, timer });
    },
    drop: (event, row) => {
      event.preventDefault();
      clearTimeout(target?.timer);
      setTarget(null);
      const id = event.dataTransfer.getData("text/plain");
      if (!tree.nodes.has(id) || id === row.id) return;
      const place = placeOf(event, tree.expanded.has(row.id)); // the state may be of an earlier place
      move(id, async () => {
        if (place === "into") return { parentId: row.id };
        const parentId = tree.nodes.get(row.id).parent_id;
        const before = place === "before" ? row.id : await tree.next(row.id);
        return before === id ? null : { parentId, before };
      });
    },
    leave: (event) => {
      if (!event.currentTarget.contains(event.relatedTarget)) drag.end();
    },
    end: () => {
      clearTimeout(target?.timer);
      setTarget(null);
    },
  };
  const onlyMore = rows.every((row) => row.kind === "more");
  const failure = rows.find((row) => row.list?.error);
  if (!rows.length) return html`<div class="empty"><p>${t("documents.empty")}</p></div>`;
  if (onlyMore && !failure)
    return html`<div class="tree" aria-busy="true">${rows.map((row) => html`<${More} tree=${tree} ...${row} />`)}
      </div>`;
  return html`<${VirtualList} class="virtual tree" count=${rows.length} prepended=${tree.prepended}
    rowHeight=${ROW_PIXELS} role="tree" label=${t("documents.tree")} active=${index} listRef=${box}>
    ${(at) => {
      const row = rows[at];
      if (row.kind === "more")
        return html`<div role="treeitem" aria-level=${row.level} class="tree-row more" style=${indent(row.level)}>
          <${More} tree=${tree} ...${row} /></div>`;
      return html`<${Row} row=${row} node=${tree.nodes.get(row.id)} open=${tree.expanded.has(row.id)}
        isActive=${row.id === current}
        isSelected=${row.id === selected} place=${target?.id === row.id ? target.place : ""} keys=${keys} drag=${drag}
        onOpen=${() => {
          setActive(row.id);
          if (tree.nodes.get(row.id).has_children) tree.toggle(row.id, true);
          go(link("documents", [row.id]));
        }} onToggle=${() => tree.toggle(row.id)} />`;
    }}
  <//>`;
}

function Row({ row, node, open, isActive, isSelected, place, keys, drag, onOpen, onToggle }) {
  const expandable = node.has_children || open;
  return html`<div role="treeitem" data-id=${row.id} aria-level=${row.level} aria-setsize=${row.size}
    aria-posinset=${row.position} aria-expanded=${expandable ? String(open) : undefined}
    aria-selected=${String(isSelected)} tabindex=${isActive ? 0 : -1} draggable style=${indent(row.level)}
    class="tree-row ${place && `drop-${place}`}" title=${titleOf(node)}
    onClick=${onOpen} onKeyDown=${(event) => keys(event, row)}
    onDragStart=${(event) => drag.start(event, row)} onDragOver=${(event) => drag.over(event, row)}
    onDrop=${(event) => drag.drop(event, row)} onDragEnd=${drag.end} onDragLeave=${drag.leave}>
    <span class="twist ${expandable ? "" : "leaf"}" aria-hidden="true" onClick=${(event) => {
      event.stopPropagation();
      if (expandable) onToggle();
    }}>${expandable ? (open ? "▾" : "▸") : ""}</span>
    <span class="label">${titleOf(node)}</span>
    ${node.delete_at && html`<span class="tag">${t("documents.scheduled_tag")}</span>`}
  </div>`;
}

// Return where a document that is dragged over a row would go: before, after or into it.
function placeOf(event, isOpen) {
  const { top, height } = event.currentTarget.getBoundingClientRect();
  const part = (event.clientY - top) / height;
  if (part < 0.25) return "before";
  return part > 0.75 && !isOpen ? "after" : "into";
}

// The row that stands for further pages: it loads the next one when it comes into view.
function More({ tree, list, backwards }) {
  useEffect(() => {
    if (!list.error && !list.loading) tree.load(list, backwards);
  });
  if (list.error)
    return html`<span role="alert">${list.error.message}</span> <button class="quiet"
      onClick=${() => tree.load(list, backwards)}>${t("app.retry")}</button>`;
  return html`<span class="faint" aria-busy="true">${t("app.loading")}</span>`;
}

function indent(level) {
  return { "--level": Math.min(level - 1, DEEPEST_INDENT) };
}
