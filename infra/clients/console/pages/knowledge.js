// Knowledge: collections, their documents and passages; ingestion by drop; queries with the parts of each score.
import { useCallback, useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { call, poll } from "../api.js";
import { useData } from "../components/data.js";
import { ActionDialog, ConfirmButton } from "../components/dialog.js";
import { linkTarget, slug } from "../components/document_link.js";
import { ErrorBox } from "../components/error_box.js";
import { Ingestion } from "../components/ingestion.js";
import { flattenHeadings, Markdown } from "../components/markdown.js";
import { PagedList, usePages } from "../components/paged_list.js";
import { visible } from "../components/visible_text.js";
import { toast } from "../components/toast.js";
import { html } from "../html.js";
import { formatNumber, formatTime, t } from "../i18n.js";
import { go, link } from "../router.js";

const MANAGE = "research-agent/manage_collections";
const LIST = "research-agent/list_documents";
const PAGE = 50;
const MOST = 1000; // what one call lists
const INDEXING_POLL = { every: 1000, growth: 1.5, most: 30_000 }; // of documents that are being indexed

export default function Knowledge({ segments, query }) {
  const [collection, ...path] = segments;
  if (!collection) return html`<${Collections} query=${query} />`;
  if (path.length)
    return html`<${Document} key=${path.join("/")} collection=${collection} path=${path.join("/")} query=${query} />`;
  return html`<${Collection} key=${collection} name=${collection} query=${query} />`;
}

function Collections({ query }) {
  const [creating, setCreating] = useState(false);
  const pages = usePages(async (cursor, signal) => {
    const page = await call(MANAGE, { action: "list", limit: PAGE, cursor }, { signal });
    return { items: page.collections, next_cursor: page.next_cursor };
  });
  return html`<h1>${t("knowledge.title")}</h1>
    <p>${t("knowledge.intro")}</p>
    ${pages.items.length > 0 && html`<${Search} query=${query} />`}
    <section aria-labelledby="collections">
      <div class="toolbar"><h2 id="collections">${t("knowledge.collections")}</h2>
        <button onClick=${() => setCreating(true)}>${t("knowledge.create")}</button></div>
      <${PagedList} pages=${pages} label=${t("knowledge.collections")} keyOf=${(each) => each.name}
        empty=${html`<p>${t("knowledge.no_collections")}</p><p><button class="primary"
          onClick=${() => setCreating(true)}>${t("knowledge.create")}</button></p>`}>
        ${(
          each,
        ) => html`<article class="panel row"><h3><a href=${link("knowledge", [each.name])}>${visible(each.name)}</a>
          </h3>
          <p class="faint">${t("knowledge.size", { documents: each.documents, passages: each.chunks })}
            ${each.projects.length > 0 && ` · ${each.projects.map(visible).join(", ")}`}</p></article>`}
      <//>
    </section>
    ${creating && html`<${CreateDialog} onClose=${() => setCreating(false)} />`}`;
}

function CreateDialog({ onClose }) {
  const [name, setName] = useState("");
  const create = async () => {
    await call(MANAGE, { action: "create", collection_name: name });
    go(link("knowledge", [name]));
  };
  return html`<${ActionDialog} title=${t("knowledge.create")} action=${t("knowledge.create_action")} act=${create}
    onClose=${onClose}>
    <label>${t("knowledge.name")}
      <input required maxlength="64" autocomplete="off" spellcheck=${false} value=${name}
        onInput=${(event) => setName(event.target.value)} /></label>
    <p class="help">${t("knowledge.name_help")}</p>
  <//>`;
}

function Collection({ name, query }) {
  const [info, setInfo] = useState(null);
  const describe = async (signal = undefined) => {
    const { collection } = await call(MANAGE, { action: "info", collection_name: name, limit: 1 }, { signal });
    setInfo(collection);
  };
  const pages = usePages(
    async (cursor, signal) => {
      const [page] = await Promise.all([
        call(LIST, { collection_name: name, limit: PAGE, cursor }, { signal }),
        cursor ? null : describe(signal),
      ]);
      return { items: page.documents, next_cursor: page.next_cursor };
    },
    [name],
  );
  const loaded = pages.items.length;
  useIndexing(
    pages.items.some((each) => !each.indexed),
    async (signal) => {
      const limit = Math.min(MOST, Math.max(PAGE, loaded));
      const { documents } = await call(LIST, { collection_name: name, limit }, { signal });
      const now = new Map(documents.map((each) => [each.path, each]));
      pages.setItems((items) => items.map((each) => now.get(each.path) ?? each));
    },
    [name, loaded],
  );
  // The rest of the list stays where it is.
  const forget = ({ path }) => {
    pages.setItems((items) => items.filter((each) => each.path !== path));
    describe().catch(() => {}); // the list is right, and the counts are asked for again with it
  };
  const remove = async () => {
    await call(MANAGE, { action: "delete", collection_name: name });
    toast(t("knowledge.deleted", { name }));
    go(link("knowledge"));
  };
  return html`<${Trail} names=${[]} />
    <h1>${visible(name)}</h1>
    ${
      info &&
      html`<p class="faint">
      ${t("knowledge.size", { documents: info.documents, passages: info.chunks })} · ${info.type} · ${info.model} (
      ${info.dimensions})</p>`
    }
    ${info?.documents > 0 && html`<${Search} query=${query} collection=${name} />`}
    ${info && html`<${Ingestion} collection=${name} onDone=${pages.reload} />`}
    <section aria-labelledby="documents">
      <h2 id="documents">${t("knowledge.documents")}</h2>
      <${PagedList} pages=${pages} label=${t("knowledge.documents")} keyOf=${(each) => each.path}
        empty=${t("knowledge.no_documents")}>
        ${(each) => html`<${DocumentRow} collection=${name} document=${each} onRemoved=${() => forget(each)} />`}
      <//>
    </section>
    ${
      info &&
      html`<p><${ConfirmButton} action=${t("knowledge.delete")} word=${name} onConfirm=${remove}
        text=${t("knowledge.delete_text", { documents: info.documents })} /></p>`
    }`;
}

// Run `load(signal)` with growing pauses while something is being indexed, and the page is shown.
function useIndexing(isPending, load, inputs) {
  useEffect(() => (isPending ? poll(load, INDEXING_POLL).stop : undefined), [isPending, ...inputs]);
}

function DocumentRow({ collection, document, onRemoved }) {
  const { path, title, chunks, bytes, updated_at: updated, indexed } = document;
  return html`<article class="panel row">
    <h3><a href=${link("knowledge", [collection, path])}>${visible(path)}</a></h3>
    <p class="faint">${title && title !== path && `${visible(title)} · `}
      ${t("knowledge.passages_count", { count: chunks })} ·
      ${" "}${formatNumber(Math.ceil(bytes / 1024))} KiB · ${formatTime(updated)}</p>
    ${!indexed && html`<p class="state note">${t("knowledge.indexing")}</p>`}
    <p><${RemoveButton} collection=${collection} path=${path} onRemoved=${onRemoved} /></p></article>`;
}

function RemoveButton({ collection, path, onRemoved }) {
  const remove = async () => {
    await call("research-agent/remove_document", { collection_name: collection, path });
    toast(t("knowledge.removed", { path }));
    onRemoved();
  };
  return html`<${ConfirmButton} action=${t("knowledge.remove")} label=${t("knowledge.remove_one", { path })}
    onConfirm=${remove} text=${t("knowledge.remove_text", { path: visible(path) })} />`;
}

function Document({ collection, path, query }) {
  const [document_, setDocument] = useState(null);
  const asked = Number(query.passage) || 0;
  const pages = usePages(
    async (cursor, signal) => {
      const limit = cursor ? PAGE : query.heading ? MOST : Math.min(MOST, Math.max(PAGE, asked));
      const page = await call(
        "research-agent/list_passages",
        { collection_name: collection, path, limit, cursor },
        { signal },
      );
      setDocument(page.document);
      return { items: page.passages, next_cursor: page.next_cursor };
    },
    [collection, path],
  );
  useIndexing(
    document_?.indexed === false,
    async (signal) => {
      const { document } = await call(
        "research-agent/list_passages",
        { collection_name: collection, path, limit: 1 },
        { signal },
      );
      if (document.indexed) pages.reload();
    },
    [collection, path],
  );
  const headed = ({ header_path: headings }) => slug(headings.split(" > ").at(-1)) === query.heading;
  const wanted = query.heading ? pages.items.find(headed)?.chunk_sequence_id : asked;
  const resolve = useCallback(
    (href) => {
      const target = linkTarget(path, href);
      return target && link("knowledge", [collection, target.path], { heading: target.heading });
    },
    [collection, path],
  );
  return html`<${Trail} names=${[collection]} />
    <h1>${visible(document_?.title || path)}</h1>
    ${
      document_ &&
      html`<p class="faint"><span class="code">${visible(path)}
        </span> · ${t("knowledge.passages_count", { count: document_.chunks })} ·
      ${" "}${t("knowledge.revision", { number: document_.revision })} · ${formatTime(document_.updated_at)}</p>`
    }
    ${document_ && !document_.indexed && html`<p class="state note">${t("knowledge.indexing")}</p>`}
    <${PagedList} pages=${pages} label=${t("knowledge.passages")} keyOf=${(each) => each.chunk_sequence_id}
      empty=${t(document_?.indexed === false ? "knowledge.indexing" : "knowledge.no_passages")}>
      ${(each) => html`<${Passage} passage=${each} current=${each.chunk_sequence_id === wanted} resolve=${resolve} />`}
    <//>
    ${
      document_ &&
      html`<p><${RemoveButton} collection=${collection} path=${path}
        onRemoved=${() => go(link("knowledge", [collection]))} /></p>`
    }`;
}

function Trail({ names }) {
  return html`<nav aria-label=${t("knowledge.trail")} class="trail"><a href=${link("knowledge")}>${t("knowledge.title")}
    </a>
    ${names.map((name) => html` › <a href=${link("knowledge", [name])}>${visible(name)}</a>`)}</nav>`;
}

// A passage. The one that the address names is scrolled to.
function Passage({ passage, current, resolve }) {
  const box = useRef(null);
  useEffect(() => {
    if (current) box.current.scrollIntoView({ block: "center" });
  }, [current]);
  const { chunk_sequence_id: number, header_path: headings, content_type: kind, content } = passage;
  return html`<article ref=${box} class="panel row ${current ? "current" : ""}"
    aria-current=${current ? "true" : undefined}>
    <h2 class="passage-head"><span class="tag">${number}</span> <span class="tag">${t(`knowledge.kinds.${kind}`)}</span>
      ${" "}${visible(headings) || t("knowledge.no_heading")}</h2>
    <${Content} text=${content} kind=${kind} resolve=${resolve} />
  </article>`;
}

// Passages of Markdown are rendered, those of source code are shown as they are.
function Content({ text, kind, resolve = undefined }) {
  const shown = visible(text);
  const rendered = kind !== "code_block" || /^(```|~~~)/m.test(shown);
  return rendered
    ? html`<${Markdown} text=${shown} onRender=${flattenHeadings} resolve=${resolve} />`
    : html`<pre class="plain-text" tabindex="0">${shown}</pre>`;
}

function Search({ query, collection = "" }) {
  const [text, setText] = useState(query.q ?? "");
  const asked = query.q ?? "";
  useLayoutEffect(() => setText(asked), [asked]);
  const ask = (words) => go(link("knowledge", collection ? [collection] : [], { q: words }));
  const id = useId();
  return html`<section aria-labelledby=${id}>
    <h2 id=${id}>${collection ? t("knowledge.search_one") : t("knowledge.search_all")}</h2>
    <form class="toolbar" role="search" onSubmit=${(event) => {
      event.preventDefault();
      ask(text.trim());
    }}>
      <input type="search" aria-label=${t("knowledge.query")} placeholder=${t("knowledge.query_hint")} required
        maxlength="2048" value=${text}
        onInput=${(event) => setText(event.target.value)} />
      <button type="submit" class="primary">${t("knowledge.find")}</button>
    </form>
    ${asked && html`<${Results} query=${query} collection=${collection} ask=${ask} />`}
  </section>`;
}

function Results({ query, collection, ask }) {
  const asked = query.q;
  const found = useData(
    (signal) =>
      call(
        "research-agent/query_knowledge_base",
        { query: asked, explain: true, ...(collection && { collections: collection }) },
        { signal },
      ),
    [query, collection],
  );
  const { results = [], query_refinement: refinement } = found.value ?? {};
  return html`<div aria-busy=${found.loading}>
    <p role="status" class="faint">
      ${found.loading ? t("app.loading") : found.value && t("knowledge.found", { count: results.length })}</p>
    <${ErrorBox} error=${found.error} onRetry=${found.reload} />
    ${
      refinement &&
      refinement.status !== "optimal" &&
      html`<div class="panel row"><p>${t(`knowledge.refinement.${refinement.status}`)}</p>
      ${
        refinement.suggestions.length > 0 &&
        html`<p class="actions">${refinement.suggestions.map(
          (word) => html`
        <button key=${word} onClick=${() => ask(refined(asked, word))}>${visible(refined(asked, word))}</button>`,
        )}</p>`
      }</div>`
    }
    <ol class="results" aria-label=${t("knowledge.results")}>${results.map(
      (result, index) => html`<li key=${index}>
      <${Result} result=${result} /></li>`,
    )}</ol>
  </div>`;
}

function Result({ result }) {
  const { source_document: path, header_path: headings, metadata, collection } = result;
  const place = [visible(path), headings && visible(headings)].filter(Boolean).join(" › ");
  const address = link("knowledge", [collection, path], { passage: metadata.chunk_sequence_id });
  return html`<article class="panel">
    <h3><a href=${address}>${place}</a></h3>
    <p class="faint"><span class="tag">${t(`knowledge.kinds.${metadata.content_type}`)}</span>
      ${" "}<strong>${formatNumber(result.relevance_score, { style: "percent" })}
        </strong> · ${t(`knowledge.labels.${result.relevance_label}`)}</p>
    <${Content} text=${result.content} kind=${metadata.content_type} />
    <details><summary>${t("knowledge.explain")}</summary><${ScoreParts} parts=${result.score_parts}
      score=${result.relevance_score} /></details>
  </article>`;
}

// The parts of a score: each adds its value times its weight.
function ScoreParts({ parts, score }) {
  const number = (value) => formatNumber(value, { minimumFractionDigits: 3, maximumFractionDigits: 3 });
  return html`<div class="table-box" tabindex="0"><table class="score">
    <thead><tr><th scope="col">${t("knowledge.part")}</th><th scope="col">${t("knowledge.value")}</th>
      <th scope="col">${t("knowledge.weight")}</th><th scope="col">${t("knowledge.adds")}</th></tr></thead>
    <tbody>${parts.map(
      ({ name, value, weight }) => html`<tr key=${name}><th scope="row">${t(`knowledge.parts.${name}`)}</th>
      <td><meter min="0" max="1" value=${value} aria-label=${t(`knowledge.parts.${name}`)}></meter> ${number(value)}
        </td>
      <td>× ${number(weight)}</td><td>${number(value * weight)}</td></tr>`,
    )}
      <tr><th scope="row" colspan="3">${t("knowledge.score")}</th><td><strong>${number(score)}</strong></td></tr>
        </tbody>
  </table></div>`;
}

// Return the query with a suggested word instead of the word that it corrects, or added to it.
export function refined(query, word) {
  const words = query.split(/\s+/);
  const plain = (text) => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
  const near = words.findIndex(
    (each) => distance(plain(each), plain(word)) <= Math.max(1, Math.floor(word.length / 4)),
  );
  if (near >= 0) return words.with(near, word).join(" ");
  return `${query} ${word}`;
}

// Return how many letters have to be changed, added or removed to turn one word into the other.
function distance(one, other) {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let i = 1; i <= one.length; i++) {
    const next = [i];
    for (let j = 1; j <= other.length; j++) {
      next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (one[i - 1] === other[j - 1] ? 0 : 1));
    }
    row = next;
  }
  return row[other.length];
}
