// Ask: a question to the documents; the answer with the passages that it cites.
import { useEffect, useRef, useState } from "preact/hooks";
import { call } from "../api.js";
import { CopyButton } from "../components/copy_button.js";
import { ErrorBox } from "../components/error_box.js";
import { Markdown } from "../components/markdown.js";
import { visible } from "../components/visible_text.js";
import { html } from "../html.js";
import { formatNumber, hasText, t } from "../i18n.js";
import { go, link } from "../router.js";

const BUDGETS = [500, 1000, 2000, 4000, 10_000, 20_000]; // milliseconds
const MOST_PASSAGES = 20;
const LONGEST_QUESTION = 2048;
// The addresses of questions that a person has sent here. Anybody can make a link with another one: it fills the form
// in and waits for a click, because an answer costs the model and the web search, and sends the question to them.
const sent = new Set();

const NO_ANSWER = { answer: null, error: null, busy: false, seconds: 0 };

export default function Ask({ query }) {
  const [fields, setFields] = useState(() => fieldsOf(query));
  const [state, setState] = useState(NO_ANSWER);
  const running = useRef(null);
  useEffect(() => {
    const wanted = fieldsOf(query);
    setFields(wanted);
    setState(NO_ANSWER);
    if (sent.has(addressOf(wanted))) ask(wanted);
    return () => running.current?.abort();
  }, [query]);

  const ask = async (wanted) => {
    running.current?.abort();
    const controller = new AbortController();
    running.current = controller;
    setState({ ...NO_ANSWER, busy: true });
    const started = performance.now();
    try {
      const answer = await call("agent-data/query_knowledge", paramsOf(wanted), { signal: controller.signal });
      setState({ answer, error: null, busy: false, seconds: (performance.now() - started) / 1000 });
    } catch (error) {
      if (error.name !== "AbortError") setState({ ...NO_ANSWER, error });
    }
  };
  const submit = (event) => {
    event.preventDefault();
    sent.add(addressOf(fields));
    go(addressOf(fields));
  };
  // In a narrow window the answer comes first, unless an option is chosen.
  const isOpen =
    Object.keys(query).some((name) => name !== "q" && query[name]) || matchMedia("(min-width: 60rem)").matches;
  const change = (name) => (event) =>
    setFields({ ...fields, [name]: event.target.type === "checkbox" ? event.target.checked : event.target.value });
  const keys = (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      event.target.form.requestSubmit();
    }
  };
  return html`<h1>${t("ask.title")}</h1>
    <form class="ask" onSubmit=${submit}>
      <label>${t("ask.question")}
        <textarea required maxlength=${LONGEST_QUESTION} rows="2" placeholder=${t("ask.example")}
          value=${fields.question} onInput=${change("question")} onKeyDown=${keys}></textarea></label>
      <div class="actions"><button type="submit" class="primary" aria-disabled=${state.busy}>${t("ask.submit")}</button>
        ${state.busy && html`<span role="status" aria-busy="true">${t("ask.busy")}</span>`}
        ${query.q && !sent.has(addressOf(fieldsOf(query))) && html`<span role="status">${t("ask.unsent")}</span>`}</div>
      <details open=${isOpen}><summary>${t("ask.options")}</summary><div class="ask-options">
        <label>${t("ask.tags")} <input value=${fields.tags} placeholder=${t("ask.tags_example")}
          onInput=${change("tags")} /></label>
        <label>${t("ask.budget")} <select value=${fields.budget} onChange=${change("budget")}>
          <option value="">${t("ask.no_budget")}</option>
          ${BUDGETS.map(
            (each) => html`<option value=${each}>
            ${formatNumber(each / 1000, { style: "unit", unit: "second", unitDisplay: "long" })}</option>`,
          )}</select>
            </label>
        <label>${t("ask.passages")} <input type="number" min="1" max=${MOST_PASSAGES} required value=${fields.passages}
          onInput=${change("passages")} /></label>
        <label class="check"><input type="checkbox" checked=${fields.web} onChange=${change("web")} /> ${t("ask.web")}
          </label>
      </div></details>
    </form>
    <${ErrorBox} error=${state.error} onRetry=${() => ask(fields)} />
    <div aria-live="polite">${state.answer && html`<${Answer} answer=${state.answer} seconds=${state.seconds} />`}
      </div>`;
}

function Answer({ answer, seconds }) {
  const { response, context, usage } = answer;
  const passages = useRef(null);
  if (!context.length)
    return html`<div class="empty"><p>${t("ask.nothing")}</p></div><${Usage} usage=${usage} seconds=${seconds} />`;
  const show = (event) => {
    const number = event.target.closest?.("a.citation")?.dataset.number;
    if (!number) return;
    event.preventDefault();
    const passage = passages.current.querySelector(`[data-number="${number}"]`);
    passage.scrollIntoView({ block: "nearest" });
    passage.focus();
  };
  return html`<section aria-labelledby="answer"><h2 id="answer">${t("ask.answer")}</h2>
      <div class="panel answer" onClick=${show}><${Markdown} text=${visible(response)}
        onRender=${(fragment) => cite(fragment, context.length)} /></div>
      <${Usage} usage=${usage} seconds=${seconds} />
      <div class="actions"><${CopyButton} text=${response} label=${t("ask.copy")} /></div>
    </section>
    <section aria-labelledby="passages"><h2 id="passages">${t("ask.context")}</h2>
      <ol class="passages plain" ref=${passages}>
        ${context.map((each, index) => html`<${Passage} key=${index} number=${index + 1} passage=${each} />`)}</ol>
    </section>`;
}

function Passage({ number, passage }) {
  const { document_id: id, snippet, score, source } = passage;
  const isWeb = source === "web";
  const target = isWeb ? (/^https?:\/\//i.test(id) ? id : undefined) : link("documents", [id]);
  const outside = isWeb ? { target: "_blank", rel: "noopener noreferrer" } : {};
  return html`<li class="panel passage" data-number=${number} tabindex="-1" aria-label=${t("ask.passage", { number })}>
    <p><span class="number">[${number}]</span> ${
      target
        ? html`<a href=${target} ...${outside}>${visible(id)}
      </a>`
        : visible(id)
    }
      ${isWeb && html` <span class="tag">${t("ask.from_web")}</span>`}
      <span class="score"><meter min="0" max="1" value=${score} aria-label=${t("ask.score")}>
        </meter> ${formatNumber(score, { minimumFractionDigits: 2, maximumFractionDigits: 2 })}</span></p>
    <blockquote>${visible(snippet)}</blockquote>
  </li>`;
}

// The time and the tokens that the answer took, and the parts that it had to do without.
function Usage({ usage, seconds }) {
  const tokens = usage.llm_tokens_prompt + usage.llm_tokens_completion;
  return html`<p class="faint">
    ${t("ask.usage", { seconds: formatNumber(seconds, { maximumSignificantDigits: 2 }), hits: usage.qdrant_hits })}
      ${" "}
        ${
          tokens
            ? t("ask.tokens", { prompt: usage.llm_tokens_prompt, completion: usage.llm_tokens_completion })
            : t("ask.no_tokens")
        }</p>
    ${
      usage.degraded?.length > 0 &&
      html`<div class="notice ${usage.degraded.some((each) => each.reason !== "not_configured") ? "wrong" : ""}">
      <p><strong>${t("ask.degraded_title")}</strong></p>
      <ul>${usage.degraded.map((each) => html`<li key=${each.dropped}>${degradedText(each)}</li>`)}</ul></div>`
    }`;
}

function degradedText({ dropped, reason, message }) {
  const [stage, cause] = [`ask.dropped.${dropped}`, `ask.reasons.${reason}`];
  return hasText(stage) && hasText(cause) ? `${t(stage)} ${t(cause)}` : message;
}

// Turn each [n] of the text that names a passage into a link to it; code and links stay.
function cite(fragment, count) {
  const walker = document.createTreeWalker(fragment, NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walker.nextNode()) {
    if (!walker.currentNode.parentElement?.closest("a, code, pre")) texts.push(walker.currentNode);
  }
  for (const text of texts) {
    const parts = text.data.split(/\[(\d{1,2})\]/);
    if (parts.length === 1) continue;
    text.replaceWith(
      ...parts.map((part, index) => {
        if (index % 2 === 0) return part;
        const number = Number(part);
        return number >= 1 && number <= count ? citation(number) : `[${part}]`;
      }),
    );
  }
}

function citation(number) {
  const anchor = document.createElement("a");
  Object.assign(anchor, { className: "citation", href: "#passages", textContent: `[${number}]` });
  anchor.dataset.number = number;
  anchor.setAttribute("aria-label", t("ask.passage", { number }));
  return anchor;
}

function fieldsOf({ q = "", tags = "", budget = "", top = "5", web = "" }) {
  return { question: q, tags, budget, passages: top, web: web === "1" };
}

function addressOf(fields) {
  return link("ask", [], queryOf(fields));
}

function queryOf({ question, tags, budget, passages, web }) {
  return {
    q: question.trim(),
    tags,
    budget: String(budget),
    top: String(passages) === "5" ? "" : String(passages),
    web: web ? "1" : "",
  };
}

function paramsOf({ question, tags, budget, passages, web }) {
  const list = tags
    .split(",")
    .map((each) => each.trim())
    .filter(Boolean);
  return {
    query: question,
    top_k: Number(passages) || 5,
    filters: { tags: list },
    routing: { allow_external_search: web, ...(budget && { max_latency_ms: Number(budget) }) },
  };
}
