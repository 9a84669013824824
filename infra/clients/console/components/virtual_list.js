// A list of many rows of one height, of which only those in view are in the page.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { html } from "../html.js";

const AROUND = 10; // rows outside of the view, so that scrolling shows no gaps

// `children(index)` renders one row, which is `rowHeight` pixels high. `role` and `label` are the list's.
// `active` is the row that must be in the page, because it has the focus; it is scrolled into view when it changes.
// `prepended` counts rows that were put above others: what is in view stays there.
export function VirtualList({
  count,
  rowHeight,
  children,
  role = "list",
  label,
  active = -1,
  prepended = 0,
  onEnd,
  listRef,
  ...rest
}) {
  const box = useRef(null);
  const content = useRef(null);
  const [view, setView] = useState({ first: 0, last: 50 });
  const measure = () => {
    if (!box.current) return; // the list has just left the page
    const { first, last } = rowsInView(box.current, rowHeight);
    setView((old) => (old.first === first && old.last === last ? old : { first, last }));
    if (onEnd && last >= count) onEnd();
  };
  // Before the rows are painted, and before what follows scrolls.
  useLayoutEffect(() => {
    content.current.style.height = `${count * rowHeight}px`;
    for (const row of content.current.children) row.style.transform = `translateY(${row.dataset.index * rowHeight}px)`;
  });
  const before = useRef(prepended);
  useEffect(() => {
    box.current.scrollTop += (prepended - before.current) * rowHeight;
    before.current = prepended;
  }, [prepended]);
  useEffect(() => {
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(box.current);
    return () => observer.disconnect();
  }, [count, rowHeight]);
  useEffect(() => {
    if (active < 0 || !box.current) return;
    box.current.scrollTop = scrollFor(box.current, active, rowHeight);
  }, [active - prepended]);
  const rows = renderedRows(view, count, active);
  return html`<div class="virtual" ref=${(element) => {
    box.current = element;
    if (listRef) listRef.current = element;
  }} onScroll=${measure} ...${rest}>
    <div ref=${content} role=${role} aria-label=${label} class="virtual-rows">
      ${rows.map(
        (index) => html`<div key=${index} data-index=${index} role="presentation" class="virtual-row">
        ${children(index)}</div>`,
      )}
    </div>
  </div>`;
}

// Return the first row to render and the one after the last: those in view, and some around them.
export function rowsInView({ scrollTop, clientHeight }, rowHeight) {
  const first = Math.max(0, Math.floor(scrollTop / rowHeight) - AROUND);
  return { first, last: Math.ceil((scrollTop + clientHeight) / rowHeight) + AROUND };
}

// Return the rows to render: those of the view that are there, and the active one.
export function renderedRows({ first, last }, count, active) {
  const rows = [];
  for (let index = first; index < Math.min(last, count); index++) rows.push(index);
  if (active >= 0 && active < count && !rows.includes(active)) rows.push(active);
  return rows;
}

// Return where a box is scrolled to so that all of a row is in view; where it is, if the row is.
export function scrollFor({ scrollTop, clientHeight }, row, rowHeight) {
  return Math.min(row * rowHeight, Math.max(scrollTop, (row + 1) * rowHeight - clientHeight));
}
