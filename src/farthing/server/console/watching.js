// Conversations: paid for when they are opened, asked as long as answers are negative, and closed.

import { get, patiently, path, post } from "./api.js";
import { amount, choice, el, empty, field, into, later, moment, number, problem, say, table } from "./dom.js";
import { RANKED, WATCHED } from "./kinds.js";
import { questionForm } from "./question_form.js";

const PER_UNIT = "Counts of units: 1. Counts of rows: the rows of one unit that count. Sums: the larger of the bounds, in units of the last decimal. Median: the rows of one unit; the 0.9 quantile: 9 times that.";
const KINDS = {
  threshold: { words: "Is a number at least …?", fields: [
    ["positives", "Times that it may say yes", "1", "Each “no” is free; after so many “yes” it is over."]], held: "threshold", asks: "At least" },
  guess: { words: "Is my guess right?", fields: [
    ["tolerance", "Right within ±", "100", "Farther off, and the answer brings a number."],
    ["corrections", "Times that it may correct me", "1", "Each “right” is free; after so many corrections it is over."]], held: "guess", asks: "My guess" },
};

export async function watchView(about, changed) {
  const at = `${path("datasets", about.name)}/conversations`;
  const list = el("div", { class: "stack" });
  const draw = async () => {
    const { conversations } = await get(at);
    return conversations.length === 0
      ? empty("No conversation yet", "Open one above: then ask as often as you like, and pay no more for it.")
      : conversations.reverse().map((one) => conversation(about, at, one));
  };
  const opened = async () => {
    changed();
    await into(list, draw);
  };
  into(list, draw);
  return el("div", { class: "stack" }, openForm(at, opened), list);
}

function openForm(at, opened) {
  const kind = choice(Object.entries(KINDS).map(([name, one]) => [name, one.words]), "threshold");
  const fields = el("div", { class: "fields" });
  const plan = el("div", { class: "plan", "aria-live": "polite", "aria-atomic": "true" });
  const falls = choice([["", "Counts and sums from 0 upwards"], ["falls", "Quantiles, and sums of negative values too"]], "");
  let controls = [];
  const body = () => ({ kind: kind.value, ...(kind.value === "threshold" ? { monotone: falls.value === "" } : {}),
    ...Object.fromEntries(controls.filter(([, control]) => control.value.trim() !== "").map(([name, control]) => [name, Number(control.value)])) });

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
    controls = [...KINDS[kind.value].fields.map(([name, label, start, note]) => [name, el("input", { value: start, inputmode: "numeric", autocomplete: "off" }), label, note]),
      ["per_unit", el("input", { value: "1", inputmode: "numeric", autocomplete: "off" }), "What one unit may change a number by", PER_UNIT],
      ["questions", el("input", { value: "100", inputmode: "numeric", autocomplete: "off" }), "Questions, roughly", "Only for the accuracy that is shown; there is no limit."]];
    fields.replaceChildren(...(kind.value === "threshold" ? [field("Of which numbers", falls, "What a unit can both raise and lower needs twice the noise.")] : []),
      ...controls.map(([, control, label, note]) => field(label, control, note)));
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

function conversation(about, at, one) {
  const here = `${at}/${encodeURIComponent(one.id)}`;
  const kind = "guess_and_check" in one.mechanism ? KINDS.guess : KINDS.threshold;
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

  const kinds = one.mechanism.sparse_vector?.monotone === false ? { ...WATCHED, ...RANKED } : WATCHED;
  const asked = questionForm(about, kinds, { label: "Number", first: "count", update: () => {} });
  const against = el("input", { required: true, inputmode: "decimal", autocomplete: "off" });
  const ask = async (event) => {
    event.preventDefault();
    try {
      const body = asked.body();
      if (body === null) return told.replaceChildren(el("p", { class: "hint" }, asked.missing()));
      const { query } = body;
      const found = await patiently("POST", `${here}/ask`, { questions: [{ query, [kind.held]: Number(against.value) }] }, { once: true });
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
  if (one.open) forms.append(el("form", { class: "narrow", onsubmit: ask }, asked.node, field(kind.asks, against),
    el("div", { class: "row" }, el("button", { type: "submit", class: "main" }, "Ask, at no cost"), el("button", { type: "button", onclick: close }, "Close (nothing is paid back)"))));
  shown(one);
  if (one.asked > 0) redraw();
  return el("section", { class: "card", "aria-label": `Conversation of ${moment(one.at)}` }, el("h2", {}, kind.words), state, forms, told, log);
}

function said(answer, kind) {
  if (kind === KINDS.threshold) return answer.positive ? "Yes, at least that" : "No";
  return answer.positive ? `Not within the tolerance; it is about ${number(answer.value)}` : "Right, within the tolerance";
}

function transcript(turns, kind) {
  if (turns.length === 0) return [];
  const rows = turns.map((turn) => [turn.caption, number(turn.asked[kind.held]), said(turn, kind)]).reverse();
  return [table("Asked and answered", ["of", kind.asks.toLowerCase(), "answer"], rows, [1])];
}
