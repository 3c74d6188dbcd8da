// Forms as the service describes them: controls for fields, and values from what was entered.

import { described, path, patiently } from "./api.js";
import { choice, confirmed, el, field, fresh, into, problem, say } from "./dom.js";

const NUMBERS = ["integer", "real", "decimal"];
export const forms = () => described("/forms");

// Commas between brackets do not separate: bins(age, 18, 30) is one key.
function split(text) {
  return text.split(/,(?![^(]*\))/).map((one) => one.trim()).filter((one) => one !== "");
}

const numberOf = (text) => (Number.isFinite(Number(text)) ? Number(text) : text);
const parts = (one) => (Array.isArray(one) ? one : [one, one]);

// What stands in a control; undefined if it is empty, null if the default was taken out of it.
function read(one, control) {
  if (one.kind === "yes") return control.checked;
  const text = control.value.trim();
  if (one.kind === "choice") return one.choices.map((each) => parts(each)[0]).find((each) => String(each) === text);
  if (text === "") return one.start === null ? undefined : null;
  if (one.kind === "whole" || one.kind === "number") return numberOf(text);
  if (one.kind === "columns" || one.kind === "list") return split(text);
  if (one.kind === "numbers") return split(text).map(numberOf);
  if (one.kind === "date") return `${text}T23:59:59Z`;
  if (one.kind === "json" || (one.name === "where" && text.startsWith("{"))) return JSON.parse(text);
  return text;
}

// Back from a value to what stands in a control.
function written(value) {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value)) return value.map((one) => (typeof one === "string" ? one : JSON.stringify(one))).join(", ");
  return typeof value === "object" ? JSON.stringify(value, null, 2) : String(value);
}

function controlOf(one, value, about, list) {
  const plain = { value: written(value), autocomplete: "off", spellcheck: "false", required: one.needed };
  if (one.kind === "yes") {
    const box = el("input", { type: "checkbox", id: fresh("tick") });
    box.checked = value === true;
    return box;
  }
  if (one.kind === "choice") {
    const options = one.choices.map((each) => parts(each).map(String));
    return choice(one.needed || one.start !== null ? options : [["", "no"], ...options], written(value));
  }
  if (one.kind === "column" || one.kind === "number column") {
    const known = about.columns.filter((each) => each.name !== about.unit && (one.kind === "column" || NUMBERS.includes(each.kind)));
    return choice([["", known.length ? "Choose …" : "This dataset has no column of numbers"], ...known.map((each) => [each.name, each.name])], plain.value);
  }
  if (one.kind === "columns") return el("input", { ...plain, required: false, list });
  if (one.kind === "json") return el("textarea", { ...plain, rows: 6, class: "code" });
  if (one.kind === "date") return el("input", { ...plain, type: "date" });
  return el("input", { ...plain, maxlength: one.kind === "text" ? null : 200, inputmode: { whole: "numeric", number: "decimal" }[one.kind] ?? null });
}

// Controls for some fields. `values` are what stands there first, where it is not the default.
export function entries(fields, { values = {}, about = null, list = null } = {}) {
  const controls = fields.map((one) => [one, controlOf(one, values[one.name] ?? one.start, about, list)]);
  const shown = ([one, control]) => (one.kind === "yes"
    ? el("div", { class: "field tick" }, control, el("label", { for: control.id }, one.label))
    : field(one.label, control, one.help || null));
  return {
    shown: (group = null) => controls.filter(([one]) => group === null || one.group === group).map(shown),
    missing: () => controls.find(([one, control]) => one.needed && control.value.trim() === "")?.[0] ?? null,
    values: () => Object.fromEntries(controls.map(([one, control]) => [one.name, read(one, control)]).filter(([, value]) => value !== undefined)),
  };
}

// A form of an owner's operation. `fixed` is sent besides what is entered; `ask` is asked first.
export async function operationForm(name, { dataset = "", only, values = {}, choices = {}, fixed = {}, head = [], button, busy, ask = null, done }) {
  const operation = (await forms()).operations[name];
  const fields = only.map((each) => operation.fields.find((one) => one.name === each))
    .map((one) => (one.name in choices ? { ...one, kind: "choice", needed: true, choices: choices[one.name] } : one));
  const entered = entries(fields, { values });
  const told = el("div", { "aria-live": "polite" });
  const at = `/owner${operation.path.replace("/{dataset}", path(dataset))}`;
  const send = async (body) => {
    const answer = await patiently(operation.method, at, body, { once: true });
    const words = await done(answer, body);
    if (typeof words === "string") say(words);
    return [words].flat().filter((one) => one instanceof Node);
  };
  const submit = (event) => {
    event.preventDefault();
    let body;
    try { body = { ...fixed, ...entered.values() }; } catch { return told.replaceChildren(problem({ message: "This is not JSON." })); }
    if (ask === null) return into(told, () => send(body), busy);
    return confirmed(...ask(body), async () => told.replaceChildren(...await send(body)));
  };
  return el("div", {}, el("form", { class: fields.length > 3 || fields.some((one) => one.kind === "json") ? "narrow" : "inline", onsubmit: submit }, head, entered.shown(),
    el("button", { type: "submit", class: "main" }, button)), told);
}
