// The answer of a device's tool: texts as text, images of formats that run no code, and the time that it took.
import { html } from "../html.js";
import { t } from "../i18n.js";
import { asText, visible } from "./visible_text.js";

const IMAGES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const BASE64 = /^[A-Za-z0-9+/\s]+={0,2}\s*$/;

// `sent` are the arguments of the call.
export function ToolResult({ result, milliseconds, sent = {} }) {
  const failed = result.isError === true;
  return html`<div class="result"><p class="state ${failed ? "wrong" : "good"}">
    ${t(failed ? "devices.failed" : "devices.done")}
      ${" "}<span class="faint">${milliseconds} ms</span></p>
    ${Object.keys(sent).length > 0 && html`<p class="faint">${t("devices.sent", { values: argumentsText(sent) })}</p>`}
    ${(result.content ?? []).map((each, index) => html`<${Content} key=${index} content=${each} />`)}</div>`;
}

function argumentsText(sent) {
  return Object.entries(sent)
    .map(([name, value]) => `${visible(name)} = ${asText(JSON.stringify(value))}`)
    .join(", ");
}

function Content({ content }) {
  if (content?.type === "image" && IMAGES.includes(content.mimeType) && BASE64.test(content.data ?? "")) {
    return html`<img class="photo" src="data:${content.mimeType};base64,${content.data}" alt=${t("devices.image")} />`;
  }
  if (content?.type === "text") return html`<pre class="plain-text" tabindex="0">${pretty(content.text)}</pre>`;
  return html`<p class="faint">${t("devices.other_content", { type: asText(content?.mimeType ?? content?.type ?? "") })}
    </p>`;
}

function pretty(text) {
  try {
    const value = JSON.parse(text);
    return asText(typeof value === "object" && value !== null ? value : text);
  } catch {
    return asText(text);
  }
}
