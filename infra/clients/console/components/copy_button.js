// A button that copies a text.
import { useState } from "preact/hooks";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { toast } from "./toast.js";

export function CopyButton({ text, label }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setCopied(true);
      toast(t("app.copied"));
      setTimeout(() => setCopied(false), 2000);
    } catch {
      toast(t("app.copy_failed"), "wrong");
    }
  };
  return html`<button class="copy" onClick=${copy}>${copied ? t("app.copied_short") : (label ?? t("app.copy"))}
    </button>`;
}

// Text in a box with a button that copies it; the button is named by `name`.
export function Snippet({ text, name }) {
  return html`<figure class="snippet">
    <pre tabindex="0" aria-label=${name}><code>${text}</code></pre>
    <${CopyButton} text=${text} />
  </figure>`;
}
