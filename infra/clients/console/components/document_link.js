// Links inside documents: to another document by a relative path, and to a heading.
import { decoded } from "../router.js";

// Return {path, heading} of a link in the document at `base`, or null if it leads out of the collection.
export function linkTarget(base, href) {
  const [, address, heading = ""] = href.match(/^([^#]*)#?(.*)$/s);
  const way = decoded(address.replace(/\?.*$/s, ""));
  if (!way) return { path: base, heading: slug(decoded(heading)) };
  const folders = way.startsWith("/") ? [] : base.split("/").slice(0, -1);
  for (const part of way.split("/")) {
    if (part === "..") {
      if (!folders.length) return null;
      folders.pop();
    } else if (part && part !== ".") folders.push(part);
  }
  return folders.length ? { path: folders.join("/"), heading: slug(decoded(heading)) } : null;
}

// Return a heading as links name it.
export function slug(text) {
  return text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, "-")
    .replace(/^-+|-+$/g, "");
}
