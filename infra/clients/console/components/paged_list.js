// A list that loads its next page when its end comes into view, or by a button.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { ErrorBox } from "./error_box.js";

// `load(cursor, signal)` returns {items, next_cursor}; `inputs` are what it depends on. Return
// {items, error, loading, more, next, reload, setItems}; `more` is true while there are further pages.
export function usePages(load, inputs = []) {
  const [state, setState] = useState({ items: [], cursor: undefined, error: null, loading: true, more: false });
  const run = useRef(null);
  const start = useCallback((cursor, before) => {
    run.current?.abort();
    const controller = new AbortController();
    run.current = controller;
    setState({ items: before, cursor, error: null, loading: true, more: false });
    load(cursor, controller.signal).then(
      (page) => {
        if (run.current !== controller) return;
        const next = page.next_cursor ?? undefined;
        setState({
          items: [...before, ...page.items],
          cursor: next,
          error: null,
          loading: false,
          more: next !== undefined,
        });
      },
      (error) => {
        if (run.current === controller) setState({ items: before, cursor, error, loading: false, more: false });
      },
    );
  }, inputs);
  useEffect(() => {
    start(undefined, []);
    return () => run.current?.abort();
  }, [start]);
  const { items, cursor, error, loading, more } = state;
  const setItems = (change) => setState((old) => ({ ...old, items: change(old.items) }));
  return {
    items,
    error,
    loading,
    more,
    next: () => start(cursor, items),
    reload: () => start(undefined, []),
    setItems,
  };
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
