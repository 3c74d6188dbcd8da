// A question as a form: the fields of its kind, and the body of a request from what stands in them.

import { choice, el, field, fresh } from "./dom.js";
import { entries } from "./forms.js";

// `kinds` says what can be asked here, `first` what stands there first unless `start` is a query.
export function questionForm(about, kinds, { label, first, start = null, update }) {
  const given = start !== null && kinds[start.kind] ? start : null;
  const kind = choice(Object.entries(kinds).map(([name, one]) => [name, one.words]), given?.kind ?? first);
  const note = el("p", { class: "quiet" });
  const fields = el("div", { class: "fields" });
  const list = fresh("columns");
  const names = about.columns.map((one) => one.name).filter((one) => one !== about.unit);
  const firstKey = about.columns.find((one) => one.kind === "text" && one.name !== about.unit)?.name ?? null;
  let asked, aims;

  function build(values) {
    const form = kinds[kind.value];
    const needsKey = form.fields.some((one) => one.name === "by" && one.needed);
    asked = entries(form.fields, { values: values ?? (needsKey ? { by: firstKey } : {}), about, list });
    aims = entries(form.aims);
    const hidden = (group, words) => {
      const shown = asked.shown(group);
      return shown.length ? [el("details", {}, el("summary", {}, words), shown)] : [];
    };
    note.textContent = form.help;
    fields.replaceChildren(...asked.shown("first"), ...(form.aims.length ? [el("h3", {}, "How accurate"), ...aims.shown()] : []),
      ...hidden("limits", "Limits"), ...hidden("more", "More"));
    update();
  }

  kind.addEventListener("change", () => build(null));
  fields.addEventListener("input", update);
  const node = el("div", {}, field(label, kind), note, fields,
    el("datalist", { id: list }, names.map((one) => el("option", { value: one }))));
  build(given);
  return {
    node,
    missing: () => `${asked.missing().label}: choose something first.`,
    body: () => (asked.missing() === null ? { query: { kind: kind.value, ...asked.values() }, ...aims.values() } : null),
  };
}
