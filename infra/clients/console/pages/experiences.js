// Experiences: search, read, submit with refusals at the field, and moderation.
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { call } from "../api.js";
import { session } from "../auth.js";
import { useAction } from "../components/action.js";
import { useData } from "../components/data.js";
import { ConfirmButton } from "../components/dialog.js";
import { ErrorBox } from "../components/error_box.js";
import { flattenHeadings, Markdown } from "../components/markdown.js";
import { PagedList, usePages } from "../components/paged_list.js";
import { toast } from "../components/toast.js";
import { visible } from "../components/visible_text.js";
import { html } from "../html.js";
import { formatNumber, formatTime, t } from "../i18n.js";
import { go, link } from "../router.js";
import { read, write } from "../storage.js";

const PAGE = 10;
const FIELDS = [
  { name: "title", required: true, rows: 1 },
  { name: "problem_description", required: true, rows: 4 },
  { name: "root_cause", rows: 2 },
  { name: "solution", required: true, rows: 4 },
  { name: "context", rows: 4, code: true },
  { name: "keywords", rows: 1 },
];
const EMPTY = Object.fromEntries(FIELDS.map(({ name }) => [name, ""]));

export default function Experiences({ segments: [id, action], query }) {
  if (id === "new") return html`<${Submission} />`;
  if (id) return html`<${Experience} key=${id} id=${id} editing=${action === "edit"} />`;
  return html`<${Search} query=${query} />`;
}

/**
 * @import { RecallKit } from "../types"
 * @template {keyof RecallKit} M
 * @param {M} method
 * @param {RecallKit[M]["params"]} params
 * @param {{ signal?: AbortSignal }} [options]
 * @returns {Promise<RecallKit[M]["result"]["data"]>}
 */
async function request(method, params, options) {
  const result = /** @type {any} */ (await call(/** @type {any} */ (`recall-kit/${method}`), params, options));
  return result.data;
}

function Search({ query }) {
  const asked = query.q ?? "";
  const [text, setText] = useState(asked);
  useLayoutEffect(() => setText(asked), [asked]);
  return html`<h1>${t("experiences.title")}</h1>
    <p>${t("experiences.intro")}</p>
    <form class="toolbar" role="search" onSubmit=${(event) => {
      event.preventDefault();
      go(link("experiences", [], { q: text.trim() }));
    }}>
      <input type="search" aria-label=${t("experiences.query")} placeholder=${t("experiences.query_hint")} required
        maxlength="10000" value=${text}
        onInput=${(event) => setText(event.target.value)} />
      <button type="submit" class="primary">${t("experiences.find")}</button>
      <a class="button" href=${link("experiences", ["new"])}>${t("experiences.submit_one")}</a>
    </form>
    ${
      asked
        ? html`<${Results} query=${query} />`
        : html`<div class="empty"><p>${t("experiences.nothing_asked")}</p>
      </div>`
    }`;
}

function Results({ query }) {
  const [total, setTotal] = useState(null);
  const pages = usePages(
    async (offset = 0, signal) => {
      const page = await request("query_experiences", { keywords: query.q, limit: PAGE, offset }, { signal });
      setTotal(page.total);
      const reached = offset + page.experiences.length;
      return {
        items: page.experiences,
        next_cursor: page.experiences.length && reached < page.total ? reached : undefined,
      };
    },
    [query],
  );
  return html`<p role="status" class="faint">
    ${total === null ? t("app.loading") : t("experiences.found", { count: total })}</p>
    <${PagedList} pages=${pages} label=${t("experiences.results")} keyOf=${(each) => each.id}
      empty=${html`<p>${t("experiences.none")}</p><p><a class="button" href=${link("experiences", ["new"])}>
        ${t("experiences.submit_one")}</a></p>`}>
      ${(each) => html`<article class="panel row">
        <h2><a href=${link("experiences", [each.id])}>${visible(each.title)}</a></h2>
        <p class="clamped">${visible(each.solution)}</p>
        <p class="faint"><strong>${formatNumber(each.relevance_score, { style: "percent" })}</strong> ·
          ${" "}${t("experiences.used", { count: each.query_count })} · ${formatTime(each.created_at)}</p>
        <${Keywords} words=${each.keywords} /></article>`}
    <//>`;
}

function Keywords({ words }) {
  return html`<p class="keywords">${words.map(
    (word) => html`<a key=${word} class="tag"
    href=${link("experiences", [], { q: word })}>${visible(word)}</a> `,
  )}</p>`;
}

function Experience({ id, editing }) {
  const stored = useData((signal) => request("get_experience", { id }, { signal }), [id]);
  const record = stored.value;
  const caller = useData(
    (signal) => call("tool-server/system/caller", {}, { signal, quiet: true }),
    [id, session.value.kind],
  );
  const moderates = caller.value?.is_moderator === true;
  const remove = async () => {
    await request("delete_experience", { id });
    toast(t("experiences.deleted"));
    stored.reload();
    stored.setValue(undefined);
  };
  const trail = html`<nav aria-label=${t("experiences.trail")} class="trail"><a href=${link("experiences")}>
    ${t("experiences.title")}</a></nav>`;
  if (record && editing) {
    return html`${trail}<h1>${t("experiences.edit")}</h1><${Form} initial=${editable(record)}
      draft=${`experience.${id}`} action=${t("experiences.save")}
      onSubmit=${async (values) => {
        stored.setValue(await request("update_experience", { id, ...values }));
        toast(t("experiences.saved"));
        go(link("experiences", [id]));
      }} onCancel=${() => go(link("experiences", [id]))} />`;
  }
  return html`${trail}
    <h1>${record ? visible(record.title) : t("experiences.one")}</h1>
    <div aria-busy=${stored.loading}>
    ${stored.error?.status === 404 && moderates && html`<${Restore} id=${id} onRestored=${stored.reload} />`}
    <${ErrorBox} error=${stored.error} onRetry=${stored.error?.status === 404 ? undefined : stored.reload} />
    ${
      record &&
      html`
      <p class="faint">
        ${t("experiences.used", { count: record.query_count })} · ${t("experiences.created", {
          time: formatTime(record.created_at),
        })}</p>
      <p class="warning">${t("experiences.judge")}</p>
      ${["problem_description", "root_cause", "solution"].map(
        (name) =>
          record[name] &&
          html`<section key=${name} class="panel row" aria-labelledby=${name}>
        <h2 id=${name}>${t(`experiences.fields.${name}`)}</h2><${Markdown} text=${visible(record[name])}
          onRender=${flattenHeadings} /></section>`,
      )}
      ${
        record.context &&
        html`<section class="panel row" aria-labelledby="context"><h2 id="context">${t("experiences.fields.context")}
          </h2>
        <pre class="plain-text" tabindex="0">${visible(record.context)}</pre></section>`
      }
      <${Keywords} words=${record.keywords} />
      ${
        record.similar_to &&
        html`<p><a href=${link("experiences", [record.similar_to])}>${t("experiences.similar")}</a>
        </p>`
      }
      ${
        moderates &&
        html`<div class="actions"><a class="button" href=${link("experiences", [id, "edit"])}>${t("experiences.edit")}
          </a>
        <${ConfirmButton} action=${t("experiences.delete")} text=${t("experiences.delete_text")} onConfirm=${remove} />
        </div>`
      }`
    }
    </div>`;
}

// A moderator may restore what was deleted; others cannot tell it from what never was.
function Restore({ id, onRestored }) {
  const { busy, error, run } = useAction(async () => {
    await request("restore_experience", { id });
    toast(t("experiences.restored"));
    onRestored();
  });
  return html`<div class="panel row"><p>${t("experiences.maybe_deleted")}</p><${ErrorBox} error=${error} />
    <p><button onClick=${run} aria-disabled=${busy}>${t("experiences.restore")}</button></p></div>`;
}

function Submission() {
  return html`<nav aria-label=${t("experiences.trail")} class="trail"><a href=${link("experiences")}>
    ${t("experiences.title")}</a></nav>
    <h1>${t("experiences.submit_one")}</h1>
    <p>${t("experiences.submit_text")}</p>
    <${Form} initial=${EMPTY} draft="experience.new" action=${t("experiences.submit")}
      onSubmit=${async (values) => {
        const given = Object.entries(values).filter(([, value]) => value?.length);
        const created = await request("submit_experience", /** @type {any} */ (Object.fromEntries(given)));
        toast(t("experiences.submitted"));
        go(link("experiences", [created.id]), { replace: true });
      }} />`;
}

// The fields of an experience. What is typed is kept in the browser until it is sent; a refusal is shown at its field.
function Form({ initial, draft, action, onSubmit, onCancel }) {
  const [values, setValues] = useState(() => ({ ...initial, ...read(draft) }));
  const [restored, setRestored] = useState(() => isEdited(read(draft), initial));
  const form = useRef(null);
  const { busy, error, run } = useAction(async () => {
    const { keywords, ...texts } = values;
    const sent = Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, text.trim() ? text : null]));
    await onSubmit({
      ...sent,
      keywords: keywords
        .split(",")
        .map((word) => word.trim())
        .filter(Boolean),
    });
    write(draft, undefined);
  });
  const problems = Array.isArray(error?.details) ? error.details : [];
  const problemOf = (name) =>
    problems
      .filter(({ field = "" }) => field === name || field.startsWith(`${name}.`))
      .map(({ message }) => message)
      .join("; ");
  const unplaced = problems.filter(
    ({ field = "" }) => !FIELDS.some(({ name }) => field === name || field.startsWith(`${name}.`)),
  );
  useEffect(() => {
    form.current?.querySelector("[aria-invalid=true]")?.focus();
  }, [error]);
  const change = (name, value) => {
    const next = { ...values, [name]: value };
    setValues(next);
    write(draft, next);
  };
  const discard = () => {
    write(draft, undefined);
    setValues(initial);
    setRestored(false);
  };
  return html`<form ref=${form} class="fields" onSubmit=${run} noValidate>
    ${
      restored &&
      html`<div class="notice" role="status"><p>${t("experiences.restored_edits")}</p>
      <button type="button" onClick=${discard}>${t("experiences.discard_edits")}</button></div>`
    }
    ${
      error &&
      (problems.length === 0 || unplaced.length > 0
        ? html`<${ErrorBox} error=${error} />`
        : html`<p class="error-box" role="alert">
          ${t("experiences.refused", { count: problems.length })} ${error.guidance}</p>`)
    }
    ${FIELDS.map(
      (
        field,
      ) => html`<${Field} key=${field.name} ...${field} value=${values[field.name]} problem=${problemOf(field.name)}
      onChange=${(value) => change(field.name, value)} />`,
    )}
    <div class="actions"><button type="submit" class="primary" aria-disabled=${busy}>${action}</button>
      ${
        onCancel &&
        html`<button type="button" onClick=${() => {
          write(draft, undefined);
          onCancel();
        }}>${t("app.cancel")}</button>`
      }</div>
  </form>`;
}

function Field({ name, required, rows, code, value, problem, onChange }) {
  const id = useId();
  return html`<div class="field"><label for=${id}><span class="name">${t(`experiences.fields.${name}`)}</span>
      ${required && html`<span class="faint"> ${t("app.required")}</span>`}</label>
    <textarea id=${id} rows=${rows} class=${code ? "code" : ""} aria-required=${required ? "true" : undefined}
      aria-invalid=${problem ? "true" : undefined} aria-describedby=${`${id}-help${problem ? ` ${id}-problem` : ""}`}
        value=${value}
      onInput=${(event) => onChange(event.target.value)}></textarea>
    <span class="help" id="${id}-help">${t(`experiences.help.${name}`)}</span>
    ${problem && html`<span class="problem" id="${id}-problem">${visible(problem)}</span>`}</div>`;
}

// Return true if a draft differs from what the form begins with.
function isEdited(draft, initial) {
  return Object.entries(draft ?? {}).some(([name, value]) => value !== initial[name]);
}

function editable(record) {
  return {
    ...Object.fromEntries(FIELDS.map(({ name }) => [name, record[name] ?? ""])),
    keywords: record.keywords.join(", "),
  };
}
