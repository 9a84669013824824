// Moves of documents in the tree, one after another.
import { useRef } from "preact/hooks";
import { toast } from "../components/toast.js";
import { t } from "../i18n.js";
import { ROOT, titleOf } from "./tree.js";

// Return the places that the arrow keys move a document to, by key: functions of a node that return
// {parentId, before}, or nothing where it stays.
export function keyPlaces(tree) {
  return {
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
}

// Return {move, isMoving}. Moves follow one another: where a document goes depends on where the one before it went.
export function useTreeMoves(tree, { latest, focusOneOf }) {
  const moves = useRef({ last: Promise.resolve(), count: 0 }); // that are not done yet
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
      const text = parent ? "documents.moved_below" : "documents.moved_top";
      toast(t(text, { title: titleOf(node), parent: titleOf(parent) }));
    } catch (error) {
      toast(`${error.message} ${error.guidance ?? ""}`, "wrong");
    }
  };
  const move = (id, place) => {
    moves.current.count++;
    moves.current.last = moves.current.last.then(() => moveNow(id, place)).finally(() => moves.current.count--);
  };
  return { move, isMoving: () => moves.current.count > 0 };
}
