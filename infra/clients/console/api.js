// Calls of Kho's public methods: one client for all pages, which handles lost connections and refused tokens.
import { signal } from "@preact/signals";
import { authorization, replaceToken, session } from "./auth.js";
import { visible } from "./components/visible_text.js";

// True while the server cannot be reached.
export const offline = signal(false);

const PROBE_MS = 1000; // doubled after each failure

export class ApiError extends Error {
  // `code` is the error's name, such as CONFLICT; `data` is the error as the server sent it. Texts are made visible:
  // they quote what strangers and devices have sent.
  /** @param {Partial<import("./types").Failure> & { code: string; message: string }} failure */
  constructor({ code, message, details = null, guidance = "", status = 0, retryAfter = 0, correlationId = "", data }) {
    super(visible(message));
    this.name = "ApiError";
    this.code = code;
    this.details = marked(details);
    this.guidance = visible(guidance);
    this.status = status;
    this.retryAfter = retryAfter;
    this.correlationId = correlationId;
    this.data = data ?? { code, message };
  }
}

function marked(details) {
  if (!Array.isArray(details)) return details;
  return details.map((each) =>
    each?.message ? { ...each, field: visible(each.field), message: visible(each.message) } : each,
  );
}

// Call a method such as "agent-data/get_document" and return its result. Throw ApiError, or AbortError by `signal`.
// With `quiet`, a call that needs credentials fails instead of asking for them.
/**
 * @template {keyof import("methods").Methods} M
 * @param {M} method
 * @param {import("methods").Methods[M]["params"]} [params] may be left out if it may be empty
 * @param {{ signal?: AbortSignal; quiet?: boolean }} options
 * @returns {Promise<import("methods").Methods[M]["result"]>}
 */
export async function call(method, params = /** @type {any} */ ({}), { signal: abort, quiet = false } = {}) {
  const response = await send("POST", `/${method}`, { body: JSON.stringify(params), signal: abort, quiet });
  return resultOf(response);
}

// Read a public address such as "/health" as JSON.
/** @param {string} path @param {{ signal?: AbortSignal }} options */
export async function get(path, { signal: abort } = {}) {
  return resultOf(await send("GET", path, { signal: abort }));
}

// Send a request with the caller's token, and return the response of any status. A refused token is replaced.
/**
 * @param {string} verb
 * @param {string} path
 * @param {{ body?: string; signal?: AbortSignal; headers?: Record<string, string>; quiet?: boolean }} options
 */
export async function send(verb, path, { body, signal: abort, headers = {}, quiet = false } = {}) {
  for (;;) {
    const token = await authorization();
    const sentAt = performance.now();
    /** @type {Record<string, string>} */
    const all = { ...headers, ...(body === undefined ? {} : { "content-type": "application/json" }) };
    if (token) all.authorization = token;
    const response = await reach(path, { method: verb, body, headers: all, signal: abort });
    if (response.status !== 401 || (quiet && !token)) return response;
    await replaceToken(token, sentAt);
  }
}

async function reach(path, init) {
  try {
    const response = await fetch(path, { ...init, cache: "no-store" });
    offline.value = false;
    return response;
  } catch (error) {
    throw lost(error);
  }
}

// Return the error of a lost connection, and watch for the server. An abort stays what it is.
function lost(error) {
  if (error.name === "AbortError") return error;
  offline.value = true;
  watchConnection();
  return new ApiError({ code: "OFFLINE", message: "The server cannot be reached." });
}

/** @type {{ stop: () => void } | null} */
let watching = null;

// Look for the server until it answers again, so that the page says so by itself.
function watchConnection() {
  watching ??= poll(
    async () => {
      try {
        await fetch("/health", { cache: "no-store" });
      } catch (error) {
        offline.value = true; // an answer that was on its way may have said otherwise
        throw error;
      }
      watching?.stop();
      watching = null;
      offline.value = false;
    },
    { every: PROBE_MS, most: 30_000 },
  );
}

async function resultOf(response) {
  let text, body;
  try {
    text = await response.text();
  } catch (error) {
    throw lost(error);
  }
  try {
    body = JSON.parse(text);
  } catch {
    // A gateway's own page, such as the one of 502.
    const message = `The server gave no valid answer (status ${response.status}). Try again in a moment.`;
    body = { success: false, error: { code: "INVALID_RESPONSE", message } };
  }
  if (response.ok && body?.success !== false) return body;
  const error = body?.error ?? body ?? {};
  const details = error.validation_errors ?? error.details ?? null;
  throw new ApiError({
    code: error.details?.code ?? error.code ?? `HTTP_${response.status}`,
    message: error.message || `The call failed (status ${response.status}).`,
    details,
    guidance: error.guidance ?? error.details?.guidance ?? "",
    status: response.status,
    retryAfter: Number(response.headers.get("retry-after")) || 0,
    correlationId: response.headers.get("x-correlation-id") ?? "",
    data: error,
  });
}

// Run `load(signal)` again and again: with back-off after failures, and only while the page is shown. With `growth`
// each pause is longer than the one before, also without failures. After a cancelled sign-in it waits for another
// session. Return {stop, now}; `now` runs it at once.
export function poll(load, { every = 5000, most = 60_000, growth = 1 } = {}) {
  let [timer, pause, delay, running, cancelled, stopped] = [0, every, every, false, false, false];
  const controller = new AbortController();
  const run = async () => {
    clearTimeout(timer);
    if (running || cancelled || stopped || document.hidden) return;
    running = true;
    try {
      await load(controller.signal);
      delay = pause;
      pause = Math.min(pause * growth, most);
    } catch (error) {
      cancelled = error.name === "SignInCancelled";
      delay = Math.min(Math.max(delay * 2, (error.retryAfter ?? 0) * 1000), most);
    }
    running = false;
    if (!stopped && !cancelled) timer = setTimeout(run, delay);
  };
  const now = () => {
    cancelled = false;
    return run();
  };
  document.addEventListener("visibilitychange", run);
  addEventListener("online", run);
  const unsubscribe = session.subscribe(() => cancelled && now());
  run();
  const stop = () => {
    stopped = true;
    unsubscribe();
    clearTimeout(timer);
    controller.abort();
    document.removeEventListener("visibilitychange", run);
    removeEventListener("online", run);
  };
  return { stop, now };
}
