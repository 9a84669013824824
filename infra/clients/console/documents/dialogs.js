// Dialogs that delete, restore and move a document.
import { useState } from "preact/hooks";
import { call } from "../api.js";
import { useData } from "../components/data.js";
import { ActionDialog } from "../components/dialog.js";
import { PagedList, usePages } from "../components/paged_list.js";
import { toast } from "../components/toast.js";
import { html } from "../html.js";
import { formatTime, t } from "../i18n.js";
import { ROOT, titleOf } from "./tree.js";

export function DeleteDialog({ document, onClose, onDeleted }) {
  const [when, setWhen] = useState("now");
  const [at, setAt] = useState(() => localTime(new Date(Date.now() + 86_400_000)));
  const [reason, setReason] = useState("");
  const [recursive, setRecursive] = useState(false);
  const act = async () => {
    const result = await call("agent-data/delete_document", {
      document_id: document.document_id,
      recursive,
      ...(reason && { reason }),
      ...(when === "later" && { delete_at: new Date(at).toISOString() }),
    });
    toast(
      result.deleted ? t("documents.deleted") : t("documents.will_be_deleted", { time: formatTime(result.delete_at) }),
    );
    onDeleted(result);
  };
  const choice = (value) =>
    html`<label><input type="radio" name="when" checked=${when === value}
      onChange=${() => setWhen(value)} /> ${t(`documents.delete_${value}`)}</label>`;
  return html`<${ActionDialog} title=${t("documents.delete_title", { title: titleOf(document) })}
    action=${t("documents.delete")} kind="danger" act=${act} onClose=${onClose}>
    <p>${t("documents.delete_text")}</p>
    <fieldset><legend>${t("documents.delete_when")}</legend>${choice("now")}${choice("later")}
      ${
        when === "later" &&
        html`<label>${t("documents.delete_at")} <input type="datetime-local" required value=${at}
        onInput=${(event) => setAt(event.target.value)} /></label>`
      }
    </fieldset>
    <label><input type="checkbox" checked=${recursive}
      onChange=${(event) => setRecursive(event.target.checked)} /> ${t("documents.recursive")}</label>
    <label>${t("documents.reason")} <input maxlength="2048" value=${reason}
      onInput=${(event) => setReason(event.target.value)} /></label>
  <//>`;
}

export function RestoreDialog({ documentId, title, onClose, onRestored }) {
  const [recursive, setRecursive] = useState(true);
  const below = useData(
    (signal) => call("agent-data/list_children", { parent_id: documentId, deleted: true, limit: 1 }, { signal }),
    [documentId],
  );
  const act = async () => {
    const result = await call("agent-data/restore_document", { document_id: documentId, recursive });
    toast(t("documents.restored_document", { title }));
    onRestored(result);
  };
  return html`<${ActionDialog} title=${t("documents.restore_title", { title })} action=${t("documents.restore")}
    act=${act} onClose=${onClose}>
    ${
      below.value?.children.length > 0 &&
      html`<label>
      <input type="checkbox" checked=${recursive}
        onChange=${(event) => setRecursive(event.target.checked)} /> ${t("documents.restore_recursive")}</label>`
    }
  <//>`;
}

// Choose a new parent by walking down the tree. `onMove(parentId)` moves.
export function MoveDialog({ document, onClose, onMove }) {
  const [path, setPath] = useState([{ document_id: ROOT, title: t("documents.top") }]);
  const parent = path.at(-1);
  const pages = usePages(
    async (cursor, signal) => {
      const page = await call(
        "agent-data/list_children",
        { parent_id: parent.document_id, has_children: true, cursor },
        { signal },
      );
      return {
        items: page.children.filter((each) => each.document_id !== document.document_id),
        next_cursor: page.next_cursor,
      };
    },
    [parent.document_id],
  );
  return html`<${ActionDialog} title=${t("documents.move_title", { title: titleOf(document) })}
    act=${() => onMove(parent.document_id)} onClose=${onClose}
    action=${t("documents.move_here", { parent: titleOf(parent) })}>
    <nav aria-label=${t("documents.path")} class="crumbs"><ol>${path.map(
      (each, index) => html`<li key=${each.document_id}>
      <button type="button" class="quiet" aria-current=${index === path.length - 1 ? "true" : undefined}
        onClick=${() => setPath(path.slice(0, index + 1))}>${titleOf(each)}</button></li>`,
    )}</ol></nav>
    <div class="choices"><${PagedList} pages=${pages} label=${t("documents.below", { parent: titleOf(parent) })}
      empty=${t("documents.nothing_below")} keyOf=${(each) => each.document_id}>
      ${(each) => html`<button type="button" class="quiet" onClick=${() => setPath([...path, each])}>${titleOf(each)}
        </button>`}
    <//></div>
  <//>`;
}

// Return a time as a field for local time takes it.
function localTime(time) {
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
