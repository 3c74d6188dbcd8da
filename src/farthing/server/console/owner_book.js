// What the book says: the certified profile, history, statement, verification; and the planner.

import { get, patiently, path, post } from "./api.js";
import { curves } from "./charts.js";
import { amount, bound, choice, el, empty, field, into, later, moment, number, power, problem, save, say, table } from "./dom.js";
import { markdown } from "./markdown.js";
import { term } from "./words.js";

const at = (about) => path("owner", "datasets", about.name);

export async function profileView(about) {
  let found;
  try {
    found = await get(`${at(about)}/profile`);
  } catch (error) {
    if (error.status !== 404) throw error;
    return empty("No tariff is in force", "Once one is signed, its certified profile stands here.");
  }
  const drawn = found.curves.filter((one) => one.points.filter(([, delta]) => delta > 0).length > 1);
  const addition = found.curves.find((one) => one.name === "adding up")?.points[0];
  const by = (name, delta) => found.curves.find((one) => one.name === name)?.points.find((point) => Math.abs(Math.log10(point[1] / delta)) < 1e-6)?.[0];
  const rows = found.claims.map((one) => [power(one.delta), bound(one.upper), bound(by("zero-concentrated DP", one.delta) ?? null), addition ? bound(addition[0]) : "does not apply"]);
  return el("section", { class: "card" }, el("h2", {}, "Certified profile"),
    el("p", {}, "The ", term("profile"), ` of everything that ${number(found.farthings)} `, term("farthing", "farthings"), " can ever buy: ", term("delta", "δ"), " for each ", term("epsilon", "ε"), ". Lower is better; the other lines are what other bounds would have to say of the same prices."),
    el("p", {}, found.meaning),
    curves("δ against ε, certified and by other bounds; the values that are claimed are in the table below.", drawn),
    table("ε at most", ["at δ", "ε, certified", "ε by zero-concentrated DP", "ε by adding up"], rows, [1, 2, 3]),
    found.claims.map((one) => el("p", { class: "quiet" }, `The best value that any proof could give at δ = ${power(one.delta)} is between ${(Math.floor(one.lower * 100) / 100).toFixed(2)} and ${bound(one.upper)}.`)),
    el("p", { class: "quiet" }, `By: ${found.theorem}.`),
    el("button", { type: "button", onclick: async () => save(`${about.name}-certificate.json`, "application/json", JSON.stringify(await get(`${at(about)}/certificate`), null, 2)) }, "Download the certificate"));
}

export async function historyView(about) {
  const names = [...new Set(about.grants.map((one) => one.analyst))];
  const who = choice([["", "everybody"], ...names.map((one) => [one, one])], "");
  const place = el("div", { "aria-live": "polite" });
  const load = () => into(place, async () => {
    const query = who.value ? `?analyst=${encodeURIComponent(who.value)}` : "";
    const { asked } = await get(`${at(about)}/history${query}`);
    if (asked.length === 0) return empty("Nothing was asked yet", "Questions appear here with who asked them and what they cost.");
    return table("Questions, the latest first", ["asked", "by", "when", "price", "outcome"],
      asked.reverse().map((one) => [one.caption, one.analyst, moment(one.time), amount(one), OUTCOMES[one.outcome]]));
  });
  who.addEventListener("change", load);
  load();
  return el("section", { class: "card" }, el("h2", {}, "History"), field("Asked by", who), place);
}

const OUTCOMES = { open: "open", close: "answered", abandon: "ended without an answer; stays paid", end: "ended" };

export function statementView(about) {
  const place = el("div", { class: "statement" });
  into(place, async () => {
    const found = await patiently("GET", `${at(about)}/statement`);
    return [el("div", { class: "row" },
      el("button", { type: "button", onclick: () => save(`${about.name}-statement.md`, "text/markdown", found.markdown) }, "Download as a page"),
      el("button", { type: "button", onclick: () => save(`${about.name}-statement.json`, "application/json", JSON.stringify(found.statement, null, 2)) }, "Download JSON")),
    ...markdown(found.markdown)];
  }, "Proving what the statement says; this may take seconds …");
  return el("section", { class: "card" }, place);
}

export function verifyView(about) {
  const place = el("div", { "aria-live": "polite" });
  const check = (prove) => into(place, async () => {
    const { verified } = await patiently("POST", `${at(about)}/verify${prove ? "?prove=true" : ""}`);
    say("The book is sound");
    return verified.map((one) => el("div", { class: "good" }, el("p", {}, el("strong", {}, "Sound. "),
      `${number(one.entries)} entries of ${one.dataset} follow from each other; ${number(one.certificates)} certificates ${one.proved ? "proved again from nothing" : "read"}.`),
    el("p", {}, "Head: ", el("code", {}, one.head), ". Keep it elsewhere: then nobody can rewrite what came before without being seen.")));
  }, prove ? "Proving every certificate once more …" : "Walking the chain …");
  return el("section", { class: "card" }, el("h2", {}, "Verification"),
    el("p", {}, "Every entry of the ledger carries the hash of the one before. Verifying walks the chain and plays every entry again."),
    el("div", { class: "row" }, el("button", { type: "button", class: "main", onclick: () => check(false) }, "Verify"),
      el("button", { type: "button", onclick: () => check(true) }, "Verify and prove again")), place);
}

const EXAMPLES = [
  ["10xbr:0.1, 10xgauss:25", "A top 10 with counts (br:0.1, noise 25)"], ["10xbr:0.1", "A top 10 without counts (br:0.1)"],
  ["1xgauss:12.5", "A count with noise 12.5"], ["20xgauss:25", "A histogram, 20 labels for each unit, noise 25"], ["1xdp:0.1", "One ε-DP answer with ε = 0.1"],
];

export function plannerView() {
  const example = choice(EXAMPLES, EXAMPLES[0][0]);
  const items = el("input", { value: EXAMPLES[0][0], spellcheck: "false", autocomplete: "off" });
  const epsilon = el("input", { value: "3", inputmode: "decimal" });
  const delta = el("input", { value: "1e-6" });
  const months = el("input", { value: "12", inputmode: "numeric" });
  const place = el("div", { class: "plan", "aria-live": "polite", "aria-atomic": "true" });
  const update = later(250, async (signal) => {
    try {
      const found = await post("/owner/planner", { items: items.value.split(/,(?=\s*\d*x?[a-z])/).map((one) => one.trim()).filter(Boolean), epsilon: Number(epsilon.value), delta: Number(delta.value), months: Number(months.value) }, { signal });
      const monthly = found.a_month > 0;
      place.replaceChildren(
        el("p", {}, el("span", { class: "big" }, number(monthly ? found.a_month : found.questions)), monthly ? ` such questions a month, for ${months.value} months` : ` such questions in ${months.value} months: less than one a month`),
        el("p", {}, `${number(found.questions)} in all, within `, term("epsilon", "ε"), ` = ${epsilon.value} at `, term("delta", "δ"), ` = ${delta.value}.`),
        el("p", { class: "quiet" }, "At least so many: found at once, by moments. The proof of a signed tariff may find room for more."));
    } catch (error) {
      if (error.name !== "AbortError" && error.kind !== "signed_out") place.replaceChildren(problem(error));
    }
  });
  example.addEventListener("change", () => { items.value = example.value; update(); });
  const form = el("form", { oninput: update, onsubmit: (event) => event.preventDefault() },
    field("One question is", example), field("It buys", items, "Items with commas: 10xbr:0.1 is ten selections of ε 0.1, gauss:25 noise of standard deviation 25 on a count, dp:0.1 anything that is 0.1-DP."),
    field("ε", epsilon), field("δ", delta), field("Months", months));
  update();
  return el("div", { class: "two" }, el("section", { class: "card" }, el("h2", {}, "These items, this budget"), form),
    el("section", { class: "card", "aria-label": "How many" }, el("h2", {}, "So many questions"), place));
}
