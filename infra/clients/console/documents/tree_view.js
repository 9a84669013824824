// The tree of documents: one row each, moved by drag or by keyboard.
import { useEffect } from "preact/hooks";
import { VirtualList } from "../components/virtual_list.js";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { go, link } from "../router.js";
import { ROOT, titleOf } from "./tree.js";
import { useTreeDrag } from "./tree_drag.js";
import { useTreeFocus } from "./tree_focus.js";
import { keyPlaces, useTreeMoves } from "./tree_moves.js";

const ROW_PIXELS = 36;
const DEEPEST_INDENT = 12;

export function TreeView({ tree, selected }) {
  tree.version.value; // render again with each change
  const rows = tree.rows();
  const focus = useTreeFocus(tree, selected);
  const moves = useTreeMoves(tree, focus);
  const { target, drag } = useTreeDrag(tree, moves.move);
  const current = currentRow(rows, [focus.active, selected]);
  const index = rows.findIndex((row) => row.id === current && row.kind === "node");
  const keys = (event, row) => handleKey(event, row, { tree, rows, index, focus: focus.focus, moves });
  const onlyMore = rows.every((row) => row.kind === "more");
  const failure = rows.find((row) => row.list?.error);
  if (!rows.length) return html`<div class="empty"><p>${t("documents.empty")}</p></div>`;
  if (onlyMore && !failure) {
    return html`<div class="tree" aria-busy="true">${rows.map((row) => html`<${More} tree=${tree} ...${row} />`)}
      </div>`;
  }
  return html`<${VirtualList} class="virtual tree" count=${rows.length} prepended=${tree.prepended}
    rowHeight=${ROW_PIXELS} role="tree" label=${t("documents.tree")} active=${index} listRef=${focus.box}>
    ${(at) => {
      const row = rows[at];
      if (row.kind === "more") {
        return html`<div role="treeitem" aria-level=${row.level} class="tree-row more" style=${indent(row.level)}>
          <${More} tree=${tree} ...${row} /></div>`;
      }
      return html`<${Row} row=${row} node=${tree.nodes.get(row.id)} open=${tree.expanded.has(row.id)}
        isActive=${row.id === current} isSelected=${row.id === selected}
        place=${target?.id === row.id ? target.place : ""} keys=${keys} drag=${drag}
        onOpen=${() => {
          focus.setActive(row.id);
          if (tree.nodes.get(row.id).has_children) tree.toggle(row.id, true);
          go(link("documents", [row.id]));
        }} onToggle=${() => tree.toggle(row.id)} />`;
    }}
  <//>`;
}

// Return the first of the ids that has a row, otherwise that of the first document.
export function currentRow(rows, ids) {
  const id = ids.find((each) => rows.some((row) => row.id === each));
  return id ?? rows.find((row) => row.kind === "node")?.id;
}

// Move the focus, open or close a document, or with Alt move the document itself.
function handleKey(event, row, { tree, rows, index, focus, moves }) {
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.target !== event.currentTarget) return;
  if (event.altKey) {
    const place = keyPlaces(tree)[event.key];
    if (!place) return;
    event.preventDefault();
    if (event.repeat && moves.isMoving()) return; // a key held down moves no faster than it is seen
    moves.move(row.id, place);
    return;
  }
  const action = keyActions(row, { tree, rows, index, focus })[event.key];
  if (!action) return;
  event.preventDefault();
  action();
}

function keyActions(row, { tree, rows, index, focus }) {
  const node = tree.nodes.get(row.id);
  const isOpen = tree.expanded.has(row.id);
  const step = (offset) => {
    for (let at = index + offset; at >= 0 && at < rows.length; at += Math.sign(offset)) {
      if (rows[at].kind === "node") return focus(rows[at].id);
    }
    return undefined;
  };
  const open = () => go(link("documents", [row.id]));
  return {
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
    ArrowRight: () => (isOpen ? step(1) : node.has_children && tree.toggle(row.id, true)),
    ArrowLeft: () => (isOpen ? tree.toggle(row.id, false) : node.parent_id !== ROOT && focus(node.parent_id)),
    Enter: open,
    " ": open,
  };
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
