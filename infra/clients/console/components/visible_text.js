// Texts of strangers and devices: characters that are invisible or turn the direction of text are shown as marks.
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that are replaced
const DECEPTIVE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

// Return the text with a mark for each control character; line breaks and tabs stay.
export function visible(text) {
  return String(text ?? "")
    .replace(/\r\n?/g, "\n")
    .replace(DECEPTIVE, "\ufffd");
}

// Return a value as text: JSON with two spaces unless it is a text itself.
export function asText(value) {
  return visible(typeof value === "string" ? value : JSON.stringify(value, null, 2));
}
