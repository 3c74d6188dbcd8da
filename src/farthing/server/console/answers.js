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

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

function picture(title, answer) {
  const { labels, counts, intervals } = answer;
  if (labels.length === 0) {
    return el("div", { class: "empty" }, el("p", { class: "title" }, "No label was released"),
      el("p", {}, "None stood out far enough from the noise. That is an answer too, and it was paid for."));
  }
  if (counts === null) {
    return el("ol", { class: "ranks" }, labels.map((one) => el("li", {}, labelText(one))));
  }
  if (labels.length === 1 && (answer.query?.by ?? null) === null) {
    const width = intervals ? (intervals[0][1] - intervals[0][0]) / 2 : answer.half_width;
    return el("p", { class: "single" }, el("span", { class: "big" }, number(counts[0])), " ",
      intervals || width ? el("span", {}, term("width"), ` ${number(width)} at ${number(answer.confidence * 100)} %`) : null);
  }
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

function rowsOf(answer) {
  return answer.labels.map((label, i) => [label, answer.counts?.[i] ?? null, answer.intervals?.[i]?.[0] ?? null, answer.intervals?.[i]?.[1] ?? null]);
}

function figures(title, answer) {
  if (answer.labels.length === 0) return null;
  const heads = ["label", "number", "from", "to"];
  return el("details", {}, el("summary", {}, "The numbers as a table"),
    table(title, heads, rowsOf(answer).map(([label, ...rest]) => [labelText(label), ...rest.map(number)]), [1, 2, 3]));
}

export function csv(answer) {
  const by = answer.query?.by;
  const names = Array.isArray(by) && Array.isArray(answer.labels[0]) ? by.map(labelText) : ["label"];
  const lines = rowsOf(answer).map(([label, ...rest]) => [...(Array.isArray(label) ? label : [label]), ...rest]);
  return [[...names, "number", "lower", "upper"], ...lines].map((row) => row.map(csvCell).join(",")).join("\r\n") + "\r\n";
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
