// The editor of a new or an existing document. What is typed is kept in the browser until it is saved or discarded.
import { useEffect, useRef, useState } from "preact/hooks";
import { call } from "../api.js";
import { CopyButton } from "../components/copy_button.js";
import { Dialog } from "../components/dialog.js";
import { Diff } from "./diff.js";
import { ErrorBox } from "../components/error_box.js";
import { Markdown } from "../components/markdown.js";
import { PlainText } from "../components/plain_text.js";
import { toast } from "../components/toast.js";
import { visible } from "../components/visible_text.js";
import { html } from "../html.js";
import { formatTime, t } from "../i18n.js";
import { LargeText } from "./large_text.js";
import { abandonedDrafts, claimDraft, newDraftId } from "./drafts.js";

const KEEP_AFTER_MS = 300;
const LONGEST_ID = 128;
const LARGE = 200_000; // characters from which a text is edited in parts
const COMPARED = ["body", "title", "tags", "mime_type"];
const MIME_TYPES = ["text/markdown", "text/plain", "application/json"];

// `document` is the one to edit; without it, a new one below `parentId`. `start` has fields that replace those of
// the document. `onDone(id)` is called with the saved document's id, or with none after discarding.
export function Editor({ document, parentId, start, onDone }) {
  const [base, setBase] = useState({ fields: fieldsOf(document), metadata: document?.metadata ?? {} });
  const [fields, setFields] = useState({ ...base.fields, ...start });
  const [revision, setRevision] = useState(document?.revision);
  const [restored, setRestored] = useState(null);
  const [unplaced, setUnplaced] = useState(null); // a draft whose base could not be read
  const [kept, setKept] = useState(true);
  const [preview, setPreview] = useState(false);
  const [error, setError] = useState(null);
  const [conflict, setConflict] = useState(null);
  const [saving, setSaving] = useState(false);
  const [ready, setReady] = useState(false);
  const draft = useRef(null);
  const state = useRef({ timer: 0, dirty: false, requestId: "" });
  const documentId = document?.document_id ?? `new below ${parentId}`;
  const inParts = useRef(null); // known once a draft is restored, and the same while the reader types
  const current = useRef();
  current.current = { document_id: documentId, parent_id: parentId, revision, fields };

  const keep = () => {
    clearTimeout(state.current.timer);
    if (state.current.dirty && draft.current) setKept(draft.current.save(current.current));
    state.current.dirty = false;
  };
  const closed = useRef(false);
  const restore = async () => {
    setError(null);
    try {
      const [abandoned] = start ? [] : await abandonedDrafts(documentId);
      setUnplaced(abandoned ?? null);
      // The text that the draft began with tells later what others have changed.
      const isOld = abandoned && document && abandoned.revision !== document.revision;
      const before = isOld ? await revisionOf(abandoned.revision) : null;
      if (closed.current) return;
      draft.current = claimDraft(abandoned?.name);
      if (before) {
        setBase(baseOf(before));
        setRevision(before.revision);
      }
      if (abandoned) {
        setFields(abandoned.fields);
        setRestored(abandoned.at);
      }
      setReady(true);
    } catch (problem) {
      setError(problem);
    }
  };
  useEffect(() => {
    restore();
    addEventListener("pagehide", keep);
    globalThis.document.addEventListener("visibilitychange", keep);
    return () => {
      closed.current = true;
      keep();
      draft.current?.release();
      removeEventListener("pagehide", keep);
      globalThis.document.removeEventListener("visibilitychange", keep);
    };
  }, []);
  useEffect(() => {
    if (start) touch();
  }, []);

  const touch = () => {
    state.current.dirty = true;
    state.current.requestId = "";
    clearTimeout(state.current.timer);
    state.current.timer = setTimeout(keep, KEEP_AFTER_MS);
  };
  const set = (name, value) => {
    setFields((old) => ({ ...old, [name]: value }));
    touch();
  };
  const change = (name) => (event) => set(name, event.target.value);
  const finish = (id) => {
    clearTimeout(state.current.timer);
    state.current.dirty = false;
    draft.current?.discard();
    onDone(id);
  };

  // Save at a revision. Nothing can be typed until the outcome is known: the draft is discarded with what was saved.
  // A conflict that changed no text, such as a move, is none for the reader.
  const save = async (at = revision, against = base) => {
    setSaving(true);
    setError(null);
    // A save that is sent again because its answer was lost happens once.
    state.current.requestId ||= newDraftId();
    try {
      const id = await send(at, against);
      toast(t("documents.saved"));
      finish(id);
    } catch (problem) {
      if (problem.code === "CONFLICT" && problem.details?.current_revision) return resolve(problem, against);
      fail(problem);
    }
    return undefined;
  };
  const fail = (problem) => {
    setSaving(false);
    setError(problem);
  };
  const send = async (at, against) => {
    const requestId = state.current.requestId;
    if (!document) {
      const id = fields.id.trim() || suggestedId(fields.title);
      if (!fields.id.trim()) setFields((old) => ({ ...old, id }));
      const content = { mime_type: fields.mime_type, body: fields.body };
      await call("agent-data/create_document", {
        document_id: id,
        parent_id: parentId,
        content,
        metadata: metadataOf({}, fields),
        request_id: requestId,
      });
      return id;
    }
    const patch = {};
    const changed = (...names) => names.some((name) => fields[name] !== against.fields[name]);
    if (changed("body", "mime_type")) patch.content = { mime_type: fields.mime_type, body: fields.body };
    if (changed("title", "tags")) patch.metadata = metadataOf(against.metadata, fields);
    if (!Object.keys(patch).length) return document.document_id;
    await call("agent-data/update_document", {
      document_id: document.document_id,
      patch,
      last_known_revision: at,
      request_id: `${requestId}-${at}`,
    });
    return document.document_id;
  };
  const revisionOf = (wanted) =>
    call("agent-data/get_document", { document_id: document.document_id, revision: wanted });
  const resolve = async (problem, against) => {
    try {
      const theirs = await revisionOf();
      if (COMPARED.every((name) => fieldsOf(theirs)[name] === against.fields[name])) {
        await save(theirs.revision, baseOf(theirs));
      } else {
        setSaving(false);
        setConflict(theirs);
      }
    } catch (other) {
      fail(other.status === 404 ? problem : other);
    }
  };
  const keys = (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "s") {
      event.preventDefault();
      if (!saving) save();
    }
  };

  if (!ready)
    return error
      ? html`<${Unplaced} draft=${unplaced} error=${error} onRetry=${restore} />`
      : html`<p role="status" aria-busy="true">${t("app.loading")}</p>`;
  inParts.current ??= fields.body.length > LARGE;
  return html`<form class="editor" onKeyDown=${keys} onSubmit=${(event) => {
    event.preventDefault();
    save();
  }}>
    <h1>
      ${
        document
          ? t("documents.edit_title", { title: visible(base.fields.title || document.document_id) })
          : t("documents.new_title")
      }</h1>
    ${
      restored &&
      html`<p class="notice" role="status">
      ${t("documents.restored", { time: formatTime(new Date(restored)) })}</p>`
    }
    ${!kept && html`<p class="notice wrong" role="alert">${t("documents.not_kept")}</p>`}
    <${ErrorBox} error=${error} />
    <div class="editor-fields">
      <label>${t("documents.title_field")}
        <input readonly=${saving} value=${fields.title} onInput=${change("title")} /></label>
      <label>${t("documents.tags_field")}
        <input readonly=${saving} value=${fields.tags} placeholder=${t("documents.tags_example")}
          onInput=${change("tags")} /></label>
      ${
        !document &&
        html`<label>${t("documents.id_field")}
        <input readonly=${saving} value=${fields.id} maxlength=${LONGEST_ID} pattern="[A-Za-z0-9._:\\-]+"
          title=${t("documents.id_rule")} spellcheck=${false}
          placeholder=${fields.title ? suggestedId(fields.title, "") : ""} onInput=${change("id")} /></label>`
      }
      <label>${t("documents.kind_field")}
        <select disabled=${saving} value=${fields.mime_type} onChange=${change("mime_type")}>
          ${MIME_TYPES.map((each) => html`<option>${each}</option>`)}</select></label>
    </div>
    <div class="toolbar">
      <button type="button" aria-pressed=${String(!preview)} onClick=${() => setPreview(false)}>${t("documents.write")}
        </button>
      <button type="button" aria-pressed=${String(preview)} onClick=${() => setPreview(true)}>${t("documents.preview")}
        </button>
    </div>
    ${
      preview
        ? html`<div class="panel"><${Body} content=${{ mime_type: fields.mime_type, body: fields.body }} /></div>`
        : inParts.current
          ? html`<${LargeText} value=${fields.body} label=${t("documents.text_field")} readonly=${saving}
            onInput=${(text) => set("body", text)} />`
          : html`<textarea class="code" rows="20" aria-label=${t("documents.text_field")} spellcheck=${false}
            readonly=${saving} value=${fields.body} onInput=${change("body")}></textarea>`
    }
    <div class="actions">
      <button type="submit" class="primary" disabled=${saving}>${t("documents.save")}</button>
      <button type="button" disabled=${saving} onClick=${() => finish()}>${t("documents.discard")}</button>
      <span class="faint">${t("documents.kept_hint")}</span>
    </div>
    ${
      conflict &&
      html`<${Conflict} theirs=${conflict} mine=${fields} onClose=${() => setConflict(null)}
      onKeepMine=${() => {
        setConflict(null);
        save(conflict.revision, baseOf(conflict));
      }}
      onContinue=${() => {
        setRevision(conflict.revision);
        setBase(baseOf(conflict));
        setConflict(null);
        touch();
      }}
      onTakeTheirs=${() => finish(document.document_id)} />`
    }
  </form>`;
}

// A draft that cannot be edited yet: what was typed can be read and copied.
function Unplaced({ draft, error, onRetry }) {
  return html`<${ErrorBox} error=${error} onRetry=${onRetry} />
    ${
      draft &&
      html`<section aria-labelledby="unplaced"><h2 id="unplaced">${t("documents.unplaced")}</h2>
      <p>${visible(draft.fields.title)}</p><${PlainText} text=${visible(draft.fields.body)}
        label=${t("documents.unplaced")} />
      <div class="actions"><${CopyButton} text=${draft.fields.body} /></div></section>`
    }`;
}

// Another save came first: show how both texts differ, and let the reader decide.
function Conflict({ theirs, mine, onKeepMine, onContinue, onTakeTheirs, onClose }) {
  const fields = fieldsOf(theirs);
  const others = COMPARED.slice(1).filter((name) => fields[name] !== mine[name]);
  return html`<${Dialog} wide title=${t("documents.conflict")} onClose=${onClose}>
    <p>${t("documents.conflict_text", { revision: theirs.revision, time: formatTime(theirs.updated_at) })}</p>
    ${
      others.length > 0 &&
      html`<ul>${others.map(
        (name) => html`<li><strong>${t(`documents.field_names.${name}`)}:</strong>
      <del>${visible(fields[name]) || "–"}</del> → <ins>${visible(mine[name]) || "–"}</ins></li>`,
      )}</ul>`
    }
    <p class="faint">${t("documents.conflict_legend")}</p>
    <${Diff} before=${fields.body} after=${mine.body} label=${t("documents.differences")} />
    <div class="actions">
      <button class="primary" onClick=${onContinue}>${t("documents.continue_editing")}</button>
      <button class="danger" onClick=${onKeepMine}>${t("documents.save_mine")}</button>
      <button onClick=${onTakeTheirs}>${t("documents.take_theirs")}</button>
    </div>
  <//>`;
}

// A document's text as its kind is shown.
export function Body({ content }) {
  const { mime_type: kind, body } = content;
  if (!body) return html`<p class="faint">${t("documents.no_text")}</p>`;
  const text = visible(body);
  return kind === "text/markdown" ? html`<${Markdown} text=${text} />` : html`<${PlainText} text=${text} />`;
}

function baseOf(document) {
  return { fields: fieldsOf(document), metadata: document.metadata };
}

function fieldsOf(document) {
  const { title = "", tags = [] } = document?.metadata ?? {};
  const { body = "", mime_type: kind = MIME_TYPES[0] } = document?.content ?? {};
  return { id: "", title, tags: tags.join(", "), body, mime_type: kind };
}

// Return the metadata with the edited title and tags; fields of other programs stay.
function metadataOf(metadata, { title, tags }) {
  const { title: _, tags: __, ...others } = metadata;
  const list = tags
    .split(",")
    .map((each) => each.trim())
    .filter(Boolean);
  return { ...(title && { title }), ...(list.length && { tags: list }), ...others };
}

// Return an id made of a title; `end` makes it unlikely to be taken.
function suggestedId(title, end = `-${newDraftId().slice(0, 6)}`) {
  const words = title.normalize("NFD").replace(/\p{M}/gu, "").replaceAll(/[đĐ]/g, "d").toLowerCase();
  const slug = words
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, 60);
  return `${slug || "doc"}${end}`;
}
