// From a dataset that the configuration names to one that can be asked: declare it, sign a budget.

import { get, path } from "./api.js";
import { el, empty, table } from "./dom.js";
import { operationForm } from "./forms.js";
import { term } from "./words.js";

const again = () => window.dispatchEvent(new HashChangeEvent("hashchange"));

export async function declareView(name) {
  const { columns, left_out: leftOut } = await get(`${path("owner", "datasets", name)}/schema`);
  if (columns.length === 0) return empty("No column can be used", "The engine offers none whose type is known here.");
  const form = await operationForm("declare", { only: ["unit", "contribution_limit", "per_key_limit", "version"], fixed: { name, columns },
    choices: { unit: [...columns.map((one) => one.name), ["row", "each row on its own: a person with several rows is not protected"]] }, button: "Declare", done: () => { again(); return `${name} is declared`; } });
  return el("div", { class: "stack" }, el("section", { class: "card" }, el("h2", {}, "Declare it"),
    el("p", {}, "The configuration names this dataset; the ledger does not know it yet. Say whom it protects, and how often each of them may count."), form),
  el("section", { class: "card" }, el("h2", {}, "Columns"), table("Columns that the engine proposes", ["name", "kind"], columns.map((one) => [one.name, one.kind])),
    leftOut.length === 0 ? null : el("p", { class: "quiet" }, `Left out, because of their types: ${leftOut.map((one) => one.name).join(", ")}.`)));
}

export async function signForm(about) {
  const form = await operationForm("sign", { dataset: about.name, only: ["epsilon", "delta"], values: { epsilon: 3, delta: "1e-6" },
    button: "Prove and sign", busy: "Proving the budget; this takes seconds …", done: () => { again(); return "The budget is signed"; } });
  return el("section", { class: "card" }, el("h2", {}, "Sign a budget"),
    el("p", {}, "No tariff is in force, so nothing can be asked. From ", term("epsilon"), " and ", term("delta"), " a price list is made and proved: whoever spends it all, however, stays within both."), form);
}
