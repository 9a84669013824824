// A modal dialog. The browser keeps the focus in it, closes it by Escape, and gives the focus back.
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { useAction } from "./action.js";
import { ErrorBox } from "./error_box.js";
import { visible } from "./visible_text.js";

export function Dialog({ title, onClose, children, wide = false }) {
  const dialog = useRef(null);
  const id = useId();
  useEffect(() => {
    const returnTo = /** @type {HTMLElement} */ (document.activeElement);
    const element = dialog.current;
    element.showModal();
    return () => {
      element.close();
      const isThere = returnTo?.isConnected && returnTo !== document.body;
      (isThere ? returnTo : document.getElementById("main")).focus();
    };
  }, []);
  return html`<dialog ref=${dialog} class=${wide ? "wide" : ""} aria-labelledby=${id}
    onCancel=${(event) => {
      event.preventDefault();
      onClose();
    }}>
    <header><h2 id=${id}>${title}</h2>
      <button type="button" class="quiet" aria-label=${t("app.close")} onClick=${onClose}>×</button></header>
    ${children}
  </dialog>`;
}

// A form that does something: `children`, the error of `act`, and the button that does it. `kind` is the button's.
export function ActionForm({ action, kind = "", disabled = false, act, onCancel, children }) {
  const { busy, error, run } = useAction(act);
  return html`<form class="fields" onSubmit=${run}>
    ${children}
    <${ErrorBox} error=${error} />
    <div class="actions">
      <button type="submit" class=${kind} aria-disabled=${busy} disabled=${disabled}>${action}</button>
      ${onCancel && html`<button type="button" onClick=${onCancel}>${t("app.cancel")}</button>`}
    </div>
  </form>`;
}

// A form in a dialog, which closes when `act` is done.
export function ActionDialog({ title, onClose, act, kind = "primary", ...form }) {
  const run = async () => {
    await act();
    onClose();
  };
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <${ActionForm} ...${form} kind=${kind} act=${run} onCancel=${onClose} />
  <//>`;
}

// Ask before something is done. With `word`, it has to be typed first. `onConfirm` may be asynchronous.
export function ConfirmDialog({ title, text, action, word = "", onConfirm, onClose }) {
  const [typed, setTyped] = useState("");
  return html`<${ActionDialog} title=${title} action=${action} kind="danger" act=${onConfirm} onClose=${onClose}
    disabled=${word !== "" && visible(typed) !== visible(word)}>
    <p>${text}</p>
    ${
      word &&
      html`<label>${t("app.type_word", { word: visible(word) })}
        <input required autocomplete="off" spellcheck=${false} value=${typed}
          onInput=${(event) => setTyped(event.target.value)} />
      </label>`
    }
  <//>`;
}

// A button of something that is asked for before it is done. `label` names it where `action` says too little.
export function ConfirmButton({ action, label, title = action, text, word, onConfirm }) {
  const [asking, setAsking] = useState(false);
  const ask = () => setAsking(true);
  return html`<button type="button" class="danger" aria-label=${label} onClick=${ask}>${action}</button>
    ${
      asking &&
      html`<${ConfirmDialog} title=${title} text=${text} word=${word} action=${action} onConfirm=${onConfirm}
        onClose=${() => setAsking(false)} />`
    }`;
}
