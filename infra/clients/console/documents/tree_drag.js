// Documents that are dragged over the tree.
import { useState } from "preact/hooks";

const EXPAND_AFTER_MS = 700; // a dragged document opens the one below it after this

// Return {target, drag}: where a dragged document would go, {id, place}, and the handlers of a row's events.
export function useTreeDrag(tree, move) {
  const [target, setTarget] = useState(null);
  const end = () => {
    clearTimeout(target?.timer);
    setTarget(null);
  };
  const start = (event, row) => {
    event.dataTransfer.setData("text/plain", row.id);
    event.dataTransfer.effectAllowed = "move";
  };
  const over = (event, row) => {
    if (!event.dataTransfer.types.includes("text/plain")) return;
    event.preventDefault();
    const place = placeOf(event, tree.expanded.has(row.id));
    if (target?.id === row.id && target.place === place) return;
    clearTimeout(target?.timer);
    const opens = place === "into" && tree.nodes.get(row.id).has_children && !tree.expanded.has(row.id);
    const timer = opens ? setTimeout(() => tree.toggle(row.id, true), EXPAND_AFTER_MS) : 0;
    setTarget({ id: row.id, place, timer });
  };
  const drop = (event, row) => {
    event.preventDefault();
    end();
    const id = event.dataTransfer.getData("text/plain");
    if (!tree.nodes.has(id) || id === row.id) return;
    const place = placeOf(event, tree.expanded.has(row.id)); // the state may be of an earlier place
    move(id, async () => {
      if (place === "into") return { parentId: row.id };
      const parentId = tree.nodes.get(row.id).parent_id;
      const before = place === "before" ? row.id : await tree.next(row.id);
      return before === id ? null : { parentId, before };
    });
  };
  const leave = (event) => {
    if (!event.currentTarget.contains(event.relatedTarget)) end();
  };
  return { target, drag: { start, over, drop, leave, end } };
}

// Return where a document that is dragged over a row would go: before, after or into it.
function placeOf(event, isOpen) {
  const { top, height } = event.currentTarget.getBoundingClientRect();
  const part = (event.clientY - top) / height;
  if (part < 0.25) return "before";
  return part > 0.75 && !isOpen ? "after" : "into";
}
