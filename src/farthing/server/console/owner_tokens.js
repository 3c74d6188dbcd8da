// Tokens: made here and shown once, withdrawn here.

import { get, path, remove } from "./api.js";
import { confirmed, copy, el, empty, moment, say, table } from "./dom.js";
import { operationForm } from "./forms.js";

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
  const form = await operationForm("mint_token", { only: ["name", "role", "expires"], values: { role: "analyst" }, button: "Make a token",
    done: async (made) => {
      await redraw();
      return el("div", { class: "good" }, el("p", {}, el("strong", {}, `The token of ${made.name}, shown now and never again:`)),
        el("code", { class: "token", tabindex: "0" }, made.token), el("div", { class: "row" }, el("button", { type: "button", onclick: () => copy(made.token, "The token") }, "Copy")));
    } });
  await redraw();
  return el("div", { class: "stack" }, el("section", { class: "card" }, el("h2", {}, "New token"),
    form),
  el("section", { class: "card" }, el("h2", {}, "All tokens"), list));
}
