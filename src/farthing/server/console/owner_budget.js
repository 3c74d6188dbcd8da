// Where the budget went, who may spend how much, and the state of the rows.

import { get, patiently, path, remove } from "./api.js";
import { steps } from "./charts.js";
import { amount, bound, confirmed, el, empty, into, meter, number, power, say, table } from "./dom.js";
import { operationForm } from "./forms.js";
import { signForm } from "./owner_setup.js";
import { term } from "./words.js";

export async function budgetView(about) {
  const at = path("owner", "datasets", about.name);
  const [time, { grants }] = await Promise.all([get(`${at}/budget-over-time`), get(`${at}/grants`)]);
  const account = about.accounts.findLast((one) => one.mode === "tariff" && one.open);
  const sofar = el("div", { class: "quiet" });
  if (account !== undefined) into(sofar, async () => learned(await patiently("GET", `${at}/odometer`)), "Proving what everybody has learned so far …");
  const purses = el("div");
  const draw = async (found) => purses.replaceChildren(await pursesOf(about, account, found, redraw));
  const redraw = async () => draw((await get(`${at}/grants`)).grants);
  await draw(grants);
  return el("div", { class: "stack" }, account === undefined ? await signForm(about)
    : el("section", { class: "card" }, el("h2", {}, "Spent"),
        el("p", {}, el("strong", { class: "big" }, number(account.farthings_spent)), ` of ${number(account.farthings)} `, term("farthing", "farthings"),
          account.delta_units ? [`; ${number(account.delta_units_spent)} of ${number(account.delta_units)} `, term("unit", "δ units")] : null),
        meter("The dataset's budget", account.farthings_spent, account.farthings), sofar),
    el("section", { class: "card" }, el("h2", {}, "Over time"), time.analysts.length === 0
      ? empty("Nothing was asked yet", "Each question appears here as a step, for each analyst.")
      : [steps("Farthings spent over time, by each analyst and by everybody; the totals are in the table of purses below.", withEverybody(time.analysts), account?.farthings ?? null)]),
    el("section", { class: "card" }, el("h2", {}, "Purses"), purses),
    account === undefined ? null : await listsOf(about, at));
}

async function listsOf(about, at) {
  const rows = el("div");
  const draw = (accounts) => {
    const lists = accounts.filter((one) => one.mode === "batch");
    rows.replaceChildren(lists.length === 0 ? el("p", { class: "quiet" }, "No list is registered.")
      : table("Registered lists", ["name", "for", ""].map((one) => one || el("span", { class: "unseen" }, "state")), lists.map((one) => [one.name, one.analyst, one.open ? "may be run" : "over"])));
  };
  draw(about.accounts);
  const form = await operationForm("register", { dataset: about.name, only: ["name", "analyst", "queries"], values: { queries: { all: { kind: "count" } } },
    button: "Prove and register", busy: "Proving what the list gives away …",
    done: async (_, { name, analyst }) => {
      draw((await get(`${at}/accounts`)).accounts);
      return el("p", { class: "good" }, `${analyst} may run the list ${name} once.`);
    } });
  return el("section", { class: "card" }, el("h2", {}, "Registered lists"),
    el("p", {}, "Questions that are fixed in advance get a tighter bound of their own. A list adds to what the dataset gives away; it is no part of a purse."), rows, form);
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

async function pursesOf(about, account, grants, redraw) {
  const at = path("owner", "datasets", about.name);
  const free = account === undefined ? 0 : account.farthings - grants.filter((one) => one.account === account.number).reduce((sum, one) => sum + (one.open ? one.farthings : one.farthings_spent), 0);
  const rows = grants.map((one) => [one.analyst, one.renewal ? `${number(one.farthings)} ${one.renewal}` : number(one.farthings), number(one.farthings_spent), one.open ? number(one.left.farthings) : "closed",
    one.open ? el("button", { type: "button", "aria-label": `Revoke the purse of ${one.analyst}`, onclick: () => ask(one) }, "Revoke") : ""]);
  const ask = (one) => confirmed(`Take back the ${amount(one.left)} that ${one.analyst} has left?`, "What was released stays readable for them. Their tokens stay valid until you withdraw them under Tokens.", "Revoke", async () => {
    const { taken } = await remove(`${at}${path("grants", one.analyst)}`);
    say(`Taken back: ${amount(taken)}`);
    await redraw();
  });
  const form = account === undefined ? null : await operationForm("grant", { dataset: about.name, only: ["analyst", "farthings", "renewal"], button: "Grant",
    head: [el("h3", {}, "Grant"), el("p", { class: "quiet" }, `${number(Math.max(0, free))} farthings of the cap are granted to nobody. A second grant adds to the first.`)],
    done: async (_, given) => {
      await redraw();
      return `Granted ${given.farthings} farthings to ${given.analyst}`;
    } });
  return el("div", {}, grants.length === 0 ? empty("No purse yet", account === undefined ? "Once a budget is signed, farthings can be granted." : "Grant an analyst some farthings below.")
    : table("Purses", ["analyst", "granted", "spent", "left", ""].map((one) => one || el("span", { class: "unseen" }, "actions")), rows, [1, 2, 3]),
  form);
}

export async function versionsView(about) {
  const now = el("strong", {}, about.version ?? "not declared: the rows may change");
  const form = await operationForm("declare_version", { dataset: about.name, only: ["version"], button: "Declare",
    ask: ({ version }) => [`Declare version ${version}?`, "Answers about the earlier rows are not given out again for nothing; asking again is paid for.", "Declare"],
    done: (answer) => {
      now.textContent = answer.version;
      return el("p", { class: "good" }, `The rows are version ${answer.version} now.`);
    } });
  return el("section", { class: "card" }, el("h2", {}, "Versions"), el("p", {}, "The rows are ", term("version"), " ", now, "."), form);
}
