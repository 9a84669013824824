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

// Ask before something is done. With `word`, it has to be typed first. `onConfirm` may be asynchronous.
export function ConfirmDialog({ title, text, action, word = "", danger = false, onConfirm, onClose }) {
  const [typed, setTyped] = useState("");
  const {
    busy,
    error,
    run: confirm,
  } = useAction(async () => {
    await onConfirm();
    onClose();
  });
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <form onSubmit=${confirm}>
      <p>${text}</p>
      ${
        word &&
        html`<label>${t("app.type_word", { word: visible(word) })}
        <input required autocomplete="off" spellcheck=${false} value=${typed}
          onInput=${(event) => setTyped(event.target.value)} />
      </label>`
      }
      <${ErrorBox} error=${error} />
      <div class="actions">
        <button type="submit" class=${danger ? "danger" : "primary"} aria-disabled=${busy}
          disabled=${word !== "" && visible(typed) !== visible(word)}>${action}</button>
        <button type="button" onClick=${onClose}>${t("app.cancel")}</button>
      </div>
    </form>
  <//>`;
}
