// The history of a document: who changed it, what it said then, and the differences between two revisions.
import { useEffect, useRef, useState } from "preact/hooks";
import { call } from "../api.js";
import { useData } from "../components/data.js";
import { Diff } from "./diff.js";
import { ErrorBox } from "../components/error_box.js";
import { PagedList, usePages } from "../components/paged_list.js";
import { asText, visible } from "../components/visible_text.js";
import { html } from "../html.js";
import { formatTime, hasText, t } from "../i18n.js";
import { go, link } from "../router.js";
import { Body } from "./editor.js";

export function History({ documentId, gone, query, onEdit }) {
  const pages = usePages(
    async (cursor, signal) => {
      const page = await call(
        "agent-data/document_history",
        { document_id: documentId, newest_first: true, limit: 50, cursor },
        { signal },
      );
      return { items: page.history, next_cursor: page.next_cursor };
    },
    [documentId],
  );
  const newest = pages.items[0]?.revision;
  const [from, to] = [Number(query.from) || undefined, Number(query.to) || undefined];
  const choose = (first, second) => go(link("documents", [documentId], { view: "history", from: first, to: second }));
  return html`<div class="history">
    ${
      !gone &&
      newest > 1 &&
      html`<${Choice} key=${`${from} ${to}`} from=${from ?? newest - 1} to=${to ?? newest}
      newest=${newest} onChoose=${choose} />`
    }
    ${
      !gone &&
      to &&
      html`<${from ? Comparison : Revision} documentId=${documentId} from=${from} to=${to}
      newest=${newest} onEdit=${onEdit} />`
    }
    <${PagedList} pages=${pages} label=${t("documents.history")} empty=${t("documents.no_history")}
      keyOf=${(entry) => entry.revision}>
      ${(entry) => html`<${Entry} entry=${entry} gone=${gone} onRead=${() => choose(undefined, entry.revision)}
        onCompare=${() => choose(entry.from_revision || 1, entry.revision)} />`}
    <//>
  </div>`;
}

function Entry({ entry, gone, onRead, onCompare }) {
  const key = `documents.actions.${entry.action}`;
  return html`<div class="entry">
    <p><strong>${hasText(key) ? t(key) : entry.action}</strong> <span class="tag">
      ${t("documents.revision", { revision: entry.revision })}</span></p>
    <p class="faint"><time datetime=${entry.at}>${formatTime(entry.at)}</time> · ${visible(entry.by.sub)}
      ${entry.by.labels.length > 0 && ` (${visible(entry.by.labels.join(", "))})`}
      ${entry.fields && ` · ${entry.fields.map((each) => t(`documents.field_names.${each}`)).join(", ")}`}
      ${entry.delete_at && ` · ${t("documents.until", { time: formatTime(entry.delete_at) })}`}
      ${entry.together_with && ` · ${t("documents.together_with", { id: entry.together_with })}`}</p>
    ${entry.reason && html`<p>${t("documents.reason_given", { reason: visible(entry.reason) })}</p>`}
    ${
      !gone &&
      html`<p class="actions"><button onClick=${onRead}>${t("documents.show_revision", { revision: entry.revision })}
        </button>
      ${
        entry.fields &&
        html`<button onClick=${onCompare}>${t("documents.show_change", { revision: entry.revision })}
        </button>`
      }</p>`
    }
  </div>`;
}

function Choice({ from, to, newest, onChoose }) {
  const [chosen, setChosen] = useState({ from, to });
  const field = (name) => html`<label>${t(`documents.compare_${name}`)}
    <input type="number" min="1" max=${newest} required value=${chosen[name]}
      onInput=${(event) => setChosen({ ...chosen, [name]: Number(event.target.value) })} /></label>`;
  return html`<form class="compare" onSubmit=${(event) => {
    event.preventDefault();
    onChoose(chosen.from, chosen.to);
  }}>${field("from")}${field("to")}<button type="submit">${t("documents.compare")}</button></form>`;
}

// Return the reference to what gets the focus, and so comes into view, as soon as `value` is there.
function useFocus(value) {
  const element = useRef(null);
  useEffect(() => element.current?.focus(), [value]);
  return element;
}

// The text of the document at a revision.
function Revision({ documentId, to, newest, onEdit }) {
  const text = useData((signal) => load(documentId, to, signal), [documentId, to]);
  const heading = useFocus(text.value);
  if (text.error) return html`<${ErrorBox} error=${text.error} onRetry=${text.reload} />`;
  if (!text.value) return html`<p role="status" aria-busy="true">${t("app.loading")}</p>`;
  const { content, metadata, updated_at: time } = text.value;
  return html`<section aria-labelledby="revision"><h2 id="revision" tabindex="-1" ref=${heading}>
    ${t("documents.text_of", { revision: to })}</h2>
    <p class="faint">${formatTime(time)}${metadata.title && ` · ${visible(metadata.title)}`}</p>
    <div class="panel"><${Body} content=${content} /></div>
    ${
      to !== newest &&
      html`<div class="actions"><button onClick=${() => onEdit(text.value)}>
      ${t("documents.edit_revision", { revision: to })}</button></div>`
    }
  </section>`;
}

function load(documentId, revision, signal) {
  return call("agent-data/get_document", { document_id: documentId, revision }, { signal });
}

function Comparison({ documentId, from, to, newest, onEdit }) {
  const texts = useData(
    (signal) => Promise.all([load(documentId, from, signal), load(documentId, to, signal)]),
    [documentId, from, to],
  );
  const [whole, setWhole] = useState(false);
  const heading = useFocus(texts.value);
  if (texts.error) return html`<${ErrorBox} error=${texts.error} onRetry=${texts.reload} />`;
  if (!texts.value) return html`<p role="status" aria-busy="true">${t("app.loading")}</p>`;
  const [before, after] = texts.value;
  return html`<section aria-labelledby="comparison"><h2 id="comparison" tabindex="-1" ref=${heading}>
    ${t("documents.compared", { from, to })}</h2>
    <p class="faint">${formatTime(before.updated_at)} → ${formatTime(after.updated_at)}</p>
    <${Changed} before=${before.metadata} after=${after.metadata} />
    ${
      whole
        ? html`<div class="panel"><${Body} content=${after.content} />
      </div>`
        : html`<${Diff} before=${before.content.body} after=${after.content.body}
      label=${t("documents.differences")} />`
    }
    <div class="actions">
      <button onClick=${() => setWhole(!whole)}>
        ${whole ? t("documents.show_differences") : t("documents.show_revision", { revision: to })}</button>
      ${
        to !== newest &&
        html`<button onClick=${() => onEdit(after)}>${t("documents.edit_revision", { revision: to })}
        </button>`
      }
    </div>
  </section>`;
}

// Differences of title, tags and other metadata.
function Changed({ before, after }) {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const text = (value) => (value === undefined ? "–" : asText(value));
  const changed = names.filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]));
  if (!changed.length) return null;
  return html`<ul>${changed.map(
    (name) => html`<li><strong>${visible(name)}:</strong> <del>${text(before[name])}
    </del> → <ins>${text(after[name])}</ins></li>`,
  )}</ul>`;
}
