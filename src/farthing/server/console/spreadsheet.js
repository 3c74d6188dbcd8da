// Cells of a CSV file: the same rule as `spreadsheet_cell` of the command line.

// As `plain` in Python: what commands a terminal or turns the direction of writing is replaced.
const CONTROL = /[\p{C}\p{Zl}\p{Zp}]|(?![ \u202f])\p{Zs}/gu;

/** Text that no spreadsheet runs as a formula. */
export function spreadsheetCell(value) {
  const text = String(value).replace(CONTROL, "\ufffd");
  return /^[=+\-@]/.test(text.normalize("NFKC").trimStart()) ? `'${text}` : text;
}

/** A number as it is, text in quotes: some spreadsheets also divide cells at semicolons. */
export function csvCell(value) {
  if (typeof value === "number") return String(value);
  return value === null ? '""' : `"${spreadsheetCell(value).replaceAll('"', '""')}"`;
}
