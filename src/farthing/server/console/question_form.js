// A question as a form: the fields of its kind, and the body of a request from what stands in them.

import { choice, el, field, fresh } from "./dom.js";
import { AIMS, read, write } from "./kinds.js";

const NUMBERS = ["integer", "real", "decimal"];

// `kinds` says what can be asked here, `first` what stands there first unless `start` is a query.
export function questionForm(about, kinds, { label, first, start = null, update }) {
  const given = start !== null && kinds[start.kind] ? start : null;
  const kind = choice(Object.entries(kinds).map(([name, one]) => [name, one.words]), given?.kind ?? first);
  const fields = el("div", { class: "fields" });
  let controls = [];
  const names = about.columns.map((one) => one.name).filter((one) => one !== about.unit);
  const numeric = about.columns.filter((one) => NUMBERS.includes(one.kind) && one.name !== about.unit).map((one) => one.name);
  const options = fresh("columns");

  function build(values) {
    const table = kinds[kind.value];
    controls = table.fields.map((one) => [one, controlFor(one, values)]);
    const aims = table.aims.map((name) => [{ name, label: AIMS[name][0], note: AIMS[name][1], kind: "number", aim: true }, el("input", { inputmode: "decimal" })]);
    controls.push(...aims);
    const shown = ([one, control]) => (one.kind === "yes"
      ? el("div", { class: "field tick" }, control, el("label", { for: control.id }, one.label))
      : field(one.label, control, one.note ?? null));
    const limits = controls.filter(([one]) => one.limits);
    fields.replaceChildren(
      ...controls.filter(([one]) => !one.limits && !one.aim).map(shown),
      ...(table.aims.length ? [el("h3", {}, "How accurate")] : []), ...controls.filter(([one]) => one.aim).map(shown),
      ...(limits.length ? [el("details", {}, el("summary", {}, "Limits"), limits.map(shown))] : []));
    update();
  }

  function controlFor(one, values) {
    const said = values === null ? "" : write(one.kind, values[one.name]);
    const value = said === "" ? one.start ?? "" : said;
    if (one.kind === "yes") {
      const box = el("input", { type: "checkbox", id: fresh("tick"), onchange: update });
      box.checked = value;
      return box;
    }
    if (one.kind === "number column" || one.kind === "column") {
      const known = one.kind === "column" ? names : numeric;
      return choice([["", known.length ? "Choose …" : "This dataset has no column of numbers"], ...known.map((name) => [name, name])], value);
    }
    if (one.kind === "columns") return el("input", { list: options, value: value || (one.needed && values === null ? firstKey() : ""), autocomplete: "off" });
    return el("input", { value, autocomplete: "off", spellcheck: "false", inputmode: one.kind === "whole" ? "numeric" : one.kind === "number" ? "decimal" : null });
  }

  const firstKey = () => about.columns.find((one) => one.kind === "text" && one.name !== about.unit)?.name ?? "";
  kind.addEventListener("change", () => build(null));
  fields.addEventListener("input", update);
  const node = el("div", {}, field(label, kind), fields,
    el("datalist", { id: options }, names.map((one) => el("option", { value: one }))));
  build(given);
  const unfilled = () => controls.find(([one, control]) => one.needed && control.value.trim() === "");
  return {
    node,
    missing: () => `${unfilled()[0].label}: choose something first.`,
    body() {
      if (unfilled()) return null;
      const query = { kind: kind.value };
      const body = { query };
      for (const [one, control] of controls) {
        const value = read(one.kind, one.kind === "yes" ? control.checked : control.value);
        if (value === undefined) continue;
        (one.aim ? body : query)[one.name] = one.name === "where" && value.startsWith("{") ? JSON.parse(value) : value;
      }
      return body;
    },
  };
}
