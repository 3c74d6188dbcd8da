// Building a question: by form, as SQL, or as plain data. Price and accuracy follow every change.

import { get, patiently, path, post, remove } from "./api.js";
import { showAnswer, showTable } from "./answers.js";
import { amount, bound, choice, el, field, fresh, later, number, percent, power, problem, say } from "./dom.js";
import { entries, forms } from "./forms.js";
import { questionForm } from "./question_form.js";
import { term } from "./words.js";

const PAUSE = 250;

export async function askView(about, { start = null, changed }) {
  const { questions } = await forms();
  const place = el("div", { class: "question" });
  const plan = el("div", { class: "plan", "aria-live": "polite", "aria-atomic": "true" });
  const answers = el("section", { "aria-label": "Answers", "aria-live": "polite", class: "answers" });
  const modes = [["form", "Form"], ["sql", "SQL"], ["data", "Plain data"]];
  const byForm = () => questionForm(about, questions, { label: "What", first: "top_k", start, update });
  const makers = { form: byForm, sql: () => sqlOf(about, questions.count.aims, update), data: () => dataOf(about, start, update) };
  let current = null;

  const price = later(PAUSE, async (signal) => {
    let shown;
    try {
      const body = current.body();
      shown = body === null ? hint(current.missing()) : await priced(body, signal);
    } catch (error) {
      if (error.name === "AbortError" || error.kind === "signed_out") return;
      shown = error.kind === undefined ? hint(error.message) : problemQuietly(error);
    }
    plan.replaceChildren(shown);
    plan.removeAttribute("aria-busy");
  });

  // What a button runs is the question whose price it shows.
  async function priced({ registered, ...asked }, signal) {
    const found = await post(`${path("datasets", about.name)}/plan`, asked, { signal });
    const paid = registered === undefined ? found : { ...found, registered, fits: true, price: { farthings: 0, delta_units: 0 }, spending: null };
    return showPlan(paid, (again) => run({ ...asked, ...(registered === undefined ? {} : { registered }) }, found, again));
  }

  const still = () => plan.querySelectorAll("button.run").forEach((one) => { one.disabled = true; });
  function update() {
    plan.setAttribute("aria-busy", "true");
    still(); // what it would run is not what stands in the form any more
    price();
  }

  function switchTo(mode) {
    current = makers[mode]();
    place.replaceChildren(el("form", { onsubmit: (event) => event.preventDefault() }, current.node));
    update();
  }

  async function run(asked, { known }, again) {
    still();
    const holder = el("div", {}, el("p", { class: "waiting" }, known && !again ? "Looking it up …" : "Running …"));
    answers.prepend(holder);
    holder.scrollIntoView({ block: "nearest" });
    const progress = (job) => holder.replaceChildren(el("p", { class: "waiting" }, `Running for ${number(job.seconds)} s … `,
      el("button", { type: "button", onclick: () => remove(path("jobs", job.id)) }, "Cancel (nothing is paid back)")));
    try {
      const told = await patiently("POST", `${path("datasets", about.name)}/run`, { ...asked, again }, { once: true, progress });
      const found = told.answers ? Object.entries(told.answers) : [[null, told.answer]];
      const whole = told.table ? [showTable(told.table)] : [];
      holder.replaceChildren(...whole, ...found.map(([name, one]) => showAnswer(about.name, one, name)));
      say(`Answer: ${found.map(([, one]) => spoken(one)).join("; ")}`);
      holder.querySelector("h3").tabIndex = -1;
      holder.querySelector("h3").focus();
    } catch (error) {
      if (error.kind === "signed_out") return;
      holder.replaceChildren(problem(error));
    }
    changed();
    update();
  }

  const group = fresh("mode");
  const switcher = el("fieldset", { class: "modes" }, el("legend", { class: "unseen" }, "How to ask"),
    modes.map(([mode, words]) => {
      const id = fresh("mode");
      return [el("input", { type: "radio", name: group, id, value: mode, checked: mode === "form", onchange: () => switchTo(mode) }), el("label", { for: id }, words)];
    }));
  switchTo("form");
  return el("div", {}, el("div", { class: "two" },
    el("section", { class: "card", "aria-label": "Question" }, el("h2", {}, "Ask"), switcher, place),
    el("section", { class: "card", "aria-label": "Price and accuracy" }, el("h2", {}, "Price and accuracy"), plan)), answers);
}

const hint = (words) => el("p", { class: "hint" }, words);
const problemQuietly = (error) => el("div", { class: "problem" }, el("strong", {}, error.title ?? "That did not work."), " ", error.message);
const spoken = (one) => `${one.caption}: ${one.labels.slice(0, 3).map((label, i) => (one.counts === null ? label : `${label} ${number(one.counts[i])}`)).join(", ")}`;

function showPlan(plan, run) {
  const { price, spending, remaining } = plan;
  const left = remaining.farthings - (plan.known ? 0 : price.farthings);
  const ways = el("dl", { class: "ways" },
    way(number(price.farthings), term("farthing", price.farthings === 1 ? "farthing" : "farthings"),
      price.delta_units ? [`and ${number(price.delta_units)} `, term("unit", price.delta_units === 1 ? "δ unit" : "δ units")] : null),
    spending ? way(percent(spending.share), term("share", "of the dataset's budget"), null) : null,
    (spending?.epsilon_after ?? null) !== null
      ? way([term("epsilon", "ε"), ` ≤ ${bound(spending.epsilon_after)}`], "afterwards, of all you were told",
        [`before ${bound(spending.epsilon_before)}, at `, term("delta", "δ"), ` = ${power(spending.delta)}`]) : null);
  const skip = ["price", "remaining", "so far", "fits", "known"];
  const lines = plan.lines.filter(([name]) => !skip.includes(name));
  return el("div", {},
    el("p", { class: "caption" }, plan.caption.charAt(0).toUpperCase() + plan.caption.slice(1)),
    plan.known ? el("p", { class: "good" }, "You were told this already: seeing it again costs nothing.") : null,
    plan.registered ? el("p", { class: "good" }, `Paid by the registered list ${plan.registered}, which runs once.`) : ways,
    lines.length === 0 ? null : el("dl", { class: "lines" }, lines.map(([name, words]) => [el("dt", {}, name), el("dd", {}, words)])),
    plan.fits || plan.known
      ? el("p", { class: "quiet" }, `Leaves ${number(left)} of your ${number(remaining.farthings)} farthings.`)
      : el("p", { class: "caution" }, `It does not fit: ${amount(remaining)} are left. Ask for less: a wider interval, fewer labels, a smaller k.`),
    el("div", { class: "row" },
      el("button", { type: "button", class: "main run", disabled: !(plan.fits || plan.known), onclick: () => run(false) },
        plan.known ? "Show again, free" : plan.registered ? "Run the list" : `Run for ${amount(price)}`),
      plan.known && plan.fits && !plan.registered ? el("button", { type: "button", class: "run", onclick: () => run(true) }, `Ask anew for ${amount(plan.price_again)}`) : null));
}

function way(big, words, more) {
  return el("div", {}, el("dt", {}, words, more === null ? null : el("small", {}, " ", more)), el("dd", {}, big));
}

function sqlOf(about, aims, update) {
  const key = about.columns.find((one) => one.kind === "text" && one.name !== about.unit)?.name ?? "1";
  const text = el("textarea", { rows: 6, spellcheck: "false", class: "code", oninput: update,
    value: `SELECT ${key}, COUNT(DISTINCT ${about.unit})\nFROM ${about.name}\nGROUP BY ${key}\nORDER BY 2 DESC LIMIT 5` });
  const aim = entries(aims);
  return {
    node: el("div", {}, field("One SELECT", text, `Columns: ${about.columns.map((one) => one.name).join(", ")}. COUNT(DISTINCT ${about.unit}) counts units, COUNT(*) rows.`), el("div", { oninput: update }, aim.shown())),
    missing: () => "Write a SELECT, and the price appears here.",
    body() {
      if (text.value.trim() === "") return null;
      return { sql: text.value, ...aim.values() };
    },
  };
}

function dataOf(about, start, update) {
  const first = start ?? { kind: "count" };
  const list = choice([["", "your purse"]], "");
  const payer = field("Paid by", list, "An owner can register a list of questions for you, which is run once, exactly as registered.");
  payer.hidden = true;
  list.addEventListener("change", update);
  get(`${path("datasets", about.name)}/lists`).then(({ lists }) => {
    list.append(...lists.filter((one) => one.open).map((one) => el("option", { value: one.name }, `the list ${one.name}`)));
    payer.hidden = list.options.length === 1;
  }, () => {});
  const text = el("textarea", { rows: 12, spellcheck: "false", class: "code", oninput: update, value: JSON.stringify(first, null, 2) });
  return {
    node: el("div", {}, field("A query as JSON", text, "As in the notebook and the HTTP interface. {\"name\": {query}, …} is a batch: all of it runs, or none."), payer),
    missing: () => "Write a query, and the price appears here.",
    body() {
      if (text.value.trim() === "") return null;
      let given;
      try { given = JSON.parse(text.value); } catch { throw new Error("This is not complete JSON yet."); }
      return "kind" in given ? { query: given } : { batch: given, ...(list.value === "" ? {} : { registered: list.value }) };
    },
  };
}
