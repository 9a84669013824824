// The row of the tree that has the focus.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

// Return the active row's id, how to change it, and the ref of the tree's element. `latest` is the id of the last
// rendering, for what waits for an answer.
export function useTreeFocus(tree, selected) {
  const [active, setActive] = useState(null);
  const latest = useRef(null);
  latest.current = active;
  const awaited = useRef(null); // the row that gets the focus as soon as it is there
  const box = useRef(null);
  useLayoutEffect(() => setActive(selected ?? null), [selected]);
  useEffect(() => {
    if (!awaited.current) return;
    const rows = [...(box.current?.querySelectorAll("[role=treeitem]") ?? [])];
    const row = rows.find((each) => each.dataset.id === awaited.current);
    if (row) {
      awaited.current = null;
      row.focus({ preventScroll: true });
    }
  });
  const focus = (id) => {
    awaited.current = id;
    setActive(id);
    if (id === latest.current) tree.changed();
  };
  // The first of these that has a row: a document may be moved to where nothing is loaded.
  const focusOneOf = (...ids) => {
    const known = new Set(tree.rows().map((row) => row.id));
    const id = ids.find((each) => known.has(each));
    if (id) focus(id);
  };
  return { active, setActive, latest, box, focus, focusOneOf };
}
