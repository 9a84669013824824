// The state of an editor: the fields, the draft that is kept of them, and saving.
import { useEffect, useRef, useState } from "preact/hooks";
import { call } from "../api.js";
import { toast } from "../components/toast.js";
import { t } from "../i18n.js";
import { abandonedDrafts, claimDraft, newDraftId } from "./drafts.js";
import { baseOf, COMPARED, fieldsOf, metadataOf, suggestedId } from "./fields.js";

const KEEP_AFTER_MS = 300;

// Return what the editor shows and does. `touch` notes a change, `set(name, value)` makes one.
export function useEditor({ document, parentId, start, onDone }) {
  const [base, setBase] = useState({ fields: fieldsOf(document), metadata: document?.metadata ?? {} });
  const [fields, setFields] = useState({ ...base.fields, ...start });
  const [revision, setRevision] = useState(document?.revision);
  const requestId = useRef("");
  const documentId = document?.document_id ?? `new below ${parentId}`;
  const draft = useKeptDraft({ document_id: documentId, parent_id: parentId, revision, fields });
  const startFrom = (theirs) => {
    setBase(baseOf(theirs));
    setRevision(theirs.revision);
  };
  const restored = useRestoredDraft({ document, documentId, start, draft, startFrom, setFields });
  const touch = () => {
    requestId.current = "";
    draft.touch();
  };
  useEffect(() => {
    if (start) touch();
  }, []);
  const set = (name, value) => {
    setFields((old) => ({ ...old, [name]: value }));
    touch();
  };
  const finish = (id) => {
    draft.discard();
    onDone(id);
  };
  const saving = useSaving({ document, parentId, base, fields, revision, requestId, setFields, finish });
  return { base, fields, isKept: draft.isKept, restored, saving, set, touch, startFrom, finish };
}

// Keep what is typed in the browser, shortly after each change and when the page is hidden or left.
function useKeptDraft(content) {
  const [isKept, setKept] = useState(true);
  const draft = useRef(null);
  const state = useRef({ timer: 0, dirty: false });
  const current = useRef(content);
  current.current = content;
  const keep = () => {
    clearTimeout(state.current.timer);
    if (state.current.dirty && draft.current) setKept(draft.current.save(current.current));
    state.current.dirty = false;
  };
  useEffect(() => {
    addEventListener("pagehide", keep);
    document.addEventListener("visibilitychange", keep);
    return () => {
      keep();
      draft.current?.release();
      removeEventListener("pagehide", keep);
      document.removeEventListener("visibilitychange", keep);
    };
  }, []);
  return {
    isKept,
    claim: (name) => {
      draft.current = claimDraft(name);
    },
    touch: () => {
      state.current.dirty = true;
      clearTimeout(state.current.timer);
      state.current.timer = setTimeout(keep, KEEP_AFTER_MS);
    },
    discard: () => {
      clearTimeout(state.current.timer);
      state.current.dirty = false;
      draft.current?.discard();
    },
  };
}

// Restore a draft that no tab is working on. `unplaced` is one whose base could not be read, `at` is when it was kept.
function useRestoredDraft({ document, documentId, start, draft, startFrom, setFields }) {
  const [state, setState] = useState({ ready: false, at: null, unplaced: null, error: null });
  const closed = useRef(false);
  const restore = async () => {
    setState((old) => ({ ...old, error: null }));
    try {
      const [abandoned] = start ? [] : await abandonedDrafts(documentId);
      setState((old) => ({ ...old, unplaced: abandoned ?? null }));
      // The text that the draft began with tells later what others have changed.
      const isOld = abandoned && document && abandoned.revision !== document.revision;
      const before = isOld ? await readDocument(documentId, abandoned.revision) : null;
      if (closed.current) return;
      draft.claim(abandoned?.name);
      if (before) startFrom(before);
      if (abandoned) setFields(abandoned.fields);
      setState((old) => ({ ...old, ready: true, at: abandoned?.at ?? null }));
    } catch (error) {
      setState((old) => ({ ...old, error }));
    }
  };
  useEffect(() => {
    restore();
    return () => {
      closed.current = true;
    };
  }, []);
  return { ...state, restore };
}

// Save at a revision. Nothing can be typed until the outcome is known: the draft is discarded with what was saved.
// A conflict that changed no text, such as a move, is none for the reader.
function useSaving({ document, parentId, base, fields, revision, requestId, setFields, finish }) {
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const [conflict, setConflict] = useState(null);
  const fail = (problem) => {
    setBusy(false);
    setError(problem);
  };
  const send = async (at, against) => {
    if (document) {
      return update({ document, fields, base: against, revision: at, requestId: `${requestId.current}-${at}` });
    }
    const id = fields.id.trim() || suggestedId(fields.title);
    if (!fields.id.trim()) setFields((old) => ({ ...old, id }));
    return create({ id, parentId, fields, requestId: requestId.current });
  };
  const save = async (at = revision, against = base) => {
    setBusy(true);
    setError(null);
    // A save that is sent again because its answer was lost happens once.
    requestId.current ||= newDraftId();
    try {
      const id = await send(at, against);
      toast(t("documents.saved"));
      finish(id);
    } catch (problem) {
      if (problem.code === "CONFLICT" && problem.details?.current_revision) await resolve(problem, against);
      else fail(problem);
    }
  };
  const resolve = async (problem, against) => {
    try {
      const theirs = await readDocument(document.document_id);
      const fieldsOfTheirs = fieldsOf(theirs);
      if (COMPARED.every((name) => fieldsOfTheirs[name] === against.fields[name])) {
        await save(theirs.revision, baseOf(theirs));
      } else {
        setBusy(false);
        setConflict(theirs);
      }
    } catch (other) {
      fail(other.status === 404 ? problem : other);
    }
  };
  return { isBusy, error, conflict, save, closeConflict: () => setConflict(null) };
}

function readDocument(id, revision) {
  return call("agent-data/get_document", { document_id: id, revision });
}

async function create({ id, parentId, fields, requestId }) {
  const content = { mime_type: fields.mime_type, body: fields.body };
  const metadata = metadataOf({}, fields);
  const params = { document_id: id, parent_id: parentId, content, metadata, request_id: requestId };
  await call("agent-data/create_document", params);
  return id;
}

// Send what differs from `base`, if anything does.
async function update({ document, fields, base, revision, requestId }) {
  const { document_id: id } = document;
  const patch = {};
  const changed = (...names) => names.some((name) => fields[name] !== base.fields[name]);
  if (changed("body", "mime_type")) patch.content = { mime_type: fields.mime_type, body: fields.body };
  if (changed("title", "tags")) patch.metadata = metadataOf(base.metadata, fields);
  if (!Object.keys(patch).length) return id;
  const params = { document_id: id, patch, last_known_revision: revision, request_id: requestId };
  await call("agent-data/update_document", params);
  return id;
}
