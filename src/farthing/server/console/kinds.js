// The kinds of questions that the form asks, and their fields. Everything else can be asked as
// SQL or as plain data; the service decides what is allowed, here is only how it is written.

const where = { name: "where", label: "Only rows where", kind: "text", note: "For example country == 'NO' and day >= DATE '2026-03-01'. Empty: all rows." };
const by = { name: "by", label: "For each", kind: "columns", note: "A column, or several with commas; month(day) and bins(column, …) work too.", needed: true };
const maybeBy = { ...by, needed: false, note: "Empty: one number for everything." };
const categories = { name: "categories", label: "Labels known beforehand", kind: "list", note: "With commas. Then every label is answered, zeros too, and no δ is needed." };
const contribution = { name: "contribution_limit", label: "Labels of one unit that count", kind: "whole", note: "Empty: the owner's limit. Fewer labels cost less and leave out more.", limits: true };
const perKey = { name: "per_key_limit", label: "Rows of one unit that count for one label", kind: "whole", note: "1 counts units; more counts rows.", limits: true };
const column = { name: "column", label: "Column", kind: "number column", needed: true };
const anyColumn = { name: "column", label: "Values of", kind: "column", needed: true };
const lower = { name: "lower", label: "Smallest value", kind: "number", note: "Values below are moved here." };
const upper = { name: "upper", label: "Largest value", kind: "number", note: "Values above are moved here." };
const least = { name: "lower", label: "Smallest sum of one unit", kind: "number", note: "What a unit adds up to is moved here if it is below." };
const most = { name: "upper", label: "Largest sum of one unit", kind: "number", note: "What a unit adds up to is moved here if it is above." };
const measured = (...bounds) => [column, maybeBy, categories, where, ...bounds, contribution, perKey];
const totals = measured(lower, upper);

export const KINDS = {
  top_k: { words: "The most frequent (top k)", fields: [
    by,
    { name: "k", label: "How many", kind: "whole", start: "10", needed: true },
    { name: "counts", label: "With their counts", kind: "yes", start: true },
    where, categories, contribution], aims: ["half_width", "tells_apart"] },
  histogram: { words: "A number for each label (histogram)", fields: [by, where, categories, contribution, perKey], aims: ["half_width"] },
  count: { words: "One number (count)", fields: [where, perKey], aims: ["half_width"] },
  distinct: { words: "How many different values", fields: [anyColumn, where, contribution], aims: ["half_width"] },
  sum: { words: "Sum", fields: measured(least, most), aims: ["half_width"] },
  mean: { words: "Mean", fields: totals, aims: ["half_width", "rows"] },
  quantile: { words: "Median and other quantiles", fields: [
    column,
    { name: "probability", label: "Which quantile", kind: "number", start: "0.5", note: "0.5 is the median." },
    maybeBy, categories, where, lower, upper, contribution, perKey], aims: [] },
  variance: { words: "Variance", fields: totals, aims: ["half_width", "rows"] },
  standard_deviation: { words: "Standard deviation", fields: totals, aims: ["half_width", "rows"] },
};

// What a conversation can be about: one number, which is paid for already.
const watched = (name, ...left) => [name, { words: KINDS[name].words, aims: [],
  fields: KINDS[name].fields.filter((one) => !["by", "categories", ...left].includes(one.name)) }];
export const WATCHED = Object.fromEntries([watched("count"), watched("distinct"), watched("sum", "contribution_limit")]);
export const RANKED = Object.fromEntries([watched("quantile", "contribution_limit")]);

export const AIMS = {
  half_width: ["Each number within ±", "Empty: the usual item. A narrower interval costs more."],
  tells_apart: ["Order right from a difference of", "Of two labels whose counts differ by this much, the larger comes first."],
  rows: ["Rows that count, roughly", "Needed to turn a width of a mean into a price."],
};

// Commas between brackets do not separate: bins(age, 18, 30) is one key.
export function split(text) {
  return text.split(/,(?![^(]*\))/).map((one) => one.trim()).filter((one) => one !== "");
}

export function read(kind, value) {
  const text = typeof value === "string" ? value.trim() : value;
  if (kind === "yes") return text;
  if (text === "") return undefined;
  if (kind === "whole" || kind === "number") {
    const found = Number(text);
    return Number.isFinite(found) ? found : text;
  }
  if (kind === "columns") return split(text);
  if (kind === "list") return split(text);
  return text;
}

// Back from a query to what stands in the form.
export function write(kind, value) {
  if (value === null || value === undefined) return "";
  if (kind === "yes") return value;
  if (Array.isArray(value)) return value.map((one) => (typeof one === "string" ? one : JSON.stringify(one))).join(", ");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
