// Markdown as HTML. HTML inside of it is shown as text; scripts, styles and other sites' images never get into the
// page.
import { useEffect, useRef, useState } from "preact/hooks";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { decoded } from "../router.js";
import { slug } from "./document_link.js";
import { PlainText } from "./plain_text.js";

const LARGE = 200_000; // characters from which rendering takes long enough to be asked for
const LONG_PARAGRAPH = 50_000; // characters without an empty line; the time for emphasis grows with their square
const SHOWN_IMAGE = /^data:image\/(?:png|jpeg|gif|webp);/i; // DOMPurify lets every kind of data: pass in an image
const ABSOLUTE = /^(?:https?|mailto):/i;
const TAGS =
  "a blockquote br code del em h1 h2 h3 h4 h5 h6 hr img input li ol p pre strong table " + "tbody td th thead tr ul";
const ALLOWED = {
  ALLOWED_TAGS: TAGS.split(" "),
  ALLOWED_ATTR: ["align", "alt", "checked", "class", "disabled", "href", "src", "start", "title", "type"],
  // A relative address passes here, and is resolved or removed afterwards.
  ALLOWED_URI_REGEXP: /^(?:https?:|mailto:|#|data:image\/(?:png|jpeg|gif|webp);|(?!\/\/|\\)[^:/?#\\]*(?:[/?#]|$))/i,
};

let renderer = null;

// Load marked and DOMPurify, once; return a function from Markdown to a document fragment. A failure is not kept.
async function loadRenderer() {
  renderer ??= importRenderer();
  try {
    return await renderer;
  } catch (error) {
    renderer = null;
    throw error;
  }
}

async function importRenderer() {
  const [{ Marked }, { default: purify }] = await Promise.all([import("marked"), import("dompurify")]);
  const marked = new Marked({ gfm: true });
  marked.use({ renderer: { html: ({ text }) => escaped(text) } });
  return (text, resolve) => {
    const fragment = purify.sanitize(marked.parse(text, { async: false }), { ...ALLOWED, RETURN_DOM_FRAGMENT: true });
    replaceUnsafe(fragment, resolve);
    /** @type {NodeListOf<HTMLElement>} */
    const wide = fragment.querySelectorAll("pre, table");
    for (const each of wide) each.tabIndex = 0;
    return fragment;
  };
}

// Links open elsewhere, images of other sites become links, and boxes cannot be ticked. `resolve` returns the address
// of a link to another document or a heading, if there is one.
function replaceUnsafe(fragment, resolve) {
  for (const image of fragment.querySelectorAll("img")) {
    if (!SHOWN_IMAGE.test(image.getAttribute("src"))) image.replaceWith(imageLink(image));
  }
  for (const anchor of fragment.querySelectorAll("a[href]")) setAddress(anchor, resolve);
  for (const box of fragment.querySelectorAll("input")) box.replaceWith(box.checked ? "☑" : "☐");
}

function setAddress(anchor, resolve) {
  const href = anchor.getAttribute("href");
  const address = resolve?.(href) ?? (href.startsWith("#") ? href : null);
  if (ABSOLUTE.test(href)) Object.assign(anchor, { target: "_blank", rel: "noopener noreferrer" });
  else if (address) anchor.setAttribute("href", address);
  else anchor.removeAttribute("href");
}

function escaped(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

// An image of another site is not loaded: it would tell that site who reads. One of another kind is its text alone.
function imageLink(image) {
  const source = image.getAttribute("src");
  const anchor = document.createElement("a");
  anchor.textContent = image.alt || source || "";
  if (source && /^https?:/i.test(source))
    Object.assign(anchor, { href: source, target: "_blank", rel: "noopener noreferrer" });
  return anchor;
}

// For `onRender`: headings of a part of a document would break the order of the page's own, so they become paragraphs.
export function flattenHeadings(fragment) {
  for (const heading of fragment.querySelectorAll("h1, h2, h3, h4, h5, h6")) {
    const paragraph = document.createElement("p");
    paragraph.className = "heading";
    paragraph.append(...heading.childNodes);
    heading.replaceWith(paragraph);
  }
}

// Links to headings lead to those of the same text, not to pages of the console.
function stayOnPage(event) {
  const address = event.target.closest?.("a[href^='#']")?.getAttribute("href");
  if (!address || address.startsWith("#/")) return;
  event.preventDefault();
  const wanted = slug(decoded(address.slice(1)));
  const headings = [...event.currentTarget.querySelectorAll("h1, h2, h3, h4, h5, h6, .heading")];
  headings.find((each) => slug(each.textContent) === wanted)?.scrollIntoView();
}

function takesLong(text) {
  return text.length > LARGE || text.split("\n\n").some((paragraph) => paragraph.length > LONG_PARAGRAPH);
}

// Show Markdown; a large text as it is, until the reader wants it rendered. `onRender` may change the safe fragment,
// and `resolve` gives links between documents their address.
// A text that cannot be rendered is shown as it is too.
export function Markdown({ text, onRender, resolve }) {
  const box = useRef(null);
  const [wanted, setWanted] = useState(false);
  const [failed, setFailed] = useState(null); // the text that could not be rendered
  const large = !wanted && takesLong(text);
  useEffect(() => {
    if (large) return undefined;
    let current = true;
    loadRenderer()
      .then((render) => {
        if (!current || !box.current) return;
        const fragment = render(text, resolve);
        onRender?.(fragment);
        box.current.replaceChildren(fragment);
      })
      .catch(() => current && setFailed(text));
    return () => {
      current = false;
    };
  }, [text, large]);
  if (failed === text) return html`<${PlainText} text=${text} />`;
  if (!large) return html`<div class="markdown" ref=${box} onClick=${stayOnPage}></div>`;
  return html`<p><button onClick=${() => setWanted(true)}>${t("app.render")}</button></p><${PlainText} text=${text} />`;
}
