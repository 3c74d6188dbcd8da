// Conversations: paid for when they are opened, asked as long as answers are negative, and closed.

import { get, patiently, path, post } from "./api.js";
import { amount, choice, el, empty, field, into, later, moment, number, problem, say, table } from "./dom.js";
import { entries, forms } from "./forms.js";
import { questionForm } from "./question_form.js";

// How each kind is asked, and the words for it.
const WORDS = { threshold: ["Is a number at least …?", "At least"], guess: ["Is my guess right?", "My guess"] };

export async function watchView(about, changed) {
  const at = `${path("datasets", about.name)}/conversations`;
  const list = el("div", { class: "stack" });
  const { conversations: kinds, watched } = await forms();
  const draw = async () => {
    const { conversations } = await get(at);
    return conversations.length === 0
      ? empty("No conversation yet", "Open one above: then ask as often as you like, and pay no more for it.")
      : conversations.reverse().map((one) => conversation(about, at, one, watched));
  };
  const opened = async () => {
    changed();
    await into(list, draw);
  };
  into(list, draw);
  return el("div", { class: "stack" }, openForm(at, kinds, opened), list);
}

function openForm(at, kinds, opened) {
  const kind = choice(Object.keys(kinds).map((name) => [name, WORDS[name]?.[0] ?? kinds[name].words]), "threshold");
  const fields = el("div", { class: "fields" });
  const plan = el("div", { class: "plan", "aria-live": "polite", "aria-atomic": "true" });
  let entered, aims;
  const body = () => ({ kind: kind.value, ...entered.values(), ...aims.values() });

  const price = later(250, async (signal) => {
    const asked = body();
    try {
      const found = await post(`${at}?plan=1`, asked, { signal });
      plan.replaceChildren(showPlan(found, () => open(asked, found)));
    } catch (error) {
      if (error.name === "AbortError" || error.kind === "signed_out") return;
      plan.replaceChildren(problem(error));
    }
    plan.removeAttribute("aria-busy");
  });
  const still = () => plan.querySelectorAll("button").forEach((one) => { one.disabled = true; });
  const update = () => {
    plan.setAttribute("aria-busy", "true");
    still(); // what it would open is not what stands in the form any more
    price();
  };

  async function open(asked, { price: planned }) {
    still();
    try {
      await patiently("POST", at, { ...asked, price: planned }, { once: true });
      say("The conversation is open");
      await opened();
    } catch (error) {
      if (error.kind === "signed_out") return;
      plan.prepend(problem(error));
    }
    update();
  }

  function build() {
    const form = kinds[kind.value];
    entered = entries(form.fields, { values: { tolerance: 100 } });
    aims = entries(form.aims);
    fields.replaceChildren(...entered.shown("first"), ...aims.shown(), el("details", {}, el("summary", {}, "More"), entered.shown("more")));
    update();
  }
  kind.addEventListener("change", build);
  fields.addEventListener("input", update);
  build();
  return el("div", { class: "two" },
    el("section", { class: "card", "aria-label": "Open a conversation" }, el("h2", {}, "Open a conversation"),
      el("p", {}, "Watch numbers, and pay once for as many questions as it takes until one of them answers yes."),
      el("form", { onsubmit: (event) => event.preventDefault() }, field("What", kind), fields)),
    el("section", { class: "card", "aria-label": "Price and accuracy" }, el("h2", {}, "Price and accuracy"), plan));
}

function showPlan(plan, open) {
  const lines = plan.lines.filter(([name]) => !["price", "remaining", "fits"].includes(name));
  return el("div", {}, el("p", {}, el("span", { class: "big" }, number(plan.price.farthings)), ` of your ${amount(plan.remaining)}, paid when it is opened`),
    el("dl", { class: "lines" }, lines.map(([name, words]) => [el("dt", {}, name), el("dd", {}, words)])),
    plan.fits ? null : el("p", { class: "caution" }, `It does not fit: ${amount(plan.remaining)} are left.`),
    el("div", { class: "row" }, el("button", { type: "button", class: "main", disabled: !plan.fits, onclick: open }, `Open for ${amount(plan.price)}`)));
}

function conversation(about, at, one, watched) {
  const here = `${at}/${encodeURIComponent(one.id)}`;
  const kind = "guess_and_check" in one.mechanism ? "guess" : "threshold";
  const [title, against_] = WORDS[kind];
  const told = el("div", { "aria-live": "polite" });
  const log = el("div");
  const state = el("p", { class: "quiet" });
  const forms = el("div");
  const shown = (found) => {
    state.textContent = `${found.open ? "Open" : "Over"} · opened ${moment(found.at)} for ${amount(found.price)} · ${number(found.asked)} asked`;
    if (!found.open) forms.replaceChildren();
  };
  const redraw = async () => {
    let found = await get(here);
    const turns = [...found.transcript];
    while (found.next !== null) {
      found = await get(`${here}?after=${found.next}`);
      turns.push(...found.transcript);
    }
    shown(found);
    log.replaceChildren(...transcript(turns, kind));
  };

  const falls = one.mechanism.sparse_vector?.monotone === false;
  const kinds = Object.fromEntries(Object.entries(watched).filter(([, form]) => falls || form.raised));
  const asked = questionForm(about, kinds, { label: "Number", first: "count", update: () => {} });
  const against = el("input", { required: true, inputmode: "decimal", autocomplete: "off" });
  const ask = async (event) => {
    event.preventDefault();
    try {
      const body = asked.body();
      if (body === null) return told.replaceChildren(el("p", { class: "hint" }, asked.missing()));
      const { query } = body;
      const found = await patiently("POST", `${here}/ask`, { questions: [{ query, [kind]: Number(against.value) }] }, { once: true });
      const words = said(found.answers[0], kind);
      told.replaceChildren(el("p", { class: "good" }, `${words}${found.open ? "" : ". With that it is over."}`));
      say(words);
      await redraw();
    } catch (error) {
      if (error.kind !== "signed_out") told.replaceChildren(problem(error));
    }
  };
  const close = async () => {
    try {
      await post(`${here}/close`);
      say("The conversation is closed");
      await redraw();
    } catch (error) {
      if (error.kind !== "signed_out") told.replaceChildren(problem(error));
    }
  };
  if (one.open) forms.append(el("form", { class: "narrow", onsubmit: ask }, asked.node, field(against_, against),
    el("div", { class: "row" }, el("button", { type: "submit", class: "main" }, "Ask, at no cost"), el("button", { type: "button", onclick: close }, "Close (nothing is paid back)"))));
  shown(one);
  if (one.asked > 0) redraw();
  return el("section", { class: "card", "aria-label": `Conversation of ${moment(one.at)}` }, el("h2", {}, title), state, forms, told, log);
}

function said(answer, kind) {
  if (kind === "threshold") return answer.positive ? "Yes, at least that" : "No";
  return answer.positive ? `Not within the tolerance; it is about ${number(answer.value)}` : "Right, within the tolerance";
}

function transcript(turns, kind) {
  if (turns.length === 0) return [];
  const rows = turns.map((turn) => [turn.caption, number(turn.asked[kind]), said(turn, kind)]).reverse();
  return [table("Asked and answered", ["of", WORDS[kind][1].toLowerCase(), "answer"], rows, [1])];
}
