// Try it: every method with a form of its parameters, the request as curl, and a pad for JSON-RPC.
import { useEffect, useMemo, useState } from "preact/hooks";
import { get, send } from "../api.js";
import { session } from "../auth.js";
import { useAction } from "../components/action.js";
import { Snippet } from "../components/copy_button.js";
import { useData } from "../components/data.js";
import { ErrorBox } from "../components/error_box.js";
import { initialValue, SchemaForm } from "../components/schema_form.js";
import { html } from "../html.js";
import { formatNumber, t } from "../i18n.js";
import { link } from "../router.js";
import { read, write } from "../storage.js";

const PAD = "jsonrpc";
const PAD_DRAFT = "draft.jsonrpc";
const OTHER_SUBJECTS = new Set(["mcp", "oauth"]); // addresses below these are endpoints
const FIRST_REQUEST = { jsonrpc: "2.0", method: "memory-server/memory/get_or_create", params: {}, id: 1 };

export default function TryIt({ segments }) {
  const document = useData((signal) => get("/openapi.json", { signal }));
  const methods = useMemo(() => methodsOf(document.value), [document.value]);
  const name = segments.join("/");
  const method = methods.find((each) => each.name === name);
  return html`<h1>${t("try_it.title")}</h1>
    <p>${t("try_it.intro")}</p>
    <${ErrorBox} error=${document.error} onRetry=${document.reload} />
    <div class="split narrow-first">
      <${Methods} methods=${methods} current=${name} />
      <div>
        ${name === PAD && html`<${Pad} />`}
        ${method && html`<${Method} key=${name} method=${method} />`}
        ${!name && html`<div class="empty"><p>${t("try_it.choose")}</p></div>`}
        ${
          name &&
          name !== PAD &&
          !method &&
          document.value &&
          html`<div class="empty"><p>
          ${t("try_it.unknown", { name })}</p></div>`
        }
      </div>
    </div>`;
}

// Return the methods of the OpenAPI document: those whose address is /{server}/{method}.
function methodsOf(document) {
  return Object.entries(document?.paths ?? {})
    .filter(([path, { post }]) => post && !OTHER_SUBJECTS.has(post.tags[0]) && path.startsWith(`/${post.tags[0]}/`))
    .map(([path, { post }]) => ({
      name: path.slice(1),
      server: post.tags[0],
      summary: post.summary,
      schema: post.requestBody.content["application/json"].schema,
    }));
}

function Methods({ methods, current }) {
  const [filter, setFilter] = useState("");
  const words = filter.toLowerCase().split(/\s+/);
  const shown = methods.filter((each) =>
    words.every((word) => `${each.name} ${each.summary}`.toLowerCase().includes(word)),
  );
  const servers = [...new Set(shown.map((each) => each.server))];
  // In a narrow window the list makes room for the chosen method.
  const open = !current || matchMedia("(min-width: 75rem)").matches;
  return html`<nav class="panel methods" aria-label=${t("try_it.methods")}><details open=${open}><summary>
    ${t("try_it.methods")}</summary>
    <label>${t("try_it.filter")}
      <input type="search" value=${filter} onInput=${(event) => setFilter(event.target.value)} /></label>
    <p class="faint" role="status">${t("try_it.count", { count: shown.length })}</p>
    <p><a href=${link("try_it", [PAD])} aria-current=${current === PAD ? "page" : undefined}>${t("try_it.pad")}</a></p>
    ${servers.map(
      (server) => html`<section key=${server}><h2>${server}</h2><ul class="plain">
      ${shown
        .filter((each) => each.server === server)
        .map(
          ({ name }) => html`<li key=${name}><a
        href=${link("try_it", name.split("/"))} aria-current=${current === name ? "page" : undefined}>
          ${name.slice(server.length + 1)}</a></li>`,
        )}
    </ul></section>`,
    )}
  </details></nav>`;
}

function Method({ method }) {
  const draft = `params.${method.name}`;
  const [params, setParams] = useState(
    () => read(draft) ?? initialValue({ ...method.schema, properties: requiredOf(method.schema) }),
  );
  const [answer, setAnswer] = useState(null);
  const change = (changed) => {
    setParams(changed);
    write(draft, changed);
  };
  const request = async () => {
    const response = await send("POST", `/${method.name}`, { body: JSON.stringify(params) });
    if (response.ok && JSON.stringify(read(draft)) === JSON.stringify(params)) write(draft, undefined);
    return response;
  };
  const problems = answer?.problems ?? [];
  return html`<section class="panel" aria-labelledby="method">
    <h2 id="method"><code>${method.name}</code></h2>
    <p>${method.summary}</p>
    <${Runner} request=${request} onAnswer=${setAnswer} answer=${answer}>
      <${SchemaForm} schema=${method.schema} value=${params} onChange=${change} problems=${problems} />
    <//>
    <h3>${t("try_it.as_curl")}</h3>
    <${Snippet} text=${curl(`/${method.name}`, params)} name=${t("try_it.as_curl")} />
  </section>`;
}

// Defaults are shown by the documentation; only those of required parameters are sent.
function requiredOf(schema) {
  return Object.fromEntries(
    Object.entries(schema.properties ?? {}).filter(([name]) => schema.required?.includes(name)),
  );
}

function Pad() {
  const [text, setText] = useState(() => read(PAD_DRAFT) ?? JSON.stringify(FIRST_REQUEST, null, 2));
  const [answer, setAnswer] = useState(null);
  useEffect(() => {
    write(PAD_DRAFT, text);
  }, [text]);
  const request = () => send("POST", "/jsonrpc", { body: text });
  return html`<section class="panel" aria-labelledby="pad">
    <h2 id="pad">${t("try_it.pad")}</h2>
    <p>${t("try_it.pad_text")}</p>
    <${Runner} request=${request} onAnswer=${setAnswer} answer=${answer}>
      <label>${t("try_it.request")}
        <textarea class="code" rows="10" spellcheck=${false} value=${text}
          onInput=${(event) => setText(event.target.value)}></textarea>
      </label>
    <//>
  </section>`;
}

// A form that sends a request and shows the response: status, time, size and body.
function Runner({ request, answer, onAnswer, children }) {
  const { busy, error, run } = useAction(async () => {
    onAnswer(null);
    const started = performance.now();
    const response = await request();
    const text = await response.text();
    onAnswer({
      status: response.status,
      text: indented(text),
      size: text.length,
      ms: performance.now() - started,
      problems: problemsIn(text),
    });
  });
  return html`<form onSubmit=${run}>
      ${children}
      <div class="actions"><button class="primary" type="submit" aria-disabled=${busy}>
        ${busy ? t("try_it.running") : t("try_it.send")}</button></div>
    </form>
    <${ErrorBox} error=${error} />
    <div aria-live="polite">${
      answer &&
      html`<h3>${t("try_it.answer")}</h3>
      <p><span class="state ${answer.status < 400 ? "good" : "wrong"}">${answer.status}</span> <span class="faint">
        ${t("try_it.took", { ms: formatNumber(answer.ms, { maximumFractionDigits: 0 }), count: answer.size })}</span>
          </p>
      <${Snippet} text=${answer.text} name=${t("try_it.answer")} />`
    }</div>`;
}

function indented(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function problemsIn(text) {
  try {
    const { error } = JSON.parse(text);
    const details = error?.validation_errors ?? error?.details;
    return Array.isArray(details) ? details : [];
  } catch {
    return [];
  }
}

// The command for a terminal. The token stays out of it: a key of the environment stands for it.
function curl(path, params) {
  const body = JSON.stringify(params).replaceAll("'", "'\\''");
  const key = session.value.kind === "none" ? "" : ` \\\n  -H "Authorization: Bearer $KHO_KEY"`;
  return `curl -X POST '${location.origin}${path}'${key} \\\n  -H 'Content-Type: application/json' \\\n  -d '${body}'`;
}
