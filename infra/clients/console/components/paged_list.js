// A list that loads its next page when its end comes into view, or by a button.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { ErrorBox } from "./error_box.js";

// Load pages one after another: `load(cursor, signal)` returns {items, next_cursor}. `show` gets each state. A start
// ends the one before it. `more` is true while there are further pages.
/**
 * @template T
 * @param {(cursor: any, signal: AbortSignal) => Promise<{ items: T[]; next_cursor?: any }>} load
 * @param {(state: { items: T[]; cursor: any; error: any; loading: boolean; more: boolean }) => void} show
 */
export function pager(load, show) {
  /** @type {AbortController | null} */
  let run = null;
  const start = async (cursor = undefined, before = []) => {
    run?.abort();
    const controller = new AbortController();
    run = controller;
    show({ items: before, cursor, error: null, loading: true, more: false });
    try {
      const page = await load(cursor, controller.signal);
      if (run !== controller) return;
      const next = page.next_cursor ?? undefined;
      const items = [...before, ...page.items];
      show({ items, cursor: next, error: null, loading: false, more: next !== undefined });
    } catch (error) {
      if (run === controller) show({ items: before, cursor, error, loading: false, more: false });
    }
  };
  const stop = () => {
    run?.abort();
    run = null;
  };
  return { start, stop };
}

// Load by `load` again when one of `inputs` changes. Return {items, error, loading, more, next, reload, setItems}.
/**
 * @template T
 * @param {(cursor: any, signal: AbortSignal) => Promise<{ items: T[]; next_cursor?: any }>} load
 */
export function usePages(load, inputs = []) {
  const [state, setState] = useState({
    items: /** @type {T[]} */ ([]),
    cursor: undefined,
    error: /** @type {any} */ (null),
    loading: true,
    more: false,
  });
  const pages = useMemo(() => pager(load, setState), inputs);
  useEffect(() => {
    pages.start();
    return pages.stop;
  }, [pages]);
  const { items, cursor, error, loading, more } = state;
  const setItems = (/** @type {(items: T[]) => T[]} */ change) =>
    setState((old) => ({ ...old, items: change(old.items) }));
  return { items, error, loading, more, next: () => pages.start(cursor, items), reload: () => pages.start(), setItems };
}

// Show the pages' items by `children(item)`, and what to say if there are none.
export function PagedList({ pages, empty, label, children, keyOf }) {
  const end = useRef(null);
  const next = useRef(null);
  next.current = pages.next;
  useEffect(() => {
    if (!pages.more) return undefined;
    const observer = new IntersectionObserver((entries) => {
      if (entries.some((entry) => entry.isIntersecting)) next.current();
    });
    observer.observe(end.current);
    return () => observer.disconnect();
  }, [pages.more, pages.items.length]);
  const { items, error, loading, more } = pages;
  return html`<div class="paged" aria-busy=${loading}>
    ${
      items.length > 0 &&
      html`<ul class="plain" aria-label=${label}>
      ${items.map((item, index) => html`<li key=${keyOf ? keyOf(item) : index}>${children(item, index)}</li>`)}</ul>`
    }
    ${!loading && !error && items.length === 0 && html`<div class="empty">${empty}</div>`}
    <${ErrorBox} error=${error} onRetry=${pages.next} />
    <div ref=${end} class="end">
      ${loading && html`<span role="status">${t("app.loading")}</span>`}
      ${more && html`<button onClick=${pages.next}>${t("app.more")}</button>`}
    </div>
  </div>`;
}
