// Documents: the tree, and the document of the address: read, edited, moved, deleted, restored, and its history.
import { useEffect, useMemo, useState } from "preact/hooks";
import { call } from "../api.js";
import { CopyButton } from "../components/copy_button.js";
import { useData } from "../components/data.js";
import { ErrorBox } from "../components/error_box.js";
import { PagedList, usePages } from "../components/paged_list.js";
import { toast } from "../components/toast.js";
import { visible } from "../components/visible_text.js";
import { DeleteDialog, MoveDialog, RestoreDialog } from "../documents/dialogs.js";
import { abandonedDrafts, discardDraft } from "../documents/drafts.js";
import { Body, Editor } from "../documents/editor.js";
import { History } from "../documents/history.js";
import { DocumentTree, ROOT, titleOf } from "../documents/tree.js";
import { TreeView } from "../documents/tree_view.js";
import { html } from "../html.js";
import { formatTime, t } from "../i18n.js";
import { go, link } from "../router.js";

const NARROW = "(max-width: 59.99rem)"; // as in style.css: the tree is hidden next to a document
const BELOW = 50; // links to what is below a document
const LOOK_EVERY_MS = 10_000; // for a newer revision of the document that is shown

export default function Documents({ segments, query }) {
  const id = segments[0];
  const tree = useMemo(() => new DocumentTree(), []);
  const [creating, inBin] = ["new", "bin"].map((view) => !id && query.view === view);
  return html`<div class="documents ${id || creating || inBin ? "with-document" : ""}">
    <section class="tree-pane" aria-labelledby="tree-title">
      <h2 id="tree-title">${t("documents.tree")}</h2>
      <div class="toolbar">
        <a class="button primary" href=${link("documents", [], { view: "new", parent: ROOT })}>${t("documents.new")}</a>
        <button onClick=${() => tree.reload()}>${t("documents.reload")}</button>
        <a class="button" href=${link("documents", [], { view: "bin" })}>${t("documents.bin")}</a>
      </div>
      <${TreeView} tree=${tree} selected=${id} />
      <details class="faint"><summary>${t("documents.keys")}</summary><p>${t("documents.keys_text")}</p></details>
    </section>
    <section class="document-pane" aria-label=${t("documents.document")}>
      ${creating && html`<${Creation} key=${query.parent} tree=${tree} parentId=${query.parent || ROOT} />`}
      ${inBin && html`<${Bin} tree=${tree} />`}
      ${id && html`<${DocumentPane} key=${id} tree=${tree} id=${id} query=${query} />`}
      ${
        !creating &&
        !inBin &&
        !id &&
        html`<h1>${t("documents.title")}</h1><p>${t("documents.intro")}</p>
        <${Unsaved} />`
      }
    </section>
  </div>`;
}

// Edits of closed tabs.
function Unsaved() {
  const drafts = useData(() => abandonedDrafts(), []);
  if (!drafts.value?.length) return null;
  return html`<section aria-labelledby="unsaved"><h2 id="unsaved">${t("documents.unsaved")}</h2><ul class="rows">
    ${drafts.value.map((draft) => {
      const address =
        draft.fields.id !== undefined && draft.revision === undefined
          ? link("documents", [], { view: "new", parent: draft.parent_id })
          : link("documents", [draft.document_id], { view: "edit" });
      return html`<li key=${draft.name}><a href=${address}>
        ${visible(draft.fields.title || (draft.revision ? draft.document_id : t("documents.new_title")))}</a>
        <span class="faint"> ${formatTime(new Date(draft.at))}</span>
        <button class="quiet" onClick=${() => {
          discardDraft(draft.name);
          drafts.reload();
        }}>${t("documents.discard")}</button></li>`;
    })}</ul></section>`;
}

// All deleted documents; each is restored with what was deleted together with it.
function Bin({ tree }) {
  const [restoring, setRestoring] = useState(null);
  const pages = usePages(async (cursor, signal) => {
    const page = await call("agent-data/list_deleted", { cursor }, { signal });
    return { items: page.documents, next_cursor: page.next_cursor };
  });
  return html`<nav aria-label=${t("documents.path")} class="crumbs"><ol><li><a href=${link("documents")}>
    ${t("documents.top")}</a></li></ol></nav>
    <h1>${t("documents.bin")}</h1>
    <p class="faint">${t("documents.bin_text")}</p>
    <${PagedList} pages=${pages} label=${t("documents.bin")} empty=${html`<p>${t("documents.bin_empty")}</p>`}
      keyOf=${(each) => each.document_id}>
      ${(
        each,
      ) => html`<div class="entry bin-entry"><div><a href=${link("documents", [each.document_id])}>${titleOf(each)}</a>
          <p class="faint">
            ${formatTime(each.delete_at)} · ${
              each.parent_id === ROOT ? t("documents.top") : visible(each.parent_title || each.parent_id)
            }</p></div>
        <button aria-label=${`${t("documents.restore")} ${titleOf(each)}`} onClick=${() => setRestoring(each)}>
          ${t("documents.restore")}</button></div>`}
    <//>
    ${
      restoring &&
      html`<${RestoreDialog} documentId=${restoring.document_id} title=${titleOf(restoring)}
        onClose=${() => setRestoring(null)} onRestored=${(result) => {
          tree.refresh(result.parent_id);
          pages.reload();
        }} />`
    }`;
}

function Creation({ tree, parentId }) {
  const done = (id) => {
    if (!id) return go(link("documents", parentId === ROOT ? [] : [parentId]));
    tree.update(parentId, { has_children: true });
    if (parentId !== ROOT) tree.expanded.add(parentId);
    tree.refresh(parentId);
    return go(link("documents", [id]));
  };
  return html`${
    parentId !== ROOT &&
    html`<p class="faint">
    ${t("documents.new_below", { parent: titleOf(tree.nodes.get(parentId)) || visible(parentId) })}</p>`
  }
    <${Editor} parentId=${parentId} onDone=${done} />`;
}

function DocumentPane({ tree, id, query }) {
  const document = useData((signal) => call("agent-data/get_document", { document_id: id }, { signal }), [id]);
  const [start, setStart] = useState(null);
  const { value, error } = document;
  const show = (view, more = {}) => go(link("documents", [id], { view, ...more }));
  useEffect(() => {
    let current = true;
    call("agent-data/list_ancestors", { document_id: id }).then(
      ({ ancestors }) =>
        current &&
        tree.reveal(
          ancestors.map((each) => each.document_id),
          id,
        ),
      () => {}, // the document itself tells what is wrong
    );
    return () => {
      current = false;
    };
  }, [id]);
  if (error?.status === 404)
    return html`<${Gone} tree=${tree} id=${id} error=${error} query=${query} onRestored=${document.reload} />`;
  if (!value)
    return html`<h1>${visible(id)}</h1><${ErrorBox} error=${error} onRetry=${document.reload} />
    ${!error && html`<p role="status" aria-busy="true">${t("app.loading")}</p>`}`;
  if (query.view === "edit") {
    const done = (saved) => {
      setStart(null);
      show("");
      if (saved) document.reload();
    };
    return html`<${Editor} key=${start ? `from ${start.revision}` : "edit"} document=${value} start=${start?.fields}
      onDone=${done} />`;
  }
  const edit = (revision) => {
    const { title = "", tags = [] } = revision.metadata;
    setStart({
      revision: revision.revision,
      fields: { title, tags: tags.join(", "), body: revision.content.body, mime_type: revision.content.mime_type },
    });
    show("edit");
  };
  return html`<${Reader} tree=${tree} document=${value} error=${error} query=${query} show=${show} onEdit=${edit}
    reload=${document.reload} />`;
}

function Reader({ tree, document, error, query, show, onEdit, reload }) {
  const [dialog, setDialog] = useState("");
  const { document_id: id, metadata, revision } = document;
  const title = titleOf(document);
  const refresh = () => {
    reload();
    tree.update(id, {});
  };
  useEffect(() => {
    tree.update(id, { metadata, revision });
  }, [id, revision]);
  const tab = (view, text) =>
    html`<button aria-pressed=${String((query.view ?? "") === view)} onClick=${() => show(view)}>${text}</button>`;
  return html`<${Path} id=${id} parentId=${document.parent_id} />
    <h1>${title}</h1>
    <p class="faint">
      ${t("documents.described", { revision, time: formatTime(document.updated_at), kind: document.content.mime_type })}
      ${" "}<span class="code">${id}</span></p>
    ${
      metadata.tags?.length > 0 &&
      html`<p>
      ${metadata.tags.map((tag) => html`<span class="tag">${visible(tag)}</span> `)}</p>`
    }
    ${
      document.delete_at &&
      html`<div class="notice wrong" role="status"><p>
        ${t("documents.will_be_deleted", { time: formatTime(document.delete_at) })}</p>
      <button onClick=${async () => {
        try {
          await call("agent-data/restore_document", { document_id: id });
          tree.refresh(document.parent_id);
          refresh();
        } catch (problem) {
          toast(problem.message, "wrong");
        }
      }}>${t("documents.call_off")}</button></div>`
    }
    <${Newer} id=${id} revision=${revision} onShow=${refresh} />
    <${ErrorBox} error=${error} onRetry=${reload} />
    <div class="toolbar">
      ${tab("", t("documents.read"))}${tab("history", t("documents.history"))}
      <button onClick=${() => show("edit")}>${t("documents.edit")}</button>
      <a class="button" href=${link("documents", [], { view: "new", parent: id })}>${t("documents.new_child")}</a>
      <button onClick=${() => setDialog("move")}>${t("documents.move")}</button>
      <button class="danger" onClick=${() => setDialog("delete")}>${t("documents.delete")}</button>
      <${CopyButton} text=${document.content.body} />
    </div>
    ${
      query.view === "history"
        ? html`<${History} key=${revision} documentId=${id} query=${query} onEdit=${onEdit} />`
        : html`<article class="panel" aria-label=${title}><${Body} content=${document.content} /></article>
        ${matchMedia(NARROW).matches && html`<${Below} tree=${tree} id=${id} />`}`
    }
    ${
      dialog === "move" &&
      html`<${MoveDialog} document=${document} onClose=${() => setDialog("")} onMove=${async (parentId) => {
        if (!tree.nodes.has(id)) tree.nodes.set(id, document);
        await tree.move(id, parentId);
        tree.refresh(parentId);
        toast(t("documents.moved", { title }));
        reload();
      }} />`
    }
    ${
      dialog === "delete" &&
      html`<${DeleteDialog} document=${document} onClose=${() => setDialog("")} onDeleted=${() => {
        tree.refresh(document.parent_id);
        reload();
      }} />`
    }`;
}

// In a narrow window, where the tree is hidden: links to what is below the document.
function Below({ tree, id }) {
  tree.version.value; // render again with each change
  const list = tree.list(id);
  useEffect(() => {
    if (!list.ids.length) tree.load(list);
  }, [list]);
  if (!list.ids.length) return null;
  return html`<section aria-labelledby="below"><h2 id="below">${t("documents.what_is_below")}</h2>
    <ul>${list.ids.slice(0, BELOW).map(
      (each) => html`<li key=${each}><a href=${link("documents", [each])}>
      ${titleOf(tree.nodes.get(each))}</a></li>`,
    )}</ul>
    ${(list.ids.length > BELOW || !list.done) && html`<p><a href=${link("documents")}>${t("documents.tree")}</a></p>`}
      </section>`;
}

function Path({ id, parentId }) {
  const path = useData((signal) => call("agent-data/list_ancestors", { document_id: id }, { signal }), [id, parentId]);
  const ancestors = path.value?.ancestors ?? [];
  return html`<nav aria-label=${t("documents.path")} class="crumbs"><ol>
    <li><a href=${link("documents")}>${t("documents.top")}</a></li>
    ${ancestors.map(
      (each) => html`<li key=${each.document_id}><a href=${link("documents", [each.document_id])}>
      ${titleOf(each)}</a></li>`,
    )}
  </ol></nav>`;
}

// Tell that there is a newer revision than the one that is shown.
function Newer({ id, revision, onShow }) {
  const newest = useData(
    (signal) => call("agent-data/document_history", { document_id: id, newest_first: true, limit: 1 }, { signal }),
    [id, revision],
    { every: LOOK_EVERY_MS },
  );
  const entry = newest.value?.history[0];
  if (!entry || entry.revision <= revision) return null;
  return html`<div class="notice" role="status"><p>
    ${t("documents.newer", { revision: entry.revision, who: visible(entry.by.sub), time: formatTime(entry.at) })}</p>
    <button onClick=${onShow}>${t("documents.show_newer")}</button></div>`;
}

// A document that is deleted, or was never there: its history tells.
function Gone({ tree, id, error, query, onRestored }) {
  const [restoring, setRestoring] = useState(false);
  const history = useData(
    (signal) => call("agent-data/document_history", { document_id: id, newest_first: true, limit: 100 }, { signal }),
    [id],
  );
  if (history.error)
    return html`<h1>${visible(id)}</h1><${ErrorBox} error=${history.error.status === 404 ? error : history.error} />`;
  if (!history.value) return html`<h1>${visible(id)}</h1><p role="status" aria-busy="true">${t("app.loading")}</p>`;
  const deletion = history.value.history.find((each) => each.delete_at);
  const title = titleOf(tree.nodes.get(id)) || visible(id);
  return html`<h1>${title}</h1>
    <div class="notice wrong"><p>${t("documents.is_deleted", { time: deletion ? formatTime(deletion.delete_at) : "" })}
      ${deletion?.reason && ` ${t("documents.reason_given", { reason: visible(deletion.reason) })}`}</p>
      <button class="primary" onClick=${() => setRestoring(true)}>${t("documents.restore")}</button></div>
    <h2>${t("documents.history")}</h2>
    <${History} documentId=${id} gone query=${query} />
    ${
      restoring &&
      html`<${RestoreDialog} documentId=${id} title=${title} onClose=${() => setRestoring(false)} onRestored=${(
        result,
      ) => {
        tree.refresh(result.parent_id);
        go(link("documents", [id]));
        onRestored();
      }} />`
    }`;
}
