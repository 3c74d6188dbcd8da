// What an owner sees: every dataset, and for each one where its budget went and what the book says.

import { get, path } from "./api.js";
import { tabs } from "./analyst.js";
import { el, empty, into, meter, number } from "./dom.js";
import { budgetView, versionsView } from "./owner_budget.js";
import { historyView, plannerView, profileView, statementView, verifyView } from "./owner_book.js";
import { declareView } from "./owner_setup.js";
import { tokensView } from "./owner_tokens.js";
import { term } from "./words.js";

const TABS = [["budget", "Budget", budgetView], ["profile", "Profile", profileView], ["history", "History", historyView],
  ["statement", "Statement", statementView], ["verify", "Verification", verifyView], ["versions", "Versions", versionsView]];

export async function ownerView(route, show) {
  const [first, tab = "budget"] = route;
  if (first === undefined) return datasetsView(show);
  const place = el("div");
  if (first === "+tokens") {
    show("Tokens", place);
    return into(place, tokensView);
  }
  if (first === "+planner") {
    show("Planner", place);
    return into(place, plannerView);
  }
  const about = await get(path("owner", "datasets", first));
  if (!about.declared) {
    show(first, place);
    return into(place, () => declareView(first));
  }
  const made = TABS.find(([name]) => name === tab);
  show(first, tabs(first, tab, TABS), place);
  return into(place, () => (made === undefined ? empty("Nothing here", "Choose one of the parts above.") : made[2](about)));
}

async function datasetsView(show) {
  const { datasets } = await get("/owner/datasets");
  show("Datasets", datasets.length === 0
    ? empty("No dataset yet", "Name one in farthing.toml, under [datasets.…], and start the service again.")
    : el("ul", { class: "cards" }, datasets.map(card)));
}

function card(one) {
  const title = el("h2", {}, el("a", { href: `#/${encodeURIComponent(one.name)}` }, one.name));
  if (!one.declared) return el("li", { class: "card" }, title, el("p", { class: "caution" }, "Not declared yet: nothing can be asked."));
  const account = one.accounts.findLast((each) => each.mode === "tariff" && each.open);
  return el("li", { class: "card" }, title,
    el("p", { class: "quiet" }, `Protects each ${one.unit}; version ${one.version ?? "not declared"}${one.served ? "" : "; not served here"}`),
    account === undefined ? el("p", { class: "caution" }, "No tariff is in force: nothing can be asked.")
      : [el("p", {}, el("strong", {}, number(account.farthings_spent)), ` of ${number(account.farthings)} `, term("farthing", "farthings"), " spent"), meter(one.name, account.farthings_spent, account.farthings)],
    el("p", { class: "quiet" }, `${one.grants.filter((each) => each.open).length} analysts hold a purse`));
}
