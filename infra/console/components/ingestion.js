// Ingestion of dropped or chosen files and folders, in batches, with progress, failures and a way to stop.
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { call } from "../api.js";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { ErrorBox } from "./error_box.js";
import { visible } from "./visible_text.js";

const MAX_FILE_BYTES = 4 << 20;
const BATCH_BYTES = 1 << 20;
const BATCH_FILES = 50;
const JOB_POLL_MS = 1000;
const EMPTY = { total: 0, done: 0, added: 0, updated: 0, unchanged: 0, hidden: 0, failed: [], running: false };

export function Ingestion({ collection, onDone }) {
  const [tally, setTally] = useState(null);
  const [error, setError] = useState(null);
  const [over, setOver] = useState(false);
  const files = useRef(null);
  const folder = useRef(null);
  const run = useRef(null);
  const id = useId();
  useEffect(() => () => run.current?.abort(), []);

  const ingest = async (chosen) => {
    run.current?.abort();
    const controller = new AbortController();
    run.current = controller;
    setError(null);
    const visibleFiles = chosen.filter(({ path }) => !path.split("/").some((part) => part.startsWith(".")));
    let current = { ...EMPTY, total: visibleFiles.length, hidden: chosen.length - visibleFiles.length, running: true };
    const report = (change) => {
      current = { ...current, ...change };
      if (run.current === controller) setTally(current);
    };
    report({});
    try {
      for await (const batch of batches(visibleFiles, (failure) => report({ done: current.done + 1, failed: [...current.failed, failure] }))) {
        if (controller.signal.aborted) break;
        const result = await ingestBatch(collection, batch, controller.signal);
        report({
          done: current.done + batch.length,
          added: current.added + result.added,
          updated: current.updated + result.updated,
          unchanged: current.unchanged + result.unchanged,
          failed: [...current.failed, ...(result.failed ?? [])],
        });
      }
    } catch (problem) {
      if (problem.name !== "AbortError") setError(problem);
    }
    report({ running: false });
    onDone();
  };
  const choose = (event) => {
    const chosen = [...event.target.files].map((file) => ({ file, path: file.webkitRelativePath || file.name }));
    event.target.value = "";
    if (chosen.length) ingest(chosen);
  };
  const drop = async (event) => {
    event.preventDefault();
    setOver(false);
    // The items are gone after the event: folders' entries and files are taken before anything is read.
    const dropped = [...event.dataTransfer.items].filter((item) => item.kind === "file")
      .map((item) => ({ entry: item.webkitGetAsEntry?.(), file: item.getAsFile() }));
    try {
      const chosen = (await Promise.all(dropped.map(({ entry, file }) => (entry ? filesOf(entry) : [{ file, path: file.name }])))).flat();
      if (chosen.length) ingest(chosen);
    } catch (problem) {
      setError(problem);
    }
  };
  return html`<section aria-labelledby=${id}>
    <h2 id=${id}>${t("knowledge.add")}</h2>
    <div class="drop ${over ? "over" : ""}" onDragOver=${(event) => {
      event.preventDefault();
      setOver(true);
    }} onDragLeave=${() => setOver(false)} onDrop=${drop}>
      <p>${t("knowledge.drop")}</p>
      <div class="actions">
        <button onClick=${() => files.current.click()}>${t("knowledge.choose_files")}</button>
        <button onClick=${() => folder.current.click()}>${t("knowledge.choose_folder")}</button>
        <input ref=${files} type="file" multiple hidden data-purpose="files" onChange=${choose} />
        <input ref=${folder} type="file" webkitdirectory hidden data-purpose="folder" onChange=${choose} />
      </div>
    </div>
    <${ErrorBox} error=${error} />
    ${tally && html`<${Progress} tally=${tally} onStop=${() => run.current.abort()} />`}
  </section>`;
}

function Progress({ tally, onStop }) {
  const { total, done, failed, hidden, running } = tally;
  return html`<div class="panel row">
    <p role="status">${t(running ? "knowledge.progress" : "knowledge.finished", tally)}
      ${hidden > 0 && ` ${t("knowledge.hidden_files", { count: hidden })}`}</p>
    <progress max=${total || 1} value=${total ? done : 1} aria-label=${t("knowledge.progress_label")}></progress>
    ${running && html`<p><button onClick=${onStop}>${t("knowledge.stop")}</button></p>`}
    ${failed.length > 0 && html`<h3>${t("knowledge.failures", { count: failed.length })}</h3>
      <ul class="failures">${failed.map((each) => html`<li key=${each.path}><code>${visible(each.path)}</code> ${visible(each.reason)}</li>`)}</ul>`}
  </div>`;
}

// Ingest a batch and wait for its job, if it became one.
async function ingestBatch(collection, documents, signal) {
  let result;
  try {
    result = await call("research-agent/ingest_documents", { collection, documents }, { signal });
  } catch (problem) {
    if (problem.status !== 413) throw problem;
    return { added: 0, updated: 0, unchanged: 0, failed: documents.map(({ path }) => ({ path, reason: problem.message })) };
  }
  if (result.status !== "accepted") return result;
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, JOB_POLL_MS));
    const job = await call("research-agent/get_ingestion", { job_id: result.job_id }, { signal });
    if (job.status === "failed" || job.status === "stalled") {
      const known = new Set(job.failed.map((each) => each.path));
      const rest = documents.filter(({ path }) => !known.has(path)).map(({ path }) => ({ path, reason: job.message }));
      return { ...job, failed: [...job.failed, ...rest.slice(job.processed - job.failed.length)] };
    }
    if (job.status === "done") return job;
  }
}

// Read files as texts, and yield them in batches that fit in a request.
async function* batches(chosen, onFailure) {
  let [batch, bytes] = [[], 0];
  for (const { file, path } of chosen) {
    let content;
    try {
      content = await textOf(file);
    } catch (problem) {
      onFailure({ path, reason: problem.message });
      continue;
    }
    const size = JSON.stringify(content).length + path.length;
    if (batch.length && (bytes + size > BATCH_BYTES || batch.length === BATCH_FILES)) {
      yield batch;
      [batch, bytes] = [[], 0];
    }
    batch.push({ path, content });
    bytes += size;
  }
  if (batch.length) yield batch;
}

// Return the file's text, in UTF-8 or with a mark of UTF-16. Throw an error that says why it cannot be read.
async function textOf(file) {
  if (file.size > MAX_FILE_BYTES) throw new Error(t("knowledge.too_large"));
  if (/\.pdf$/i.test(file.name)) throw new Error(t("knowledge.no_pdf"));
  const bytes = new Uint8Array(await file.arrayBuffer());
  const marks = { "255,254": "utf-16le", "254,255": "utf-16be" };
  let text;
  try {
    text = new TextDecoder(marks[String(bytes.slice(0, 2))] ?? "utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new Error(t("knowledge.not_text"));
  }
  if (text.includes("\0")) throw new Error(t("knowledge.not_text"));
  return text;
}

// Return the files below a dropped entry, with their paths.
async function filesOf(entry) {
  if (entry.isFile) {
    const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
    return [{ file, path: entry.fullPath.replace(/^\//, "") }];
  }
  const reader = entry.createReader();
  const found = [];
  for (;;) {
    // A reader gives a hundred entries at a time.
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length) return found;
    for (const each of some) found.push(...(await filesOf(each)));
  }
}
