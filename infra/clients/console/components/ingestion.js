// Ingestion of dropped or chosen files and folders, in batches, with progress, failures and a way to stop.
import { signal } from "@preact/signals";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { call, poll } from "../api.js";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { ErrorBox } from "./error_box.js";
import { toast } from "./toast.js";
import { visible } from "./visible_text.js";

const MAX_FILE_BYTES = 4 << 20;
const BATCH_BYTES = 1 << 20;
const BATCH_FILES = 50;
const JOB_POLL = { every: 1000, growth: 1.5, most: 15_000 };
// A file of TypeScript is a video to some systems.
const KINDS = {
  pictures: /^image\//,
  "sound files": /^audio\//,
  videos: /^video\/(?!mp2t|vnd\.dlna)/,
  fonts: /^font\//,
  archives: /^application\/(zip|gzip|x-(7z|bzip|gzip|rar|tar|xz|zip))/,
};
const EMPTY = {
  total: 0,
  done: 0,
  added: 0,
  updated: 0,
  unchanged: 0,
  hidden: 0,
  skipped: {},
  notes: [],
  failed: [],
  error: null,
  running: true,
};

// The last ingestion of each collection, by name. It goes on while other pages are shown.
const ingestions = signal({});

// Files on their way to a collection. Those that are added while it runs come after the others.
class FileIngestion {
  controller = new AbortController();
  tally = signal(EMPTY);
  waiting = [];
  onDone = null; // set by the collection's page while it is shown

  constructor(collection) {
    this.collection = collection;
  }

  // `failed` are files that could not be read.
  add(chosen, failed = []) {
    const shown = chosen.filter(({ path }) => !path.split("/").some((part) => part.startsWith(".")));
    const kinds = shown.map(({ file }) => kindWithoutText(file)).filter(Boolean);
    this.waiting.push(...shown.filter(({ file }) => !kindWithoutText(file)));
    this.count({
      total: shown.length + failed.length,
      hidden: chosen.length - shown.length,
      done: failed.length + kinds.length,
      skipped: Object.fromEntries(kinds.map((kind) => [kind, kinds.filter((each) => each === kind).length])),
      failed,
    });
  }

  count({ failed = [], notes = [], skipped = {}, ...numbers }) {
    const before = this.tally.value;
    const tally = { ...before, failed: [...before.failed, ...failed], notes: [...before.notes, ...notes] };
    for (const [name, number] of Object.entries(numbers)) tally[name] += number;
    tally.skipped = { ...before.skipped };
    for (const [kind, number] of Object.entries(skipped)) tally.skipped[kind] = (tally.skipped[kind] ?? 0) + number;
    this.tally.value = tally;
  }

  async run() {
    let error = null;
    try {
      while (this.waiting.length) {
        const chosen = this.waiting.splice(0);
        for await (const batch of batches(chosen, (failure) => this.count({ done: 1, failed: [failure] }))) {
          this.controller.signal.throwIfAborted();
          const { added, updated, unchanged, failed, skipped, notes } = await ingestBatch(
            this.collection,
            batch,
            this.controller.signal,
          );
          this.count({ done: batch.length, added, updated, unchanged, failed, skipped, notes });
        }
      }
    } catch (problem) {
      error = problem;
    }
    this.tally.value = { ...this.tally.value, error, running: false };
    if (this.onDone) this.onDone();
    else
      toast(
        `${this.collection}: ${outcomeText(this.tally.value)}`,
        error || this.tally.value.failed.length ? "wrong" : "good",
      );
  }
}

function ingest(collection, chosen, { failed = [], onDone }) {
  const current = ingestions.value[collection];
  if (current?.tally.value.running) {
    current.add(chosen, failed);
    return;
  }
  const next = new FileIngestion(collection);
  ingestions.value = { ...ingestions.value, [collection]: next };
  next.onDone = onDone;
  next.add(chosen, failed);
  next.run();
}

function outcomeText(tally) {
  return [tally.error && t("knowledge.stopped", tally), t("knowledge.finished", tally)].filter(Boolean).join(" ");
}

export function Ingestion({ collection, onDone }) {
  const [over, setOver] = useState(false);
  const files = useRef(null);
  const folder = useRef(null);
  const id = useId();
  const current = ingestions.value[collection];
  const tally = current?.tally.value;
  useEffect(() => {
    if (!current) return undefined;
    current.onDone = onDone;
    return () => {
      current.onDone = null;
    };
  }, [current, onDone]);
  // An outcome that was seen is not shown at the next visit.
  useEffect(
    () => () => {
      if (!ingestions.value[collection]?.tally.value.running)
        ingestions.value = { ...ingestions.value, [collection]: undefined };
    },
    [collection],
  );

  const choose = (event) => {
    const chosen = [...event.target.files].map((file) => ({ file, path: file.webkitRelativePath || file.name }));
    event.target.value = "";
    if (chosen.length) ingest(collection, chosen, { onDone });
  };
  const drop = async (event) => {
    event.preventDefault();
    setOver(false);
    // The items are gone after the event: folders' entries and files are taken before anything is read.
    const dropped = [...event.dataTransfer.items]
      .filter((item) => item.kind === "file")
      .map((item) => ({ entry: item.webkitGetAsEntry?.(), file: item.getAsFile() }));
    const failed = [];
    const chosen = (
      await Promise.all(
        dropped.map(({ entry, file }) => (entry ? filesOf(entry, failed) : [{ file, path: file.name }])),
      )
    ).flat();
    if (chosen.length || failed.length) ingest(collection, chosen, { failed, onDone });
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
    ${
      tally &&
      html`<${ErrorBox} error=${tally.error} />
      <${Progress} tally=${tally} onStop=${() => current.controller.abort()} />`
    }
  </section>`;
}

function Progress({ tally, onStop }) {
  const { total, done, failed, notes, hidden, skipped, running } = tally;
  const kinds = Object.entries(skipped).map(([kind, count]) => `${count} ${t(`knowledge.skipped_kinds.${kind}`)}`);
  return html`<div class="panel row">
    <p role="status">${running ? t("knowledge.progress", tally) : outcomeText(tally)}
      ${hidden > 0 && ` ${t("knowledge.hidden_files", { count: hidden })}`}
      ${kinds.length > 0 && ` ${t("knowledge.skipped", { kinds: kinds.join(", ") })}`}</p>
    <progress max=${total || 1} value=${total ? done : 1} aria-label=${t("knowledge.progress_label")}></progress>
    ${running && html`<p><button onClick=${onStop}>${t("knowledge.stop")}</button></p>`}
    ${notes.length > 0 && html`<h3>${t("knowledge.notes")}</h3><${FileList} files=${notes} />`}
    ${
      failed.length > 0 &&
      html`<h3>${t("knowledge.failures", { count: failed.length })}</h3>
      <${FileList} kind="failures" files=${failed} />`
    }
  </div>`;
}

function FileList({ files, kind = "notes" }) {
  return html`<ul class=${kind}>${files.map(
    ({ path, reason, note }) => html`<li key=${path}><code>${visible(path)}</code> ${visible(reason ?? note)}</li>`,
  )}</ul>`;
}

// Ingest a batch and wait for its job, if it became one.
async function ingestBatch(collection, documents, signal) {
  let result;
  try {
    result = await call("research-agent/ingest_documents", { collection, documents }, { signal });
  } catch (problem) {
    if (problem.status !== 413) throw problem;
    return {
      added: 0,
      updated: 0,
      unchanged: 0,
      failed: documents.map(({ path }) => ({ path, reason: problem.message })),
    };
  }
  if (result.status !== "accepted") return result;
  const job = await finishedJob(result.job_id, signal);
  if (job.status === "done") return job;
  const known = new Set(job.failed.map((each) => each.path));
  const rest = documents.filter(({ path }) => !known.has(path)).map(({ path }) => ({ path, reason: job.message }));
  return { ...job, failed: [...job.failed, ...rest.slice(job.processed - job.failed.length)] };
}

// Wait until a job is done, failed or stalled.
function finishedJob(job_id, signal) {
  return new Promise((resolve, reject) => {
    const settle = (act, value) => {
      polling.stop();
      act(value);
    };
    const polling = poll(async () => {
      try {
        const job = await call("research-agent/get_ingestion", { job_id }, { signal });
        if (["done", "failed", "stalled"].includes(job.status)) settle(resolve, job);
      } catch (error) {
        // A job that is not there or not the caller's stays so; other failures pass.
        if (
          error.name === "AbortError" ||
          error.name === "SignInCancelled" ||
          error.status === 403 ||
          error.status === 404
        )
          settle(reject, error);
        throw error;
      }
    }, JOB_POLL);
    signal.addEventListener("abort", () => settle(reject, signal.reason));
  });
}

// Read files, and yield them in batches that fit in a request.
async function* batches(chosen, onFailure) {
  let [batch, bytes] = [[], 0];
  for (const { file, path } of chosen) {
    let content;
    try {
      content = await contentOf(file);
    } catch (problem) {
      onFailure({ path, reason: problem.message });
      continue;
    }
    const size = JSON.stringify(content).length + path.length;
    if (batch.length && (bytes + size > BATCH_BYTES || batch.length === BATCH_FILES)) {
      yield batch;
      [batch, bytes] = [[], 0];
    }
    batch.push({ path, ...content });
    bytes += size;
  }
  if (batch.length) yield batch;
}

// Return a file's text if it is UTF-8, else the file itself, which the server reads.
async function contentOf(file) {
  if (file.size > MAX_FILE_BYTES) throw new Error(t("knowledge.too_large"));
  const text = utf8(await file.arrayBuffer());
  const isText = text !== null && !text.includes("\0") && !text.startsWith("%PDF-") && !/\.pdf$/i.test(file.name);
  return isText ? { content: text } : { content_base64: await base64Of(file) };
}

function utf8(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}

function base64Of(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).split(",")[1] ?? "");
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}

// Return the kind of a file that holds no text, as the server calls it, if the browser knows it.
function kindWithoutText({ type }) {
  return Object.entries(KINDS).find(([, pattern]) => pattern.test(type))?.[0];
}

// Return the files below a dropped entry, with their paths. What cannot be read is added to `failed`.
async function filesOf(entry, failed) {
  const path = entry.fullPath.replace(/^\//, "");
  const found = [];
  try {
    if (entry.isFile) return [{ file: await new Promise((resolve, reject) => entry.file(resolve, reject)), path }];
    const reader = entry.createReader();
    for (;;) {
      // A reader gives a hundred entries at a time.
      const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
      if (!some.length) return found;
      for (const each of some) found.push(...(await filesOf(each, failed)));
    }
  } catch (problem) {
    failed.push({ path, reason: problem.message });
    return found;
  }
}
