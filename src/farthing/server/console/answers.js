// An answer: chart, numbers, what was limited, what it cost, and how to take it along.

import { bars, labelText } from "./charts.js";
import { amount, copy, el, number, save, table } from "./dom.js";
import { csvCell } from "./spreadsheet.js";
import { term } from "./words.js";

const MANY = 40;

export function showAnswer(dataset, answer, name = null) {
  const caption = answer.caption ?? answer.asked ?? "answer";
  const title = capital(name ? `${name}: ${caption}` : caption);
  return el("article", { class: "answer card" },
    el("h3", {}, title), picture(title, answer), limited(answer),
    (answer.notes ?? []).map((one) => el("p", { class: "caution" }, one)),
    answer.stopped && !answer.notes?.length ? el("p", { class: "caution" }, "Fewer labels than asked: no other stood out from the noise.") : null,
    answer.paid ? el("p", { class: "quiet" }, capital(answer.paid), ".") : el("p", { class: "quiet" }, `It cost ${amount(answer.price)}.`),
    figures(title, answer), taking(dataset, answer));
}

// What a SELECT computes from several answers: one table.
export function showTable(told) {
  const cell = (value, i) => (i < told.keys ? labelText(value) : value === null ? "–" : typeof value === "number" ? number(value) : value);
  return el("article", { class: "answer card" }, el("h3", {}, told.title || "Result"),
    table(told.title || "Result", told.columns, told.rows.map((row) => row.map(cell)), told.columns.map((_, i) => i).slice(told.keys)),
    told.notes.map((one) => el("p", { class: "caution" }, one)));
}

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

function picture(title, answer) {
  const { labels, counts, intervals } = visible(answer);
  if (answer.labels.length === 0) {
    return el("div", { class: "empty" }, el("p", { class: "title" }, "No label was released"),
      el("p", {}, "None stood out far enough from the noise. That is an answer too, and it was paid for."));
  }
  if (counts === null) {
    return el("ol", { class: "ranks" }, labels.map((one) => el("li", {}, labelText(one))));
  }
  if (labels.length === 1 && (answer.query?.by ?? null) === null) {
    const [low, high] = intervals?.[0] ?? [counts[0] - answer.half_width, counts[0] + answer.half_width];
    const even = Math.abs(counts[0] - (low + high) / 2) <= 1e-9 * (high - low);
    const level = `at ${number(answer.confidence * 100)} %`;
    return el("p", { class: "single" }, el("span", { class: "big" }, number(counts[0])), " ",
      high > low ? el("span", {}, even ? [term("width"), ` ${number((high - low) / 2)} ${level}`] : `${level} in ${number(low)} to ${number(high)}`) : null);
  }
  if (labels.length === 0) return null;
  const shown = Math.min(MANY, labels.length);
  return el("figure", {},
    bars(`Bars: ${title}. The numbers are in the table below.`, labels.slice(0, shown), counts.slice(0, shown), intervals?.slice(0, shown)),
    el("figcaption", {}, intervals ? ["The thin lines are intervals: ", term("width"), ` at ${number(answer.confidence * 100)} %. `] : null,
      shown < labels.length ? `The first ${shown} of ${labels.length}; the table has all.` : null));
}

function limited(answer) {
  const query = answer.query ?? {};
  const unit = answer.unit ?? "unit";
  const said = [];
  const by = Array.isArray(query.by) ? query.by.map(labelText).join(" and ") : query.by ?? query.column ?? "label";
  if (query.contribution_limit) said.push(`each ${unit} counts in at most ${query.contribution_limit} ${by}`);
  if (query.per_key_limit === 1) said.push(`each ${unit} counts once${query.by ? ` for each ${by}` : ""}`);
  else if (query.per_key_limit) said.push(`at most ${query.per_key_limit} rows of each ${unit}${query.by ? ` for each ${by}` : ""}`);
  const clipped = query.kind === "sum" ? `the sum of each ${unit}` : "values";
  if (query.lower !== undefined && query.lower !== null) said.push(`${clipped} clipped to ${query.lower} to ${query.upper}`);
  if (said.length === 0) return null;
  return el("p", {}, "What was ", term("limit"), `: ${said.join("; ")}.`);
}

// What people see: numbers within their intervals, without labels that say nothing. A CSV has all, as drawn.
function visible(answer) {
  const folded = new Set(answer.folded ?? []);
  const kept = (values) => values?.filter((_, i) => !folded.has(i)) ?? null;
  return { ...answer, labels: kept(answer.labels), counts: kept(answer.shown ?? answer.counts), intervals: kept(answer.intervals), units: kept(answer.units) };
}

function rowsOf(answer) {
  return answer.labels.map((label, i) => [label, answer.counts?.[i] ?? null, answer.intervals?.[i]?.[0] ?? null, answer.intervals?.[i]?.[1] ?? null,
    ...(answer.units ? [answer.units[i][0]] : [])]);
}

function figures(title, answer) {
  const rows = rowsOf(visible(answer));
  if (rows.length === 0) return null;
  const heads = ["label", "number", "from", "to", ...(answer.units ? ["units"] : [])];
  return el("details", {}, el("summary", {}, "The numbers as a table"),
    table(title, heads, rows.map(([label, ...rest]) => [labelText(label), ...rest.map(number)]), [1, 2, 3, 4]));
}

export function csv(answer) {
  const by = answer.query?.by;
  const several = Array.isArray(by) && Array.isArray(answer.labels[0]);
  const size = several ? Math.max(...answer.labels.map((label) => label.length)) : 1;
  const names = several ? [...Array(size).keys()].map((i) => (i < by.length ? labelText(by[i]) : "term")) : ["label"];
  const cells = (label) => (Array.isArray(label) ? [...label, ...Array(size - label.length).fill(null)] : [label]); // a sub-total has fewer
  const lines = rowsOf(answer).map(([label, ...rest]) => [...cells(label), ...rest]);
  return [[...names, "number", "lower", "upper", ...(answer.units ? ["units"] : [])], ...lines].map((row) => row.map(csvCell).join(",")).join("\r\n") + "\r\n";
}

export function notebookCell(dataset, query) {
  const asked = Object.fromEntries(Object.entries(query).filter(([, value]) => value !== null));
  const python = JSON.stringify(asked, null, 4).replace(/(: )(true|false)/g, (_, colon, word) => colon + (word === "true" ? "True" : "False"));
  return `import os\n\nimport farthing as fa\n\ndata = fa.connect("${location.origin}", token=os.environ["FARTHING_TOKEN"], dataset=${JSON.stringify(dataset)})\nanswer = data.ask(${python}).run()\nanswer\n`;
}

function taking(dataset, answer) {
  const cell = answer.query ? notebookCell(dataset, answer.query) : null;
  const told = Object.fromEntries(Object.entries(answer).filter(([name]) => name !== "remaining" && name !== "spending"));
  const shown = el("pre", { tabindex: "0", hidden: true, "aria-label": "Notebook cell" }, cell ?? "");
  return el("div", {}, el("div", { class: "row" },
    el("button", { type: "button", onclick: () => save(`${dataset}.csv`, "text/csv", csv(answer)) }, "Download CSV"),
    el("button", { type: "button", onclick: () => save(`${dataset}.json`, "application/json", JSON.stringify(told, null, 2)) }, "Download JSON"),
    cell === null ? null : el("button", { type: "button", onclick: () => { shown.hidden = false; copy(cell, "The notebook cell"); } }, "Copy notebook cell")),
  shown);
}
