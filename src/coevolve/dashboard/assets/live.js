// Keeps a page up to date with its run, shows tips, and handles keys, themes and filters.

const received = new Map();
const body = document.body;
const root = document.documentElement;
const policy = window.trustedTypes
  ? window.trustedTypes.createPolicy("coevolve", { createHTML: (text) => text })
  : { createHTML: (text) => text };
const YEAR = "max-age=31536000; path=/; samesite=strict";

for (const part of document.querySelectorAll("[data-part]")) {
  received.set(part.dataset.part, part.innerHTML);
}

// Live updates -----------------------------------------------------------------------------

let source = null;
let wanted = body.dataset.tag || "";
let shown = wanted;
let busy = false;
let lost = 0;

function say(text, kind) {
  const place = document.getElementById("linked");
  if (place.textContent !== text) place.textContent = text;
  place.dataset.kind = kind;
}

function listen() {
  if (source || document.hidden || !body.dataset.stream) return;
  source = new EventSource(body.dataset.stream);
  source.onmessage = (message) => {
    const found = JSON.parse(message.data);
    lost = 0;
    wanted = found.tag;
    if (found.trouble) say("journal unreadable", "bad");
    else if (body.dataset.run) say(found.held ? "live" : "", found.held ? "good" : "calm");
    else say("", "calm");
    if (!shown) shown = wanted;
    refresh();
  };
  source.onerror = () => {
    lost += 1;
    say("connection lost; trying again", "bad");
    if (source && source.readyState === EventSource.CLOSED) {
      // The browser gave up: the server ended or refused.
      source = null;
      setTimeout(listen, Math.min(1000 * lost, 10000));
    }
  };
}

function rest() {
  if (source) source.close();
  source = null;
}

document.addEventListener("visibilitychange", () => (document.hidden ? rest() : listen()));
window.addEventListener("pagehide", rest);
window.addEventListener("pageshow", listen);

async function refresh() {
  if (busy || wanted === shown) return;
  busy = true;
  const began = performance.now();
  const target = wanted;
  try {
    await load(location.href);
    shown = target;
  } catch (error) {
    say("connection lost; trying again", "bad");
  }
  // A page that takes long to make is asked for less often.
  const pause = Math.max(400, 2 * (performance.now() - began));
  setTimeout(() => {
    busy = false;
    refresh();
  }, pause);
}

let loads = 0;

async function load(url) {
  loads += 1;
  const turn = loads;
  const answer = await fetch(url, { headers: { accept: "text/html" }, cache: "no-cache" });
  const text = await answer.text();
  // Answers may overtake each other: only that to the last question is shown.
  if (turn !== loads) return;
  if (answer.redirected) {
    // The first run of a folder takes the place of the empty list.
    location.replace(answer.url);
    return;
  }
  const next = new DOMParser().parseFromString(policy.createHTML(text), "text/html");
  // A refusal is no page: what is shown stays.
  if (!next.getElementById("main")) throw new Error(text);
  replaceParts(next);
  if (document.title !== next.title) document.title = next.title;
  document.dispatchEvent(new CustomEvent("coevolve:moment"));
}

function replaceParts(next) {
  const main = document.getElementById("main");
  const parts = [...next.querySelectorAll("[data-part]")];
  // Taken before parts move over: a part that moved is no longer in the new page.
  const names = new Set(parts.map((part) => part.dataset.part));
  for (const old of main.querySelectorAll("[data-part]")) {
    if (!names.has(old.dataset.part)) old.remove();
  }
  let before = null;
  for (const part of parts) {
    const name = part.dataset.part;
    const html = part.innerHTML;
    let here = document.querySelector(`[data-part="${name}"]`);
    if (!here) {
      here = document.adoptNode(part);
      if (before) before.after(here);
      else main.prepend(here);
      received.set(name, html);
    } else if (received.get(name) !== html && !("keep" in here.dataset)) {
      replacePart(here, part);
      received.set(name, html);
    }
    if (main.contains(here)) before = here;
  }
}

function replacePart(old, part) {
  const focus = old.contains(document.activeElement) ? document.activeElement : null;
  const open = new Set([...old.querySelectorAll("details[open][id]")].map((one) => one.id));
  const closed = new Set([...old.querySelectorAll("details:not([open])[id]")].map((one) => one.id));
  const places = [...old.querySelectorAll(".scroll, pre, .picture")];
  const scrolls = places.map((one) => [one.scrollLeft, one.scrollTop]);
  const typed = focus && focus.matches("input, select") ? focus.value : null;
  const caret = typed !== null && "selectionStart" in focus ? focus.selectionStart : null;
  const path = focus ? pathOf(old, focus) : null;
  old.replaceChildren(...document.adoptNode(part).childNodes);
  for (const one of old.querySelectorAll("details[id]")) {
    if (open.has(one.id)) one.open = true;
    if (closed.has(one.id)) one.open = false;
  }
  const now = [...old.querySelectorAll(".scroll, pre, .picture")];
  now.forEach((one, at) => {
    if (scrolls[at]) [one.scrollLeft, one.scrollTop] = scrolls[at];
  });
  const again = path ? followed(old, path) : null;
  if (again) {
    if (typed !== null && "value" in again) again.value = typed;
    again.focus({ preventScroll: true });
    if (caret !== null && again.setSelectionRange && again.type === "search") {
      again.setSelectionRange(caret, caret);
    }
  }
  if (tipOwner && !tipOwner.isConnected) hideTip();
}

function pathOf(from, to) {
  const path = [];
  for (let one = to; one && one !== from; one = one.parentElement) {
    path.unshift([one.tagName, [...one.parentElement.children].indexOf(one)]);
  }
  return path;
}

function followed(from, path) {
  let one = from;
  for (const [tag, place] of path) {
    one = one.children[place];
    if (!one || one.tagName !== tag) return null;
  }
  return one;
}

// Choices and filters ----------------------------------------------------------------------

async function go(url, push) {
  if (push) history.pushState({}, "", url);
  else history.replaceState({}, "", url);
  try {
    await load(url);
  } catch (error) {
    say("connection lost; trying again", "bad");
  }
}

document.addEventListener("click", (event) => {
  const choice = event.target.closest("a[data-choice]");
  if (!choice || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  if (document.querySelector("[data-keep]")) return;
  event.preventDefault();
  go(choice.href, true);
});

let typing = 0;
document.addEventListener("input", (event) => {
  const form = event.target.closest("form.find");
  if (!form || form.closest("[data-keep]")) return;
  clearTimeout(typing);
  const wait = event.target.matches("select") ? 0 : 200;
  typing = setTimeout(() => go(addressOf(form), event.target.matches("select")), wait);
});

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.matches("form.find") || form.closest("[data-keep]")) return;
  event.preventDefault();
  clearTimeout(typing);
  go(addressOf(form), true);
});

function addressOf(form) {
  const url = new URL(form.getAttribute("action") || location.href, location.href);
  for (const [name, value] of new FormData(form)) {
    if (value) url.searchParams.set(name, value);
    else url.searchParams.delete(name);
  }
  url.searchParams.delete("from");
  return url.href;
}

window.addEventListener("popstate", () => {
  if (!document.querySelector("[data-keep]")) load(location.href).catch(() => location.reload());
});

// Tips of figures, and links in them -------------------------------------------------------

const tip = document.getElementById("tip");
let tipOwner = null;

export function showTip(text, x, y, owner = null) {
  tipOwner = owner;
  tip.textContent = text;
  tip.hidden = false;
  tip.style.setProperty("left", "0"); // at the right edge it would be measured narrower
  const box = tip.getBoundingClientRect();
  const left = Math.min(Math.max(8, x + 14), window.innerWidth - box.width - 8);
  const below = y + 18 + box.height < window.innerHeight;
  tip.style.setProperty("left", `${Math.max(8, left)}px`);
  tip.style.setProperty("top", `${below ? y + 18 : Math.max(8, y - box.height - 12)}px`);
}

export function hideTip() {
  tip.hidden = true;
  tipOwner = null;
}

document.addEventListener("pointermove", (event) => {
  const mark = event.target.closest ? event.target.closest("[data-tip]") : null;
  if (mark) showTip(mark.dataset.tip, event.clientX, event.clientY, mark);
  else if (tipOwner) hideTip();
});
document.addEventListener("scroll", () => tipOwner && hideTip(), { passive: true, capture: true });

document.addEventListener("click", (event) => {
  const mark = event.target.closest("svg [data-candidate], svg [data-task]");
  if (!mark || !body.dataset.run) return;
  location.href = placeOf(mark.dataset);
});

export function placeOf({ candidate, task }) {
  const base = `/runs/${encodeURIComponent(body.dataset.run)}`;
  const query = new URLSearchParams();
  if (candidate !== undefined && task !== undefined) {
    query.set("candidate", candidate);
    query.set("task", task);
    return `${base}/trial?${query}`;
  }
  query.set("name", candidate !== undefined ? candidate : task);
  return `${base}/${candidate !== undefined ? "candidate" : "task"}?${query}`;
}

export function speak(text) {
  document.getElementById("spoken").textContent = text;
}

// Theme, width and keys --------------------------------------------------------------------

const themes = ["system", "light", "dark"];
const button = document.getElementById("theme");

function themeNow() {
  return root.dataset.theme || "system";
}

function showTheme() {
  button.textContent = `Theme: ${themeNow()}`;
}

button.addEventListener("click", () => {
  const next = themes[(themes.indexOf(themeNow()) + 1) % themes.length];
  if (next === "system") delete root.dataset.theme;
  else root.dataset.theme = next;
  document.cookie = `coevolve-theme=${next === "system" ? "" : next}; ${YEAR}`;
  showTheme();
  document.dispatchEvent(new CustomEvent("coevolve:theme"));
});
showTheme();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  document.dispatchEvent(new CustomEvent("coevolve:theme"));
});

function checkWidth() {
  const fits = window.innerWidth < 640 ? "narrow" : "wide";
  if (fits === body.dataset.width) return;
  body.dataset.width = fits;
  document.cookie = `coevolve-width=${fits}; ${YEAR}`;
  if (!document.querySelector("[data-keep]")) load(location.href).catch(() => {});
}
let resizing = 0;
window.addEventListener("resize", () => {
  clearTimeout(resizing);
  resizing = setTimeout(checkWidth, 200);
});
checkWidth();

const keys = { o: "", m: "/matrix", f: "/frontier", l: "/lineage", c: "/costs", x: "/failures" };
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (event.target.closest("input, select, textarea, [data-keys]")) return;
  if (event.key === "/") {
    const field = document.querySelector("input[type=search]");
    if (field) {
      event.preventDefault();
      field.focus();
    }
  } else if (event.key === "Escape") hideTip();
  else if (event.key in keys && body.dataset.run) {
    location.href = `/runs/${encodeURIComponent(body.dataset.run)}${keys[event.key]}`;
  }
});

listen();
