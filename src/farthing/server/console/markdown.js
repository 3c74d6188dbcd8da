// As much of Markdown as a privacy statement uses: headings, lists, tables, paragraphs.

import { el, short, table } from "./dom.js";

const plain = (text) => text.replace(/\\([\\`*_{}[\]()#+\-.!|<>~])/g, "$1");
const cells = (line) => line.slice(1, -1).split(/(?<!\\)\|/).map((one) => plain(one.trim()));

export function markdown(text, down = 1) {
  const lines = text.split("\n");
  const made = [];
  let title = "table";
  while (lines.length > 0) {
    const line = lines.shift().trim();
    const heading = line.match(/^(#+) (.*)$/);
    if (line === "") continue;
    if (heading) {
      title = plain(heading[2]);
      made.push(el(`h${Math.min(6, heading[1].length + down)}`, {}, title));
    } else if (line.startsWith("|")) {
      const rows = [line];
      while (lines[0]?.trim().startsWith("|")) rows.push(lines.shift().trim());
      const [heads, , ...body] = rows.map(cells);
      const numeric = heads.map((_, i) => i).filter((i) => i > 0 && body.every((row) => /^[\d.]*(e-\d+)?$/.test(row[i])));
      made.push(table(title, heads, body.map((row) => row.map(short)), numeric));
    } else if (line.startsWith("- ")) {
      const points = [line];
      while (lines[0]?.trim().startsWith("- ")) points.push(lines.shift().trim());
      made.push(el("ul", {}, points.map((one) => el("li", {}, plain(one.slice(2))))));
    } else {
      made.push(el("p", {}, plain(line)));
    }
  }
  return made;
}
