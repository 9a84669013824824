// A form of a JSON schema, for the parameters of methods and of devices' tools.
import { useId } from "preact/hooks";
import { html } from "../html.js";
import { t } from "../i18n.js";

const LONG_TEXT = 200; // a text that may be longer gets several lines
const FINE_STEPS = 10_000; // a range with more steps has no slider

// Fields of an object schema. `value` has the values that are set; `onChange` gets the new object.
// `sliders` shows ranges as sliders, as controls of devices. `problems` are {field, message} of a refusal.
export function SchemaForm({ schema, value, onChange, sliders = false, problems = [] }) {
  const properties = Object.entries(schema.properties ?? {});
  const required = new Set(schema.required ?? []);
  const set = (name, field) => {
    const { [name]: _, ...others } = value;
    onChange(field === undefined ? others : { ...others, [name]: field });
  };
  if (!properties.length) return html`<p class="faint">${t("app.no_parameters")}</p>`;
  return html`<div class="fields">${properties.map(
    ([name, field]) => html`<${Field} key=${name} name=${name}
    schema=${field} value=${Object.hasOwn(value, name) ? value[name] : undefined}
      onChange=${(changed) => set(name, changed)} required=${required.has(name)}
    sliders=${sliders} problem=${problems.find((each) => each.field === name)?.message} />`,
  )}</div>`;
}

// Return the values that a form starts with: defaults, and nothing else. With `sliders`, ranges start at an end.
export function initialValue(schema, { sliders = false } = {}) {
  const values = Object.create(null); // a device may name a property __proto__
  for (const [name, field] of Object.entries(schema.properties ?? {})) {
    const { default: preset, ...kind } = simplified(field);
    const value = preset ?? kind.const ?? (sliders && schema.required?.includes(name) ? atEnd(kind) : undefined);
    if (value !== undefined) values[name] = value;
  }
  return values;
}

// Return the value that a control of a device starts with, where it has no default.
function atEnd(kind) {
  if (kind.type === "boolean") return false;
  return isRange(kind) ? kind.minimum : kind.enum?.[0];
}

// Return the schema without `null`, which every optional parameter accepts.
export function simplified(schema) {
  const { anyOf, oneOf, ...rest } = schema;
  const kinds = (anyOf ?? oneOf ?? []).filter((each) => each.type !== "null");
  if (kinds.length === 1) return { ...simplified(kinds[0]), ...rest };
  if (Array.isArray(schema.type)) {
    const types = schema.type.filter((each) => each !== "null");
    if (types.length === 1) return { ...schema, type: types[0] };
  }
  return schema;
}

function isRange({ type, minimum, maximum }) {
  return (type === "integer" || type === "number") && minimum !== undefined && maximum !== undefined;
}

function Field({ name, schema, value, onChange, required, sliders, problem }) {
  const id = useId();
  const kind = simplified(schema);
  const help = kind.description ?? "";
  const described = [help && `${id}-help`, problem && `${id}-problem`].filter(Boolean).join(" ") || undefined;
  const attributes = { id, required, "aria-describedby": described, "aria-invalid": problem ? "true" : undefined };
  const hints = html`${help && html`<span class="help" id="${id}-help">${help}</span>`}
    ${problem && html`<span class="problem" id="${id}-problem">${problem}</span>`}`;
  const isSwitch = kind.type === "boolean" && (required || sliders); // it always has a value
  const label = html`<span class="name">${kind.title && sliders ? kind.title : name}</span>
    ${required && !isSwitch && html`<span class="faint"> ${t("app.required")}</span>`}`;
  const parts = { kind, value, onChange, sliders, attributes, label, hints };
  if (kind.type === "object" && kind.properties) return fieldset(parts);
  if (isSwitch) return switchField(parts);
  return html`<div class="field"><label for=${id}>${label}</label>
    <${Control} kind=${kind} value=${value} onChange=${onChange} sliders=${sliders} attributes=${attributes} />${hints}
  </div>`;
}

function fieldset({ kind, value, onChange, sliders, label, hints }) {
  return html`<fieldset class="field"><legend>${label}</legend>${hints}
    <${SchemaForm} schema=${kind} value=${value ?? {}} sliders=${sliders}
      onChange=${(changed) => onChange(Object.keys(changed).length ? changed : undefined)} /></fieldset>`;
}

function switchField({ value, onChange, attributes, label, hints }) {
  return html`<div class="field"><label class="switch"><input type="checkbox" role="switch" ...${attributes}
    required=${false} checked=${value ?? false}
    onChange=${(event) => onChange(event.target.checked)} /> ${label}</label>${hints}</div>`;
}

function Control({ kind, value, onChange, sliders, attributes }) {
  const choices = choicesOf(kind);
  if (choices) return choiceControl({ choices, value, onChange, attributes });
  if (kind.type === "integer" || kind.type === "number") {
    return numberControl({ kind, value, onChange, sliders, attributes });
  }
  if (kind.type === "string") return textControl({ kind, value, onChange, attributes });
  if (kind.type === "array" && simplified(kind.items ?? {}).type === "string") {
    const change = (event) => onChange(event.target.value === "" ? undefined : event.target.value.split("\n"));
    return html`<textarea ...${attributes} rows="2" placeholder=${t("app.one_a_line")} value=${(value ?? []).join("\n")}
      onInput=${change}></textarea>`;
  }
  return html`<${JsonControl} value=${value} onChange=${onChange} attributes=${attributes} />`;
}

function choicesOf(kind) {
  if (kind.enum) return kind.enum;
  if (kind.const !== undefined) return [kind.const];
  return kind.type === "boolean" ? [true, false] : null;
}

function choiceControl({ choices, value, onChange, attributes }) {
  const change = (event) => onChange(event.target.value === "" ? undefined : JSON.parse(event.target.value));
  return html`<select ...${attributes} value=${value === undefined ? "" : JSON.stringify(value)} onChange=${change}>
    <option value="">${attributes.required ? t("app.choose") : t("app.not_set")}</option>
    ${choices
      .filter((each) => each !== null)
      .map(
        (each) => html`<option value=${JSON.stringify(each)}>${String(each)}
      </option>`,
      )}
  </select>`;
}

function numberControl({ kind, value, onChange, sliders, attributes }) {
  const step = kind.multipleOf ?? (kind.type === "integer" ? 1 : "any");
  const change = (event) => onChange(event.target.value === "" ? undefined : Number(event.target.value));
  const bounds = { min: kind.minimum, max: kind.maximum, step };
  const slider = sliders && isRange(kind) && kind.maximum - kind.minimum <= FINE_STEPS;
  const number = html`<input type="number" ...${attributes} ...${bounds} value=${value ?? ""} onInput=${change} />`;
  if (!slider) return number;
  const fine = step === "any" ? (kind.maximum - kind.minimum) / 100 : step;
  return html`<span class="slider"><input type="range" aria-labelledby=${attributes.id} ...${bounds} step=${fine}
    aria-label=${t("app.slider")} value=${value ?? kind.minimum} onInput=${change} />${number}</span>`;
}

function textControl({ kind, value, onChange, attributes }) {
  const change = (event) => onChange(event.target.value === "" ? undefined : event.target.value);
  const long = (kind.maxLength ?? Infinity) > LONG_TEXT && !kind.format && !kind.pattern;
  const length = { maxlength: kind.maxLength, minlength: kind.minLength };
  if (long) return html`<textarea ...${attributes} rows="1" value=${value ?? ""} onInput=${change}></textarea>`;
  return html`<input type="text" spellcheck=${false} ...${attributes} ...${length} value=${value ?? ""}
    onInput=${change} />`;
}

// A value that has no form of its own is written as JSON. Text that is not JSON is marked, and not taken.
function JsonControl({ value, onChange, attributes }) {
  const change = (event) => {
    const { value: text } = event.target;
    try {
      onChange(text.trim() === "" ? undefined : JSON.parse(text));
      event.target.setCustomValidity("");
    } catch {
      event.target.setCustomValidity(t("app.not_json"));
    }
  };
  return html`<textarea ...${attributes} class="code" rows="3" placeholder="JSON" spellcheck=${false}
    onInput=${change}>${value === undefined ? "" : JSON.stringify(value, null, 2)}</textarea>`;
}
