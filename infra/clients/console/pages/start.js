// Start: the servers, how much there is, the checks of the installation, and a sample to begin with.
import { useState } from "preact/hooks";
import { call, get } from "../api.js";
import { isOneMachine } from "../auth.js";
import { useAction } from "../components/action.js";
import { useData } from "../components/data.js";
import { ErrorBox } from "../components/error_box.js";
import { html } from "../html.js";
import { formatNumber, t } from "../i18n.js";
import { link } from "../router.js";
import { SAMPLE, STEPS } from "../sample.js";

const MOST = 1000; // a page of a list: what is counted, before "and more"

// A call of each server, which tells whether it answers. Most count what a page shows, in the list of this name.
// Reading experiences counts as their use, so recall-kit is not called.
const CALLS = [
  {
    method: "agent-data/list_children",
    params: { parent_id: "root", limit: MOST },
    page: "documents",
    list: "children",
  },
  {
    method: "memory-server/memory/list_conversations",
    params: { limit: MOST },
    page: "conversations",
    list: "conversations",
  },
  {
    method: "research-agent/manage_collections",
    params: { action: "list", limit: MOST },
    page: "knowledge",
    list: "collections",
  },
  { method: "device-server/devices/list", params: { limit: MOST }, page: "devices", list: "devices" },
  { method: "tool-server/system/caller", params: {} },
];

export default function Start() {
  const health = useData((signal) => get("/health", { signal }), [], { every: 15_000 });
  const calls = useData((signal) => Promise.all(CALLS.map((each) => outcomeOf(each, signal))));
  const outcomes = calls.value ?? [];
  const counted = outcomes.filter(({ page, result }) => page && result);
  const isEmpty = counted.length > 0 && outcomes.every(({ list, result }) => result && !result[list]?.length);
  const isAdmin = outcomes.some(({ result }) => result?.roles?.includes("admin"));
  return html`<h1>${t("start.title")}</h1>
    <p>${t("start.intro")}</p>
    <${Sample} isEmpty=${isEmpty} onLoaded=${calls.reload} />
    <section aria-labelledby="counts" aria-busy=${calls.loading}>
      <h2 id="counts">${t("start.counts")}</h2>
      <${ErrorBox} error=${outcomes.find(({ error }) => error)?.error} onRetry=${calls.reload} />
      ${
        counted.length > 0 &&
        html`<ul class="cards small">${counted.map(
          ({ page, list, result }) => html`<li key=${page}>
        <${Count} page=${page} count=${result[list].length} more=${Boolean(result.next_cursor)} /></li>`,
        )}</ul>`
      }
    </section>
    <section aria-labelledby="health">
      <h2 id="health">${t("start.health")}</h2>
      <${ErrorBox} error=${health.error} onRetry=${health.reload} />
      ${
        health.value &&
        html`<ul class="cards">${health.value.servers.map(
          (name) => html`<li class="card" key=${name}>
        <h3>${name}</h3><p>${t(`start.servers.${name}`)}</p>
        <${State} error=${health.error} outcome=${outcomes.find(({ method }) => method.startsWith(`${name}/`))} />
          </li>`,
        )}</ul>`
      }
    </section>
    ${isAdmin && html`<${Checks} />`}`;
}

// Return the call with its `result`, or with the `error` that it failed by.
async function outcomeOf(each, signal) {
  try {
    return { ...each, result: await call(each.method, each.params, { signal }) };
  } catch (error) {
    if (error.name === "AbortError") throw error;
    return { ...each, error };
  }
}

function Count({ page, count, more }) {
  return html`<a class="card count" href=${link(page)}><strong>${formatNumber(count)}${more && "+"}
    </strong> ${t(`start.counted.${page}`, { count })}</a>`;
}

// The state of a server; none where it is not known.
function State({ error, outcome }) {
  if (error) return html`<p class="state wrong">${t("start.silent")}</p>`;
  if (outcome?.result) return html`<p class="state good">${t("start.healthy")}</p>`;
  if (!outcome || outcome.error.name === "SignInCancelled") return null;
  return html`<p class="state wrong">${t("start.call_failed", { code: outcome.error.code })}</p>`;
}

// Load the sample step by step, so that it is seen how far it is, and where it failed.
function Sample({ isEmpty, onLoaded }) {
  const [done, setDone] = useState([]);
  const [state, setState] = useState("idle");
  const [error, setError] = useState(null);
  const [device, setDevice] = useState("");
  const load = async () => {
    if (state === "busy") return;
    setDone([]);
    setError(null);
    setState("busy");
    try {
      for (const [name, run] of STEPS) {
        const result = await run();
        if (name === "devices") setDevice(result.devices[0].device_id);
        setDone((old) => [...old, name]);
      }
      setState("done");
    } catch (problem) {
      setError(problem);
      setState("idle");
    }
    onLoaded();
  };
  return html`<section class="panel ${isEmpty ? "prominent" : ""}" aria-labelledby="sample">
    <h2 id="sample">${t("start.sample")}</h2>
    <p>${t("start.sample_text")}</p>
    <p><button class=${isEmpty ? "primary" : ""} onClick=${load} aria-disabled=${state === "busy"}>
      ${t(state === "busy" ? "start.sample_loading" : "start.sample_load")}</button></p>
    <div role="status"><ul class="plain">
      ${done.map((name) => html`<li key=${name}><span class="state good">${t(`start.steps.${name}`)}</span></li>`)}</ul>
      ${
        state === "done" &&
        html`<p>${t("start.sample_next")}</p>
        <ul>${Object.entries(sampleLinks(device)).map(
          ([page, address]) => html`<li key=${page}><a href=${address}>
          ${t(`start.sample_links.${page}`)}</a></li>`,
        )}</ul>`
      }</div>
    <${ErrorBox} error=${error} />
  </section>`;
}

function sampleLinks(device) {
  return {
    documents: link("documents", [SAMPLE.document], { view: "history" }),
    ask: link("ask", [], { q: t("start.sample_links.ask") }),
    conversations: link("conversations", [SAMPLE.conversation]),
    knowledge: link("knowledge", [SAMPLE.collection]),
    ...(isOneMachine && { devices: link("devices", [device]) }),
  };
}

// The findings of `kho doctor` that a function can make; for admins alone.
function Checks() {
  const [findings, setFindings] = useState(null);
  const { busy, error, run } = useAction(async () => {
    setFindings(null);
    setFindings((await call("tool-server/system/check")).findings);
  });
  return html`<section aria-labelledby="checks">
    <h2 id="checks">${t("start.checks")}</h2>
    <p>${t("start.checks_text")}</p>
    <p><button onClick=${run} aria-disabled=${busy}>${t(busy ? "start.checking" : "start.check")}</button></p>
    <${ErrorBox} error=${error} />
    <div role="status"><ul class="rows">${findings?.map(
      (each) => html`<li key=${each.subject}>
      <span class="state ${each.state}"><span class="hidden">${t(`start.states.${each.state}`)}: </span>${each.subject}
        </span> ${each.message}
      ${each.advice && html`<div class="faint">${each.advice}</div>`}</li>`,
    )}</ul></div>
  </section>`;
}
