// Charts as SVG of our own: bars with error bars, steps over time, curves on a logarithmic scale.
// Each has a name for screen readers; the numbers stand in a table beside it.

import { el, moment, number, power, svg } from "./dom.js";

// Text keeps its size: on a phone the drawing is narrower, not smaller.
const wide = () => (matchMedia("(max-width: 52rem)").matches ? 400 : 720);

export function labelText(label) {
  if (Array.isArray(label)) return label.map(labelText).join(" · ") || "(all)";
  return label === null ? "(none)" : String(label);
}

function ticks(lower, upper, about = 5) {
  const span = upper - lower || 1;
  const rough = span / about;
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((one) => one * size).find((one) => one >= rough * 0.8);
  const found = [];
  for (let at = Math.ceil(lower / step) * step; at <= upper + step * 1e-9; at += step) found.push(at);
  return found;
}

const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const short = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

function frame(width, height, title, ...inner) {
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img", "aria-label": title },
    svg("title", {}, title), ...inner);
}

export function bars(title, labels, values, intervals) {
  const width = wide();
  const row = 30;
  const height = labels.length * row + 34;
  const longest = Math.max(...labels.map((one) => labelText(one).length));
  const most = width < 500 ? 15 : 26;
  const left = 24 + 8 * Math.min(longest, most);
  const right = width - (width < 500 ? 76 : 96);
  const reach = [0, ...values, ...(intervals ?? []).flat()].filter(Number.isFinite);
  const [low, high] = [Math.min(...reach), Math.max(...reach)];
  const x = (value) => left + ((value - low) / (high - low || 1)) * (right - left);
  const grid = ticks(low, high, width < 500 ? 3 : 5).map((at) => svg("g", {},
    svg("line", { x1: x(at), x2: x(at), y1: 4, y2: height - 26, class: "grid" }),
    svg("text", { x: x(at), y: height - 8, class: "tick middle" }, compact.format(at))));
  const drawn = labels.map((label, i) => {
    const middle = i * row + row / 2 + 4;
    const interval = intervals?.[i];
    const end = x(interval ? Math.max(values[i], interval[1]) : values[i]);
    return svg("g", {},
      svg("text", { x: left - 10, y: middle + 5, class: "label end" }, short(labelText(label), most)),
      svg("rect", { x: Math.min(x(0), x(values[i])), y: middle - 9, width: Math.max(1, Math.abs(x(values[i]) - x(0))), height: 18, rx: 2, class: "bar" }),
      interval ? svg("path", { class: "error", d: `M${x(interval[0])} ${middle}H${x(interval[1])}M${x(interval[0])} ${middle - 6}v12M${x(interval[1])} ${middle - 6}v12` }) : null,
      svg("text", { x: end + 8, y: middle + 5, class: "label" }, number(values[i])));
  });
  return frame(width, height, title, ...grid, svg("line", { x1: x(0), x2: x(0), y1: 4, y2: height - 26, class: "axis" }), ...drawn);
}

// What was spent after each question: it stays until the next one.
export function steps(title, lines, cap) {
  const [height, left, right, top, bottom] = [300, 52, wide() - 20, 14, 262];
  const times = lines.flatMap((one) => one.points.map(([at]) => Date.parse(at)));
  const [first, last] = [Math.min(...times), Math.max(Date.now(), ...times)];
  const highest = Math.max(1, ...lines.flatMap((one) => one.points.map((point) => point[1])));
  const near = cap !== null && highest > cap / 4; // else the steps would lie on the ground
  const most = near ? cap : highest * 1.2;
  const x = (at) => left + ((at - first) / (last - first || 1)) * (right - left);
  const y = (value) => bottom - (value / most) * (bottom - top);
  const grid = ticks(0, most, 4).map((at) => svg("g", {},
    svg("line", { x1: left, x2: right, y1: y(at), y2: y(at), class: "grid" }),
    svg("text", { x: left - 8, y: y(at) + 4, class: "tick end" }, compact.format(at))));
  const drawn = lines.map((one, i) => {
    let d = `M${left} ${y(0)}`;
    for (const [at, spent] of one.points) d += `H${x(Date.parse(at))}V${y(spent)}`;
    return svg("path", { d: `${d}H${right}`, class: `line tone${i % 5}` });
  });
  return el("figure", {}, frame(right + 20, height, title, ...grid,
    !near ? null : svg("line", { x1: left, x2: right, y1: y(cap), y2: y(cap), class: "cap" }),
    svg("text", { x: left, y: height - 10, class: "tick" }, moment(new Date(first).toISOString())),
    svg("text", { x: right, y: height - 10, class: "tick end" }, "now"), ...drawn),
  legend(lines.map((one, i) => [`tone${i % 5}`, one.analyst]), cap === null ? null : ["cap", near ? "cap of the tariff in force" : `cap of the tariff in force, ${number(cap)}: above the picture`]));
}

// δ against ε; δ on a logarithmic scale.
export function curves(title, lines) {
  const [height, left, right, top, bottom] = [360, 52, wide() - 20, 14, 306];
  const points = lines.flatMap((one) => one.points).filter(([, delta]) => delta > 0);
  const most = Math.max(...points.map(([epsilon]) => epsilon));
  const floor = Math.floor(Math.log10(Math.min(...points.map(([, delta]) => delta))));
  const x = (epsilon) => left + (epsilon / most) * (right - left);
  const y = (delta) => bottom - ((Math.log10(delta) - floor) / -floor) * (bottom - top);
  const rows = Array.from({ length: -floor + 1 }, (_, i) => 10 ** (floor + i));
  const grid = rows.map((at) => svg("g", {},
    svg("line", { x1: left, x2: right, y1: y(at), y2: y(at), class: "grid" }),
    svg("text", { x: left - 8, y: y(at) + 4, class: "tick end" }, power(at))));
  const columns = ticks(0, most, 6).map((at) =>
    svg("text", { x: x(at), y: bottom + 20, class: "tick middle" }, number(at)));
  const drawn = lines.map((one, i) => svg("polyline", {
    class: `line tone${i % 5}`,
    points: one.points.filter(([, delta]) => delta > 0).map(([e, d]) => `${x(e)},${y(d)}`).join(" "),
  }));
  return el("figure", {}, frame(right + 20, height, title, ...grid, ...columns,
    svg("text", { x: right, y: height - 8, class: "tick end" }, "ε →"),
    svg("text", { x: left + 6, y: top + 12, class: "tick" }, "↑ δ"), ...drawn),
  legend(lines.map((one, i) => [`tone${i % 5}`, one.name])));
}

function legend(entries, cap = null) {
  return el("figcaption", { class: "legend" }, [...entries, ...(cap === null ? [] : [cap])].map(([tone, words]) =>
    el("span", {}, svg("svg", { viewBox: "0 0 24 6", class: "swatch", "aria-hidden": "true" },
      svg("line", { x1: 0, x2: 24, y1: 3, y2: 3, class: tone === "cap" ? "cap" : `line ${tone}` })), words)));
}
