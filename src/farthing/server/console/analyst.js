// What an analyst sees: datasets, asking, what was released, what is proved.

import { get, path } from "./api.js";
import { showAnswer } from "./answers.js";
import { askView } from "./asking.js";
import { amount, bound, el, empty, into, meter, moment, number, power, short, table } from "./dom.js";
import { watchView } from "./watching.js";
import { term } from "./words.js";

const TABS = [["ask", "Ask"], ["watch", "Watch"], ["history", "History"], ["about", "About the data"]];

export async function analystView(route, show) {
  const [dataset, tab = "ask"] = route;
  if (dataset === undefined) {
    const { datasets } = await get("/datasets");
    if (datasets.length === 1) return analystView([datasets[0].name], show);
    return show("Datasets", datasets.length === 0
      ? empty("No dataset yet", "Nothing was granted to you here. Ask an owner for farthings; then the dataset appears.")
      : el("ul", { class: "cards" }, datasets.map((one) => el("li", { class: "card" },
        el("h2", {}, el("a", { href: `#/${encodeURIComponent(one.name)}` }, one.name)),
        el("p", { class: "quiet" }, `${one.columns.length} columns; protects each ${one.unit}`), left(one.purse)))));
  }
  const about = await get(path("datasets", dataset));
  const purse = el("div", { class: "purse" });
  const refresh = () => into(purse, async () => leftOf(await get(`${path("datasets", dataset)}/statement`)));
  const place = el("div");
  show(dataset, purse, tabs(dataset, tab, TABS), place);
  refresh();
  if (tab === "watch") return into(place, () => watchView(about, refresh));
  if (tab === "history") return into(place, () => historyOf(about));
  if (tab === "about") return into(place, async () => aboutData(about, await get(`${path("datasets", dataset)}/statement`)));
  const kept = sessionStorage.getItem("farthing.start");
  sessionStorage.removeItem("farthing.start");
  place.append(await askView(about, { start: kept === null ? null : JSON.parse(kept), changed: refresh }));
}

export function tabs(dataset, current, all) {
  const links = all.map(([name, words]) => el("a", { href: `#/${encodeURIComponent(dataset)}/${name}`, "aria-current": name === current ? "page" : null }, words));
  // on a phone the tabs are wider than the page: the current one is brought into view
  requestAnimationFrame(() => links.find((one) => one.ariaCurrent === "page")?.scrollIntoView({ inline: "center", block: "nearest" }));
  return el("nav", { class: "tabs", "aria-label": `Parts of ${dataset}` }, links);
}

function left(purse) {
  if (!purse.open) return el("p", { class: "caution" }, "This purse is closed. What was released to you stays readable.");
  return el("div", {}, el("p", {}, el("strong", {}, number(purse.left.farthings)), ` of ${number(purse.farthings)} `, term("farthing", "farthings"), " left",
    purse.delta_units ? [`, ${number(purse.left.delta_units)} of ${number(purse.delta_units)} `, term("unit", "δ units")] : null,
    purse.renewal ? `, renewed ${purse.renewal}` : null),
  meter("Your purse", purse.farthings_spent, purse.farthings));
}

function leftOf(said) {
  const sofar = said.told_you_so_far;
  return el("div", {}, left(said.purse), el("p", { class: "quiet" },
    sofar === null ? "What you were told so far is not measured for this purse." : ["All that you were told so far: ", term("epsilon", "ε"), ` ≤ ${bound(sofar.epsilon)} at `, term("delta", "δ"), ` = ${power(sofar.delta)}.`]));
}

async function historyOf(about) {
  const at = `${path("datasets", about.name)}/releases`;
  const list = el("ul", { class: "releases" });
  const more = el("button", { type: "button", hidden: true }, "Earlier ones");
  let last = null;
  const load = async () => {
    const found = await get(last === null ? at : `${at}?before=${last}`);
    list.append(...found.releases.map((one) => releaseRow(about, at, one)));
    last = found.releases.at(-1)?.id ?? last;
    more.hidden = !found.more;
    return found.releases.length;
  };
  more.addEventListener("click", load);
  if ((await load()) === 0) {
    return empty("Nothing was released to you yet", el("a", { href: `#/${encodeURIComponent(about.name)}/ask` }, "Ask a first question"), "; it is kept here, and seeing it again is free.");
  }
  return el("section", { class: "card", "aria-label": "History" }, el("h2", {}, "Released to you"), list, more);
}

function releaseRow(about, at, one) {
  const place = el("div", { "aria-live": "polite" });
  const show = el("button", { type: "button", "aria-expanded": "false", onclick: async () => {
    const open = show.getAttribute("aria-expanded") === "true";
    show.setAttribute("aria-expanded", String(!open));
    if (open) return place.replaceChildren();
    await into(place, async () => Object.entries((await get(`${at}/${one.id}`)).release).map(([name, answer]) =>
      showAnswer(about.name, { caption: one.asked, ...answer }, name || null)));
  } }, "Show");
  const edit = one.query === null ? null : el("a", { class: "button", href: `#/${encodeURIComponent(about.name)}/ask`, onclick: () =>
    sessionStorage.setItem("farthing.start", JSON.stringify(one.query)) }, "Change it and ask");
  return el("li", {}, el("div", { class: "release" },
    el("div", {}, el("p", {}, one.asked.charAt(0).toUpperCase() + one.asked.slice(1)), el("p", { class: "quiet" }, `${moment(one.at)} · ${amount(one.price)}`)),
    el("div", { class: "row" }, show, edit)), place);
}

// What the owner declared of a column's values.
function valuesOf(column) {
  const said = [];
  if (column.lower !== undefined || column.upper !== undefined) said.push(column.lower === undefined ? `up to ${number(column.upper)}` : column.upper === undefined ? `from ${number(column.lower)}` : `${number(column.lower)} to ${number(column.upper)}`);
  if (column.categories) said.push(`${column.categories.length} declared: ${column.categories.slice(0, 12).join(", ")}${column.categories.length > 12 ? ", …" : ""}`);
  if (column.places !== undefined) said.push(`${column.places} decimal places`);
  if (column.time_zone) said.push(column.time_zone);
  return said.join("; ") || "not declared";
}

function aboutData(about, said) {
  return el("div", { class: "stack" },
    el("section", { class: "card" }, el("h2", {}, "What is proved"),
      said.everything_ever.map((one) => el("p", {}, "Everything that this dataset can ever release, to everybody: ", term("epsilon", "ε"), ` ≤ ${bound(one.epsilon)} at `, term("delta", "δ"), ` = ${power(one.delta)}.`)),
      el("p", {}, said.meaning),
      el("p", {}, `Unit of privacy: ${said.unit_of_privacy}. Neighbouring datasets: ${said.neighbouring_relation}.`),
      el("h3", {}, "It holds if"), el("ul", {}, said.assumptions.map((one) => el("li", {}, one)))),
    el("section", { class: "card" }, el("h2", {}, "Columns"),
      table("Columns", ["name", "kind", "values"], about.columns.map((one) => [one.name, one.name === about.unit ? `${one.kind}; the unit of privacy` : one.kind, valuesOf(one)])),
      el("p", {}, term("version", "Version"), ` ${about.version ?? "not declared: the rows may change"}. `,
        about.limits.contribution_limit ? `Each ${about.unit} counts in at most ${about.limits.contribution_limit} labels` : "",
        about.limits.per_key_limit ? `, with at most ${about.limits.per_key_limit} rows of each.` : ".")),
    el("section", { class: "card" }, el("h2", {}, "Prices"),
      table("Items of the tariff", ["item", "guarantee", "farthings", "δ units"], about.items.map((one) => [one.name, short(one.guarantee), number(one.farthings), number(one.delta_units)]), [2, 3])));
}
