// Where the budget went, who may spend how much, and the state of the rows.

import { get, patiently, path, post, remove } from "./api.js";
import { steps } from "./charts.js";
import { amount, bound, choice, el, empty, field, into, meter, number, power, problem, say, table } from "./dom.js";
import { signForm } from "./owner_setup.js";
import { term } from "./words.js";

export async function budgetView(about) {
  const at = path("owner", "datasets", about.name);
  const [time, { grants }] = await Promise.all([get(`${at}/budget-over-time`), get(`${at}/grants`)]);
  const account = about.accounts.findLast((one) => one.mode === "tariff" && one.open);
  const sofar = el("div", { class: "quiet" });
  if (account !== undefined) into(sofar, async () => learned(await patiently("GET", `${at}/odometer`)), "Proving what everybody has learned so far …");
  const purses = el("div");
  const draw = (found) => purses.replaceChildren(pursesOf(at, account, found, redraw));
  const redraw = async () => draw((await get(`${at}/grants`)).grants);
  draw(grants);
  return el("div", { class: "stack" }, account === undefined ? signForm(about)
    : el("section", { class: "card" }, el("h2", {}, "Spent"),
        el("p", {}, el("strong", { class: "big" }, number(account.farthings_spent)), ` of ${number(account.farthings)} `, term("farthing", "farthings"),
          account.delta_units ? [`; ${number(account.delta_units_spent)} of ${number(account.delta_units)} `, term("unit", "δ units")] : null),
        meter("The dataset's budget", account.farthings_spent, account.farthings), sofar),
    el("section", { class: "card" }, el("h2", {}, "Over time"), time.analysts.length === 0
      ? empty("Nothing was asked yet", "Each question appears here as a step, for each analyst.")
      : [steps("Farthings spent over time, by each analyst and by everybody; the totals are in the table of purses below.", withEverybody(time.analysts), account?.farthings ?? null)]),
    el("section", { class: "card" }, el("h2", {}, "Purses"), purses),
    account === undefined ? null : listsOf(about, at));
}

function listsOf(about, at) {
  const told = el("div", { "aria-live": "polite" });
  const rows = el("div");
  const draw = (accounts) => {
    const lists = accounts.filter((one) => one.mode === "batch");
    rows.replaceChildren(lists.length === 0 ? el("p", { class: "quiet" }, "No list is registered.")
      : table("Registered lists", ["name", "for", ""].map((one) => one || el("span", { class: "unseen" }, "state")), lists.map((one) => [one.name, one.analyst, one.open ? "may be run" : "over"])));
  };
  draw(about.accounts);
  const name = el("input", { required: true, maxlength: 200, autocomplete: "off" });
  const analyst = el("input", { required: true, maxlength: 200, autocomplete: "off" });
  const queries = el("textarea", { rows: 6, required: true, spellcheck: "false", class: "code", value: JSON.stringify({ all: { kind: "count" } }, null, 2) });
  const register = (event) => {
    event.preventDefault();
    let given;
    try { given = JSON.parse(queries.value); } catch { return told.replaceChildren(problem({ message: "The questions are not JSON." })); }
    into(told, async () => {
      await patiently("POST", `${at}/lists`, { name: name.value.trim(), analyst: analyst.value.trim(), queries: given }, { once: true });
      draw((await get(`${at}/accounts`)).accounts);
      return el("p", { class: "good" }, `${analyst.value.trim()} may run the list ${name.value.trim()} once.`);
    }, "Proving what the list gives away …");
  };
  return el("section", { class: "card" }, el("h2", {}, "Registered lists"),
    el("p", {}, "Questions that are fixed in advance get a tighter bound of their own. A list adds to what the dataset gives away; it is no part of a purse."), rows,
    el("form", { onsubmit: register }, field("Name of the list", name), field("Who may run it", analyst),
      field("Questions as JSON", queries, "{\"name\": {query}, …}"), el("button", { type: "submit", class: "main" }, "Prove and register")), told);
}

function withEverybody(lines) {
  if (lines.length < 2) return lines;
  const each = lines.flatMap((one) => one.points.map(([at, spent], i) => [at, spent - (one.points[i - 1]?.[1] ?? 0)]));
  let sum = 0;
  const points = each.sort((a, b) => Date.parse(a[0]) - Date.parse(b[0])).map(([at, price]) => [at, sum += price]);
  return [{ analyst: "everybody", points }, ...lines];
}

function learned(found) {
  return el("p", {}, "What everybody together has learned ", term("odometer"), " is within ", term("epsilon", "ε"), ` ≤ ${bound(found.epsilon)} at `, term("delta", "δ"), ` = ${power(found.delta)}.`);
}

function pursesOf(at, account, grants, redraw) {
  const free = account === undefined ? 0 : account.farthings - grants.filter((one) => one.account === account.number).reduce((sum, one) => sum + (one.open ? one.farthings : one.farthings_spent), 0);
  const told = el("div", { "aria-live": "polite" });
  const rows = grants.map((one) => [one.analyst, one.renewal ? `${number(one.farthings)} ${one.renewal}` : number(one.farthings), number(one.farthings_spent), one.open ? number(one.left.farthings) : "closed",
    one.open ? el("button", { type: "button", "aria-label": `Revoke the purse of ${one.analyst}`, onclick: () => ask(one) }, "Revoke") : ""]);
  const ask = (one) => confirmed(`Take back the ${amount(one.left)} that ${one.analyst} has left?`, "What was released stays readable for them. Their tokens stay valid until you withdraw them under Tokens.", "Revoke", async () => {
    const { taken } = await remove(`${at}${path("grants", one.analyst)}`);
    say(`Taken back: ${amount(taken)}`);
    await redraw();
  });
  const analyst = el("input", { required: true, maxlength: 200, autocomplete: "off" });
  const farthings = el("input", { required: true, inputmode: "numeric", pattern: "[0-9]+", autocomplete: "off" });
  const renewal = choice([["", "once"], ["monthly", "every month"]], "");
  const give = async (event) => {
    event.preventDefault();
    try {
      await post(`${at}/grants`, { analyst: analyst.value.trim(), farthings: Number(farthings.value), ...(renewal.value ? { renewal: renewal.value } : {}) });
      say(`Granted ${farthings.value} farthings to ${analyst.value}`);
      await redraw();
    } catch (error) {
      told.replaceChildren(problem(error));
    }
  };
  return el("div", {}, grants.length === 0 ? empty("No purse yet", account === undefined ? "Once a budget is signed, farthings can be granted." : "Grant an analyst some farthings below.")
    : table("Purses", ["analyst", "granted", "spent", "left", ""].map((one) => one || el("span", { class: "unseen" }, "actions")), rows, [1, 2, 3]),
  account === undefined ? null : el("form", { class: "inline", onsubmit: give }, el("h3", {}, "Grant"),
    el("p", { class: "quiet" }, `${number(Math.max(0, free))} farthings of the cap are granted to nobody. A second grant adds to the first.`),
    field("Analyst", analyst), field("Farthings", farthings), field("Renewed", renewal), el("button", { type: "submit", class: "main" }, "Grant")), told);
}

// Something that cannot be undone is asked for twice.
export function confirmed(title, words, action, act) {
  const told = el("div");
  const dialog = el("dialog", { "aria-label": title }, el("h2", {}, title), el("p", {}, words), told,
    el("div", { class: "row" }, el("button", { type: "button", class: "main", onclick: async () => {
      try {
        await act();
        dialog.close();
      } catch (error) {
        told.replaceChildren(problem(error));
      }
    } }, action), el("button", { type: "button", onclick: () => dialog.close() }, "Cancel")));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

export function versionsView(about) {
  const told = el("div", { "aria-live": "polite" });
  const name = el("input", { required: true, maxlength: 200, autocomplete: "off" });
  const now = el("strong", {}, about.version ?? "not declared: the rows may change");
  const declare = (event) => {
    event.preventDefault();
    confirmed(`Declare version ${name.value}?`, "Answers about the earlier rows are not given out again for nothing; asking again is paid for.", "Declare", async () => {
      const found = await post(`${path("owner", "datasets", about.name)}/versions`, { version: name.value.trim() });
      now.textContent = found.version;
      told.replaceChildren(el("p", { class: "good" }, `The rows are version ${found.version} now.`));
    });
  };
  return el("section", { class: "card" }, el("h2", {}, "Versions"), el("p", {}, "The rows are ", term("version"), " ", now, "."),
    el("form", { class: "inline", onsubmit: declare }, field("New version", name, "Declare it when the rows have changed."), el("button", { type: "submit", class: "main" }, "Declare")), told);
}
