// The editor of a new or an existing document. What is typed is kept in the browser until it is saved or discarded.
import { useRef, useState } from "preact/hooks";
import { CopyButton } from "../components/copy_button.js";
import { ErrorBox } from "../components/error_box.js";
import { Markdown } from "../components/markdown.js";
import { PlainText } from "../components/plain_text.js";
import { visible } from "../components/visible_text.js";
import { html } from "../html.js";
import { formatTime, t } from "../i18n.js";
import { Conflict } from "./conflict.js";
import { useEditor } from "./editor_state.js";
import { baseOf, MIME_TYPES, suggestedId } from "./fields.js";
import { LargeText } from "./large_text.js";

const LONGEST_ID = 128;
const LARGE = 200_000; // characters from which a text is edited in parts

// `document` is the one to edit; without it, a new one below `parentId`. `start` has fields that replace those of
// the document. `onDone(id)` is called with the saved document's id, or with none after discarding.
export function Editor({ document, parentId, start, onDone }) {
  const editor = useEditor({ document, parentId, start, onDone });
  const { base, fields, restored, saving, set } = editor;
  const keys = (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "s") {
      event.preventDefault();
      if (!saving.isBusy) saving.save();
    }
  };
  const submit = (event) => {
    event.preventDefault();
    saving.save();
  };
  if (restored.error) {
    return html`<${Unplaced} draft=${restored.unplaced} error=${restored.error} onRetry=${restored.restore} />`;
  }
  if (!restored.ready) return html`<p role="status" aria-busy="true">${t("app.loading")}</p>`;
  const title = document
    ? t("documents.edit_title", { title: visible(base.fields.title || document.document_id) })
    : t("documents.new_title");
  return html`<form class="editor" onKeyDown=${keys} onSubmit=${submit}>
    <h1>${title}</h1>
    ${
      restored.at &&
      html`<p class="notice" role="status">
        ${t("documents.restored", { time: formatTime(new Date(restored.at)) })}</p>`
    }
    ${!editor.isKept && html`<p class="notice wrong" role="alert">${t("documents.not_kept")}</p>`}
    <${ErrorBox} error=${saving.error} />
    <${Fields} fields=${fields} isNew=${!document} readonly=${saving.isBusy} set=${set} />
    <${Text} fields=${fields} readonly=${saving.isBusy} onInput=${(text) => set("body", text)} />
    <div class="actions">
      <button type="submit" class="primary" disabled=${saving.isBusy}>${t("documents.save")}</button>
      <button type="button" disabled=${saving.isBusy} onClick=${() => editor.finish()}>${t("documents.discard")}
        </button>
      <span class="faint">${t("documents.kept_hint")}</span>
    </div>
    ${saving.conflict && html`<${Resolution} document=${document} editor=${editor} />`}
  </form>`;
}

function Fields({ fields, isNew, readonly, set }) {
  const change = (name) => (event) => set(name, event.target.value);
  return html`<div class="editor-fields">
      <label>${t("documents.title_field")}
        <input readonly=${readonly} value=${fields.title} onInput=${change("title")} /></label>
      <label>${t("documents.tags_field")}
        <input readonly=${readonly} value=${fields.tags} placeholder=${t("documents.tags_example")}
          onInput=${change("tags")} /></label>
      ${
        isNew &&
        html`<label>${t("documents.id_field")}
        <input readonly=${readonly} value=${fields.id} maxlength=${LONGEST_ID}
          pattern="[A-Za-z0-9._:\\-]+" title=${t("documents.id_rule")} spellcheck=${false}
          placeholder=${fields.title ? suggestedId(fields.title, "") : ""} onInput=${change("id")} /></label>`
      }
      <label>${t("documents.kind_field")}
        <select disabled=${readonly} value=${fields.mime_type} onChange=${change("mime_type")}>
          ${MIME_TYPES.map((each) => html`<option>${each}</option>`)}</select></label>
    </div>`;
}

// The text, to be written or as it will be shown. A large one is edited in parts, and so it stays while it is edited.
function Text({ fields, readonly, onInput }) {
  const [preview, setPreview] = useState(false);
  const inParts = useRef(fields.body.length > LARGE);
  const label = t("documents.text_field");
  const field = inParts.current
    ? html`<${LargeText} value=${fields.body} label=${label} readonly=${readonly} onInput=${onInput} />`
    : html`<textarea class="code" rows="20" aria-label=${label} spellcheck=${false} readonly=${readonly}
          value=${fields.body} onInput=${(event) => onInput(event.target.value)}></textarea>`;
  return html`<div class="toolbar">
      <button type="button" aria-pressed=${String(!preview)}
        onClick=${() => setPreview(false)}>${t("documents.write")}</button>
      <button type="button" aria-pressed=${String(preview)}
        onClick=${() => setPreview(true)}>${t("documents.preview")}</button>
    </div>
    ${preview ? html`<div class="panel"><${Body} content=${fields} /></div>` : field}`;
}

// The choices of the reader in a conflict.
function Resolution({ document, editor }) {
  const { fields, saving, startFrom, touch, finish } = editor;
  const { conflict: theirs, closeConflict } = saving;
  const keepMine = () => {
    closeConflict();
    saving.save(theirs.revision, baseOf(theirs));
  };
  const continueEditing = () => {
    startFrom(theirs);
    closeConflict();
    touch();
  };
  return html`<${Conflict} theirs=${theirs} mine=${fields} onClose=${closeConflict} onKeepMine=${keepMine}
    onContinue=${continueEditing} onTakeTheirs=${() => finish(document.document_id)} />`;
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

// A document's text as its kind is shown.
export function Body({ content }) {
  const { mime_type: kind, body } = content;
  if (!body) return html`<p class="faint">${t("documents.no_text")}</p>`;
  const text = visible(body);
  return kind === "text/markdown" ? html`<${Markdown} text=${text} />` : html`<${PlainText} text=${text} />`;
}
