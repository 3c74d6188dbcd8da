// The shell: who is here, where they are, and what stands there.

import { analystView } from "./analyst.js";
import { forget, get, keep, onSignedOut, signedIn } from "./api.js";
import { el, empty, field, problem, say, waiting } from "./dom.js";
import { ownerView } from "./owner.js";
import { meanings } from "./words.js";

const main = document.getElementById("main");
const top_ = document.getElementById("top");
let me = null;
let turn = 0;

function header() {
  const brand = el("a", { href: "#/", class: "brand" }, el("img", { src: "icon.svg", alt: "", width: 28, height: 28 }), "farthing");
  const links = me?.role === "owner" ? [el("a", { href: "#/" }, "Datasets"), el("a", { href: "#/+tokens" }, "Tokens"), el("a", { href: "#/+planner" }, "Planner")] : [el("a", { href: "#/" }, "Datasets")];
  top_.replaceChildren(brand, ...(me === null ? [] : [
    el("nav", { "aria-label": "Main" }, links),
    el("p", { class: "who" }, `${me.name} · ${me.role} `, el("button", { type: "button", onclick: () => leave("You are signed out.") }, "Sign out"))]));
}

function leave(words) {
  forget();
  me = null;
  location.hash = "#/";
  header();
  signIn(words);
}

function signIn(words = null) {
  turn += 1;
  document.title = "Sign in · farthing";
  const token = el("input", { type: "password", autocomplete: "off", spellcheck: "false", required: true });
  const told = el("div", { "aria-live": "polite" }, words === null ? null : el("p", { class: "hint" }, words));
  const enter = async (event) => {
    event.preventDefault();
    keep(token.value.trim());
    told.replaceChildren(waiting("Looking at the token …"));
    try {
      me = await get("/me");
    } catch (error) {
      if (error.kind !== "signed_out") told.replaceChildren(problem(error));
      return;
    }
    header();
    await go(true);
  };
  main.replaceChildren(el("section", { class: "card signin" }, el("h1", { tabindex: "-1" }, "Sign in"),
    el("p", {}, "Ask questions about people's data without learning about any one of them, and see what each question costs."),
    el("form", { onsubmit: enter }, field("Token", token, "It begins with fth_ and was shown once, when it was made. It is kept in this tab only."), told,
      el("button", { type: "submit", class: "main" }, "Sign in"))));
  token.focus();
}

onSignedOut(() => {
  me = null;
  header();
  signIn("This token is not valid: it may be mistyped, expired or withdrawn.");
});

async function go(focus = true) {
  if (!signedIn()) return signIn();
  turn += 1;
  const mine = turn;
  const route = location.hash.replace(/^#\/?/, "").split("/").filter((one) => one !== "").map(decodeURIComponent);
  const show = (title, ...inside) => {
    if (mine !== turn) return;
    document.title = `${title} · farthing`;
    const heading = el("h1", { tabindex: "-1" }, title);
    main.replaceChildren(heading, ...inside);
    if (focus) heading.focus({ preventScroll: true });
    window.scrollTo(0, 0);
  };
  main.setAttribute("aria-busy", "true");
  try {
    me ??= await get("/me");
    header();
    for (const link of top_.querySelectorAll("nav a")) {
      const here = link.getAttribute("href") === (route[0]?.startsWith("+") ? `#/${route[0]}` : "#/");
      if (here) link.setAttribute("aria-current", "page");
    }
    await (me.role === "owner" ? ownerView : analystView)(route, show);
  } catch (error) {
    if (error.kind === "signed_out") return;
    if (error.status === 404) show("Nothing here", empty("There is nothing here by this name for you", el("a", { href: "#/" }, "To your datasets")));
    else show("Something went wrong", problem(error), el("button", { type: "button", onclick: () => go() }, "Try again"));
    say(error.message);
  } finally {
    main.removeAttribute("aria-busy");
  }
}

document.body.append(...meanings());
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
window.addEventListener("hashchange", () => go());
header();
go(false);
