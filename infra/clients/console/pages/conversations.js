// Conversations: the list, a transcript with its summary, and exactly what a model gets of it.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { call, poll } from "../api.js";
import { useAction } from "../components/action.js";
import { CopyButton } from "../components/copy_button.js";
import { useData } from "../components/data.js";
import { ConfirmButton } from "../components/dialog.js";
import { useDraft } from "../components/draft.js";
import { ErrorBox } from "../components/error_box.js";
import { JumpLinks } from "../components/jump_links.js";
import { Markdown } from "../components/markdown.js";
import { PagedList, usePages } from "../components/paged_list.js";
import { toast } from "../components/toast.js";
import { visible } from "../components/visible_text.js";
import { html } from "../html.js";
import { formatAge, formatTime, t } from "../i18n.js";
import { go, link } from "../router.js";
import { write } from "../storage.js";

const MEMORY = "memory-server/memory";
const LIST_PAGE = 500;
const MESSAGE_PAGE = 50;
const LOOK_EVERY_MS = 5000;
const NEAR_END_PIXELS = 40;
const ROLES = ["user", "assistant", "system"];
const REMOVALS = /** @type {const} */ (["clear", "delete"]);

export default function Conversations({ segments }) {
  const id = segments[0];
  return html`<div class="conversations ${id ? "with-conversation" : ""}">
    <section class="list-pane" aria-labelledby="list-title"><h2 id="list-title">${t("conversations.list")}</h2>
      <${List} selected=${id} /></section>
    <section class="conversation-pane" aria-label=${t("conversations.conversation")}>
      ${
        id
          ? html`<${Conversation} key=${id} id=${id} />`
          : html`<h1>${t("conversations.title")}</h1><p>
        ${t("conversations.intro")}</p>`
      }
    </section>
  </div>`;
}

function List({ selected }) {
  const [typed, setTyped] = useState("");
  const [prefix, setPrefix] = useState("");
  const pages = usePages(
    async (cursor, signal) => {
      const page = await call(`${MEMORY}/list_conversations`, { prefix, limit: LIST_PAGE, cursor }, { signal });
      return { items: page.conversations, next_cursor: page.next_cursor };
    },
    [prefix],
  );
  // The server lists by id. Once all of them are here, the newest come first.
  const complete = !pages.more && !pages.loading;
  const items = useMemo(
    () => (complete ? [...pages.items].sort((a, b) => (a.updated_at < b.updated_at ? 1 : -1)) : pages.items),
    [pages.items, complete],
  );
  return html`<form class="toolbar" onSubmit=${(event) => {
    event.preventDefault();
    setPrefix(typed.trim());
  }}>
      <input type="search" aria-label=${t("conversations.prefix")} placeholder=${t("conversations.prefix")}
        value=${typed} maxlength="200" onInput=${(event) => {
          setTyped(event.target.value);
          if (event.target.value === "") setPrefix("");
        }} />
      <button type="submit">${t("conversations.find")}</button>
      <button type="button" onClick=${pages.reload}>${t("conversations.reload")}</button>
    </form>
    ${!complete && pages.more && html`<p class="faint">${t("conversations.by_id")}</p>`}
    <div class="list-box"><${PagedList} pages=${{ ...pages, items }} label=${t("conversations.list")}
      keyOf=${(each) => each.conversation_id}
      empty=${html`<p>${t(prefix ? "conversations.none_found" : "conversations.empty")}</p>`}>
      ${(each) => html`<a class="conversation-link" href=${link("conversations", [each.conversation_id])}
        aria-current=${each.conversation_id === selected ? "page" : undefined}>
        <span class="name">${visible(each.conversation_id)}</span>
        <span class="preview">${each.preview ? visible(each.preview) : t("conversations.no_messages")}</span>
        <time class="faint" datetime=${each.updated_at}>${formatAge(each.updated_at)}</time></a>`}
    <//></div>`;
}

function Conversation({ id }) {
  const details = useData((signal) => call(`${MEMORY}/get_conversation`, { conversation_id: id }, { signal }), [id]);
  const [most, setMost] = useState("");
  const context = useData(
    (signal) =>
      call(
        `${MEMORY}/get_context`,
        { conversation_id: id, ...(Number(most) > 0 && { max_messages: Number(most) }) },
        { signal },
      ),
    [id, most],
  );
  const changed = () => {
    details.reload();
    context.reload();
  };
  const { value, error } = details;
  if (!value)
    return html`<h1>${visible(id)}</h1><${ErrorBox} error=${error} onRetry=${details.reload} />
    ${!error && html`<p role="status" aria-busy="true">${t("app.loading")}</p>`}`;
  /** @param {"clear" | "delete"} method */
  const remove = async (method) => {
    await call(`${MEMORY}/${method}`, { conversation_id: id });
    toast(t(`conversations.${method}_done`));
    if (method !== "delete") return changed();
    for (const typed of ["message", "summary"]) write(`${typed}.${id}`, undefined);
    return go(link("conversations"));
  };
  return html`<p><a href=${link("conversations")}>${t("conversations.list")}</a></p>
    <h1>${visible(id)}</h1>
    <p class="faint">
      ${t("conversations.described", { count: value.total_count })} · ${t("conversations.changed", {
        time: formatTime(value.updated_at),
      })}</p>
    ${
      error?.status === 404
        ? html`<p class="notice wrong" role="alert">${t("conversations.gone")}</p>`
        : html`<${ErrorBox} error=${error} onRetry=${details.reload} />`
    }
    <${JumpLinks} label=${t("conversations.jump_links")}
      headings=${[["summary", t("conversations.summary")], ["context", t("conversations.context")]]} />
    <div class="transcript-and-context">
      <${Transcript} id=${id} details=${value} context=${context.value} onChange=${changed} />
      <div class="stack">
        <${Summary} id=${id} summary=${value.summary} total=${value.total_count} onChange=${changed} />
        <${Context} summary=${value.summary} context=${context} most=${most} setMost=${setMost} />
        <div class="actions">
          ${REMOVALS.map(
            (method) => html`<${ConfirmButton} key=${method} action=${t(`conversations.${method}`)}
              title=${t(`conversations.${method}_title`)} text=${t(`conversations.${method}_text`, { id: visible(id) })}
              onConfirm=${() => remove(method)} />`,
          )}
        </div>
      </div>
    </div>`;
}

function Transcript({ id, details, context, onChange }) {
  const { state, older, lookNow } = useMessages(id, onChange);
  const { box, note, leave } = useEnd();
  // Deleted messages are looked for at once.
  useEffect(() => {
    lookNow();
  }, [details.total_count]);
  const readOlder = () => {
    leave();
    older();
  };
  const { messages, more, loading, error } = state;
  const place = placesOf(messages, context, details.summary?.covers ?? 0);
  return html`<section aria-labelledby="transcript" class="transcript" aria-busy=${loading}>
    <h2 id="transcript">${t("conversations.transcript")}</h2>
    <${ErrorBox} error=${error} onRetry=${readOlder} />
    <div class="messages-box" ref=${box} tabindex="0" role="group" aria-label=${t("conversations.transcript")}
      onScroll=${note}><div>
    ${more && !loading && !error && html`<p><button onClick=${readOlder}>${t("conversations.older")}</button></p>`}
    ${!loading && !error && !messages.length && html`<div class="empty"><p>${t("conversations.no_messages")}</p></div>`}
    <ol class="plain messages">${messages.map(
      (each) => html`<${Message} key=${`${each.number} ${each.at}`} message=${each} place=${place(each)} />`,
    )}</ol></div></div>
    <${Composer} id=${id} onSent=${lookNow} />
  </section>`;
}

// The messages as far as they are loaded. `older` loads the page before them, `lookNow` looks for new ones.
function useMessages(id, onChange) {
  const [state, setState] = useState({ messages: [], cursor: undefined, more: true, loading: true, error: null });
  const latest = useRef(state);
  const looked = useRef(false); // true after the first look
  latest.current = state;
  const older = async () => {
    setState((old) => ({ ...old, loading: true, error: null }));
    try {
      const { messages, cursor } = await loadMessages(id, latest.current.cursor);
      const more = Boolean(cursor);
      setState((old) => ({ ...old, messages: merge(old.messages, messages), cursor, more, loading: false }));
    } catch (error) {
      setState((old) => ({ ...old, error, loading: false }));
    }
  };
  // The newest page is looked at again and again. If none of its messages is known, the transcript begins with it.
  const look = async (signal) => {
    const page = await loadMessages(id, undefined, signal).catch((error) => {
      if (error.status === 404 && looked.current) onChange(); // deleted by another
      if (!latest.current.messages.length) setState((old) => ({ ...old, error, loading: false }));
      throw error;
    });
    const { messages } = latest.current;
    const last = messages.at(-1);
    const joins = last && page.messages.some((each) => each.number === last.number && each.at === last.at);
    if (!joins) {
      if (looked.current && !messages.length && !page.messages.length) return;
      setState({ ...page, more: Boolean(page.cursor), loading: false, error: null });
      if (looked.current) onChange();
      looked.current = true;
      return;
    }
    if (merge(messages, page.messages) !== messages) {
      setState((old) => ({ ...old, messages: merge(old.messages, page.messages), error: null }));
      onChange();
    }
  };
  const polling = useRef(null);
  useEffect(() => {
    polling.current = poll(look, { every: LOOK_EVERY_MS });
    return () => polling.current.stop();
  }, [id]);
  return { state, older, lookNow: () => polling.current.now() };
}

async function loadMessages(id, cursor, signal) {
  const params = { conversation_id: id, limit: MESSAGE_PAGE, cursor };
  const page = await call(`${MEMORY}/list_messages`, params, { signal });
  return { messages: page.messages.reverse(), cursor: page.next_cursor };
}

// Keep the end of a box in view, unless the reader has scrolled away from it, or `leave` was called.
function useEnd() {
  const box = useRef(null);
  const atEnd = useRef(true);
  const top = useRef(0);
  const note = () => {
    if (!box.current) return; // the transcript has just left the page
    const { scrollTop, clientHeight, scrollHeight } = box.current;
    const isNear = scrollHeight - scrollTop - clientHeight < NEAR_END_PIXELS;
    // A text that grows after a scroll leaves its end behind; only a reader scrolls up.
    if (isNear || scrollTop < top.current) atEnd.current = isNear;
    top.current = scrollTop;
  };
  useEffect(() => {
    const observer = new ResizeObserver(() => {
      if (atEnd.current && box.current) box.current.scrollTop = box.current.scrollHeight;
    });
    observer.observe(box.current.firstElementChild);
    return () => observer.disconnect();
  }, []);
  const leave = () => {
    atEnd.current = false;
  };
  return { box, note, leave };
}

// Return a function from a message to where it is for the model: "given", "summarized", "lost", or "" if not known.
function placesOf(messages, context, covers) {
  if (!context) return () => "";
  const count = context.messages.length;
  const given = new Set(count ? messages.slice(-count).map((each) => each.number) : []);
  return ({ number }) => (given.has(number) ? "given" : number <= covers ? "summarized" : "lost");
}

function Message({ message, place }) {
  const { number, at, role, content } = message;
  return html`<li class="message ${role} ${place}">
    <p class="message-head"><strong>${t(`conversations.roles.${role}`)}</strong>
      <span class="faint"> ${t("conversations.number", { number })} · <time datetime=${at}>${formatTime(at)}</time>
        </span>
      ${place && html`<span class="tag place">${t(`conversations.places.${place}`)}</span>`}</p>
    <${Markdown} text=${visible(content)} /></li>`;
}

// Add the messages of which the numbers are not known yet: concurrent writers' appear in any order.
function merge(known, page) {
  const numbers = new Set(known.map((each) => each.number));
  const added = page.filter((each) => !numbers.has(each.number));
  return added.length ? [...known, ...added].sort((a, b) => a.number - b.number) : known;
}

function Composer({ id, onSent }) {
  const [role, setRole] = useState(/** @type {import("../types").Role} */ ("user"));
  const [content, setContent, takeContent] = useDraft(`message.${id}`);
  const { busy, error, run } = useAction(async () => {
    await call(`${MEMORY}/add_message`, { conversation_id: id, role, content });
    takeContent(content);
    onSent();
  });
  return html`<form class="composer" onSubmit=${run}>
    <${ErrorBox} error=${error} />
    <label>${t("conversations.add")}<textarea required rows="2" value=${content}
      onInput=${(event) => setContent(event.target.value)}></textarea></label>
    <div class="actions">
      <label><span class="hidden">${t("conversations.role")}</span><select value=${role}
        onChange=${(event) => setRole(event.target.value)}>
        ${ROLES.map((each) => html`<option value=${each}>${t(`conversations.roles.${each}`)}</option>`)}</select>
          </label>
      <button type="submit" aria-disabled=${busy}>${t("conversations.send")}</button>
    </div>
  </form>`;
}

function Summary({ id, summary, total, onChange }) {
  const [text, setText] = useDraft(`summary.${id}`, null); // while it is edited
  const { busy, error, run } = useAction(async () => {
    await call(`${MEMORY}/set_summary`, { conversation_id: id, summary: text });
    setText(null);
    toast(t("conversations.summary_saved"));
    onChange();
  });
  return html`<section class="panel" aria-labelledby="summary"><h2 id="summary">${t("conversations.summary")}</h2>
    ${
      text === null
        ? html`${
            summary?.text
              ? html`<p class="preserved">${visible(summary.text)}</p>
          <p class="faint">${t("conversations.covers", { count: summary.covers })} · ${formatTime(summary.updated_at)}
            </p>`
              : html`<p class="faint">${t("conversations.no_summary")}</p>`
          }
        <div class="actions"><button onClick=${() => setText(summary?.text ?? "")}>${t("conversations.edit_summary")}
          </button></div>`
        : html`<form onSubmit=${run}><${ErrorBox} error=${error} />
        <label><span class="hidden">${t("conversations.summary")}</span>
          <textarea rows="6" readonly=${busy} value=${text} onInput=${(event) => setText(event.target.value)}>
          </textarea></label>
        <p class="faint">${t("conversations.will_cover", { count: total })}</p>
        <div class="actions"><button type="submit" class="primary" aria-disabled=${busy}>${t("conversations.save")}
          </button><button type="button" aria-disabled=${busy} onClick=${() => setText(null)}>${t("app.cancel")}
          </button></div></form>`
    }
  </section>`;
}

// Exactly what a chatbot sends to its model: the summary, and the messages of get_context.
function Context({ summary, context, most, setMost }) {
  const messages = context.value?.messages ?? [];
  const given = { summary: summary?.text ?? "", messages };
  const size = new TextEncoder().encode(given.summary + messages.map((each) => each.content).join("")).length;
  return html`<section class="panel context" aria-labelledby="context" aria-busy=${context.loading}><h2 id="context">
    ${t("conversations.context")}</h2>
    <p class="faint">${t("conversations.context_text")}</p>
    <label>${t("conversations.most")} <input type="number" min="1" placeholder=${t("conversations.as_set")}
      value=${most} onInput=${(event) => setMost(event.target.value)} /></label>
    <${ErrorBox} error=${context.error} onRetry=${context.reload} />
    <p>${t("conversations.context_size", { count: messages.length, bytes: size })}</p>
    ${
      given.summary &&
      html`<pre class="plain-text" tabindex="0"><span class="tag">get_summary</span>${"\n"}
      ${visible(given.summary)}</pre>`
    }
    <ol class="plain given">${messages.map(
      (each, index) => html`<li key=${index}><pre class="plain-text" tabindex="0">
      <span class="tag">${each.role}</span>${"\n"}${visible(each.content)}</pre></li>`,
    )}</ol>
    <div class="actions"><${CopyButton} text=${JSON.stringify(given, null, 2)} label=${t("conversations.copy_json")} />
      </div>
  </section>`;
}
