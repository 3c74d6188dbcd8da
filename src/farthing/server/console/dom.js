// Making elements. Text is always set as text: nothing that comes from data is read as markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, given, children) {
  for (const [name, value] of Object.entries(given)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "value") node.value = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((one) => one !== null && one !== undefined));
  return node;
}

export function el(tag, given = {}, ...children) {
  return fill(document.createElement(tag), given, children);
}

export function svg(tag, given = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), given, children);
}

let made = 0;
export function fresh(word) {
  made += 1;
  return `${word}-${made}`;
}

export function say(text) {
  const place = document.getElementById("said");
  place.textContent = "";
  setTimeout(() => { place.textContent = text; }, 30);
}

// When nothing has changed for a while. What an earlier change has begun is aborted at once.
export function later(milliseconds, act) {
  let timer = null;
  let begun = new AbortController();
  return () => {
    clearTimeout(timer);
    begun.abort();
    begun = new AbortController();
    timer = setTimeout(act, milliseconds, begun.signal);
  };
}

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });
export function number(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number") return String(value);
  const size = Math.abs(value);
  return size !== 0 && size < 0.01 ? value.toExponential(1) : whole.format(value);
}

// An upper bound is shown rounded up, never down.
export function bound(value, places = 2) {
  if (value === null || value === undefined) return "unknown";
  const scale = 10 ** places;
  return (Math.ceil(value * scale - 1e-9) / scale).toFixed(places);
}

// Guarantees have numbers of up to 17 digits: shown with four, and all of them on hover.
export function short(text) {
  const shown = text.replace(/([a-z]:)(\d+\.\d{3,})/g, (_, kind, one) => `${kind}${Number(Number(one).toPrecision(4))}`);
  return shown === text ? text : el("span", { title: text }, shown);
}

export function power(value) {
  const exponent = Math.log10(value);
  const near = Math.round(exponent);
  if (Math.abs(exponent - near) > 1e-9 || near > -3) return number(value);
  const digits = String(near).replace("-", "⁻").replace(/\d/g, (d) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[d]);
  return `10${digits}`;
}

export function percent(share) {
  return `${Number((share * 100).toPrecision(2))} %`;
}

export function moment(text) {
  const when = new Date(text);
  return Number.isNaN(when.getTime())
    ? text
    : new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" }).format(when);
}

export function amount(price) {
  const farthings = `${number(price.farthings)} farthing${price.farthings === 1 ? "" : "s"}`;
  const units = price.delta_units;
  return units ? `${farthings} and ${number(units)} δ unit${units === 1 ? "" : "s"}` : farthings;
}

// A labelled field. `note` says what it means, where it stands.
export function field(label, control, note = null) {
  const id = fresh("field");
  control.id = id;
  const said = note === null ? null : el("span", { class: "note", id: `${id}-note` }, note);
  if (said !== null) control.setAttribute("aria-describedby", said.id);
  return el("div", { class: "field" }, el("label", { for: id }, label), control, said);
}

export function choice(options, chosen) {
  return el("select", {}, options.map(([value, words]) =>
    el("option", { value, selected: value === chosen }, words)));
}

export function table(caption, heads, rows, numeric = []) {
  const side = (i) => (numeric.includes(i) ? { class: "number" } : {});
  // on a phone a row becomes a block of lines, each with its head; roles keep it a table
  const head = (i) => (typeof heads[i] === "string" ? { "data-head": heads[i] } : {});
  const cell = (one, i) =>
    i === 0 ? el("th", { scope: "row", role: "rowheader", ...head(i), ...side(i) }, one) : el("td", { role: "cell", ...head(i), ...side(i) }, one);
  return el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": caption },
    el("table", { role: "table" },
      el("caption", { class: "unseen" }, caption),
      el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, heads.map((one, i) => el("th", { scope: "col", role: "columnheader", ...side(i) }, one)))),
      el("tbody", { role: "rowgroup" }, rows.map((row) => el("tr", { role: "row" }, row.map(cell))))));
}

export function meter(label, spent, most) {
  const share = most > 0 ? Math.min(1, spent / most) : 1;
  const words = `${number(spent)} of ${number(most)} farthings spent`;
  return el("div", { class: "meter", role: "img", "aria-label": `${label}: ${words}` },
    svg("svg", { viewBox: "0 0 100 4", preserveAspectRatio: "none", "aria-hidden": "true" },
      svg("rect", { width: 100, height: 4, class: "rest" }),
      svg("rect", { width: 100 * share, height: 4, class: "spent" })));
}

export function problem(error) {
  return el("div", { class: "problem", role: "alert" },
    el("strong", {}, error.title ?? "That did not work"), " ", el("span", {}, error.message));
}

export function empty(title, ...words) {
  return el("div", { class: "empty" }, el("p", { class: "title" }, title), el("p", {}, words));
}

export function waiting(words = "One moment …") {
  return el("p", { class: "waiting", role: "status" }, words);
}

export function save(name, kind, text) {
  const address = URL.createObjectURL(new Blob([text], { type: kind }));
  const link = el("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    say(`${what} copied`);
    return true;
  } catch {
    say(`${what} could not be copied; select it and copy it by hand`);
    return false;
  }
}

// Something that cannot be undone is asked for twice.
export function confirmed(title, words, action, act) {
  const told = el("div");
  const dialog = el("dialog", { "aria-label": title }, el("h2", {}, title), el("p", {}, words), told,
    el("div", { class: "row" }, el("button", { type: "button", class: "main", onclick: async () => {
      try {
        await act();
        dialog.close();
      } catch (error) {
        told.replaceChildren(problem(error));
      }
    } }, action), el("button", { type: "button", onclick: () => dialog.close() }, "Cancel")));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

// Puts what `make` gives into `place`: while it is on its way, when it is there, when it failed.
export async function into(place, make, words) {
  place.replaceChildren(waiting(words));
  try {
    const made = await make();
    place.replaceChildren(...[made].flat());
  } catch (error) {
    if (error.kind === "signed_out") return;
    place.replaceChildren(problem(error));
  }
}
