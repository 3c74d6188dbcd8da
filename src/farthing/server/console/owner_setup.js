// From a dataset that the configuration names to one that can be asked: declare it, sign a budget.

import { get, patiently, path, post } from "./api.js";
import { choice, el, empty, field, into, problem, say, table } from "./dom.js";
import { term } from "./words.js";

const again = () => window.dispatchEvent(new HashChangeEvent("hashchange"));
const whole = (input) => (input.value.trim() === "" ? null : Number(input.value));

export async function declareView(name) {
  const { columns, left_out: leftOut } = await get(`${path("owner", "datasets", name)}/schema`);
  if (columns.length === 0) return empty("No column can be used", "The engine offers none whose type is known here.");
  const unit = choice([["", "Choose …"], ...columns.map((one) => [one.name, one.name])], "");
  unit.required = true;
  const labels = el("input", { inputmode: "numeric", pattern: "[1-9][0-9]*", autocomplete: "off" });
  const rows = el("input", { inputmode: "numeric", pattern: "[1-9][0-9]*", autocomplete: "off" });
  const version = el("input", { value: "1", maxlength: 200, autocomplete: "off" });
  const told = el("div", { "aria-live": "polite" });
  const declare = async (event) => {
    event.preventDefault();
    try {
      await post("/owner/datasets", { name, unit: unit.value, columns, contribution_limit: whole(labels), per_key_limit: whole(rows), version: version.value.trim() || null });
      say(`${name} is declared`);
      again();
    } catch (error) {
      told.replaceChildren(problem(error));
    }
  };
  return el("div", { class: "stack" }, el("section", { class: "card" }, el("h2", {}, "Declare it"),
    el("p", {}, "The configuration names this dataset; the ledger does not know it yet. Say whom it protects, and how often each of them may count."),
    el("form", { onsubmit: declare },
      field("Unit of privacy", unit, "The column that says whose row it is: all rows of one value are protected together."),
      field("Labels of one unit that count", labels, "Empty: each question says it. What is beyond is left out."),
      field("Rows of one unit that count for one label", rows, "Empty: each question says it."),
      field("Version of the rows", version, "Empty: the rows may change without notice."),
      el("button", { type: "submit", class: "main" }, "Declare")), told),
  el("section", { class: "card" }, el("h2", {}, "Columns"), table("Columns that the engine proposes", ["name", "kind"], columns.map((one) => [one.name, one.kind])),
    leftOut.length === 0 ? null : el("p", { class: "quiet" }, `Left out, because of their types: ${leftOut.map((one) => one.name).join(", ")}.`)));
}

export function signForm(about) {
  const epsilon = el("input", { required: true, value: "3", inputmode: "decimal", autocomplete: "off" });
  const delta = el("input", { required: true, value: "1e-6", autocomplete: "off" });
  const told = el("div", { "aria-live": "polite" });
  const sign = (event) => {
    event.preventDefault();
    into(told, async () => {
      await patiently("POST", `${path("owner", "datasets", about.name)}/tariffs`, { epsilon: Number(epsilon.value), delta: Number(delta.value) }, { once: true });
      say("The budget is signed");
      again();
      return [];
    }, "Proving the budget; this takes seconds …");
  };
  return el("section", { class: "card" }, el("h2", {}, "Sign a budget"),
    el("p", {}, "No tariff is in force, so nothing can be asked. From ", term("epsilon"), " and ", term("delta"), " a price list is made and proved: whoever spends it all, however, stays within both."),
    el("form", { class: "inline", onsubmit: sign }, field("ε", epsilon), field("δ", delta), el("button", { type: "submit", class: "main" }, "Prove and sign")), told);
}
