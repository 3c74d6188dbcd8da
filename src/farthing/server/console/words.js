// What the words mean, where they stand: a button that opens a short explanation.

import { el } from "./dom.js";

const MEANINGS = {
  farthing: ["farthing", "The coin of the privacy budget. Every question has a price in farthings, fixed in a tariff that the owner signed. It is proved that whoever spends all of them, in whatever order, stays within the (ε, δ) of the tariff."],
  epsilon: ["ε", "How much the answers can tell about one unit (one person, say). With ε = 0 nothing at all; with ε = 1 any odds that somebody holds about one unit change by a factor of at most e¹ ≈ 2.7; with ε = 3 by about 20. Smaller is more private."],
  share: ["share of the budget", "Farthings add up; ε does not. Noise of different answers is independent and most of what it betrays cancels, so ε grows like the square root of what is spent: four times as many questions tell about twice as much, and the first one costs the most. A question of 1.6 % of the farthings may be ε = 0.3 by itself, and all farthings together are still within the ε that was signed."],
  delta: ["δ", "The probability that the promise of ε is not kept. It should be far smaller than one over the number of units: 10⁻⁶ is one in a million."],
  unit: ["δ unit", "A small, fixed part of δ. Questions that find their labels in the data pay one, because a label that only one unit has could give that unit away."],
  width: ["±", "The half-width of an interval: in 95 of 100 cases the true number, after limiting, lies within the answer plus or minus this."],
  limit: ["limited", "Each unit counts only so often. Without a limit one unit could move a number by any amount, and no noise would hide it. What is beyond the limit is left out."],
  profile: ["profile", "Not one pair (ε, δ) but all of them: for each ε the δ that is proved for everything that the tariff can ever pay for."],
  odometer: ["so far", "What is proved about everything that was really released up to now, which is less than what the whole budget allows. It is rounded up to one of about twenty levels of spending, fixed when the budget was signed, so that it holds whenever somebody chooses to look."],
  version: ["version", "The state that the rows are in. While it is the same, an answer that was given once is given out again for nothing."],
};

export function term(name, words = MEANINGS[name][0]) {
  return el("button", { type: "button", class: "term", popovertarget: `meaning-${name}` }, words);
}

export function meanings() {
  return Object.entries(MEANINGS).map(([name, [word, text]]) =>
    el("div", { id: `meaning-${name}`, popover: "auto", class: "meaning", role: "note" },
      el("strong", {}, word), el("p", {}, text),
      el("button", { type: "button", popovertarget: `meaning-${name}`, popovertargetaction: "hide" }, "Close")));
}
