// The fields of a document that the editor edits.
import { newDraftId } from "./drafts.js";

export const COMPARED = ["body", "title", "tags", "mime_type"];
export const MIME_TYPES = ["text/markdown", "text/plain", "application/json"];

export function baseOf(document) {
  return { fields: fieldsOf(document), metadata: document.metadata };
}

export function fieldsOf(document) {
  const { title = "", tags = [] } = document?.metadata ?? {};
  const { body = "", mime_type: kind = MIME_TYPES[0] } = document?.content ?? {};
  return { id: "", title, tags: tags.join(", "), body, mime_type: kind };
}

// Return the metadata with the edited title and tags; fields of other programs stay.
export function metadataOf(metadata, { title, tags }) {
  const { title: _, tags: __, ...others } = metadata;
  const list = tags
    .split(",")
    .map((each) => each.trim())
    .filter(Boolean);
  return { ...(title && { title }), ...(list.length && { tags: list }), ...others };
}

// Return an id made of a title; `end` makes it unlikely to be taken.
export function suggestedId(title, end = `-${newDraftId().slice(0, 6)}`) {
  const words = title.normalize("NFD").replace(/\p{M}/gu, "").replaceAll(/[đĐ]/g, "d").toLowerCase();
  const slug = words
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, 60);
  return `${slug || "doc"}${end}`;
}
