// Tokens: made here and shown once, withdrawn here.

import { get, path, post, remove } from "./api.js";
import { choice, copy, el, empty, field, moment, problem, say, table } from "./dom.js";
import { confirmed } from "./owner_budget.js";

export async function tokensView() {
  const list = el("div");
  const redraw = async () => {
    const { tokens } = await get("/owner/tokens");
    list.replaceChildren(tokens.length === 0 ? empty("No token yet", "Make one above.") : table("Tokens, the latest first",
      ["for", "role", "made", "expires", "state"], tokens.map((one) => [one.name, one.role, moment(one.created), one.expires ? moment(one.expires) : "never",
        one.revoked ? "withdrawn" : el("button", { type: "button", "aria-label": `Withdraw the ${one.role} token of ${one.name}, made ${moment(one.created)}`, onclick: () => ask(one) }, "Withdraw")])));
  };
  const ask = (one) => confirmed(`Withdraw the token of ${one.name}?`, "It is good for nothing from then on. This cannot be undone; another one can be made.", "Withdraw", async () => {
    await remove(path("owner", "tokens", one.id));
    say("The token is withdrawn");
    await redraw();
  });
  const role = choice([["analyst", "analyst: asks questions"], ["owner", "owner: decides and sees everything"]], "analyst");
  const name = el("input", { required: true, maxlength: 200, autocomplete: "off" });
  const expires = el("input", { type: "date" });
  const told = el("div", { "aria-live": "polite" });
  const make = async (event) => {
    event.preventDefault();
    try {
      const found = await post("/owner/tokens", { role: role.value, name: name.value.trim(), ...(expires.value ? { expires: `${expires.value}T23:59:59Z` } : {}) });
      told.replaceChildren(el("div", { class: "good" }, el("p", {}, el("strong", {}, `The token of ${found.name}, shown now and never again:`)),
        el("code", { class: "token", tabindex: "0" }, found.token), el("div", { class: "row" }, el("button", { type: "button", onclick: () => copy(found.token, "The token") }, "Copy"))));
      await redraw();
    } catch (error) {
      told.replaceChildren(problem(error));
    }
  };
  await redraw();
  return el("div", { class: "stack" }, el("section", { class: "card" }, el("h2", {}, "New token"),
    el("form", { class: "inline", onsubmit: make }, field("For", name, "An analyst's name is that of their purse."), field("Role", role), field("Expires", expires, "Empty: never."), el("button", { type: "submit", class: "main" }, "Make a token")), told),
  el("section", { class: "card" }, el("h2", {}, "All tokens"), list));
}
