// The matrix of outcomes on a canvas: a column for each candidate, a row for each task.
// All cells are one small image, a pixel each; a frame draws the part of it that is in sight.

import { hideTip, placeOf, showTip, speak } from "./live.js";

const KINDS = 7;
const [NOT_SAMPLED, FAILED, SOLVED, PARTIAL, MISSING, WAITING] = [0, 1, 2, 3, 4, 5];
const WORDS = ["not sampled", "failed", "solved", "partial", "missing", "waiting"];
const ABOVE = 84; // height of the estimates above the cells
const NAMES = 116; // height of the names of candidates below the estimates, where columns are wide
const ASIDE = 64; // width of the bars beside the cells
const SIZES = [1, 2, 3, 4, 6, 8, 11, 14, 18, 24];
const EDGE = 1e-6; // solvabilities come with six digits: 0.333333 is 1/3
const GROUPS = {
  all: () => true,
  never: (p) => p === 0,
  rare: (p) => p > 0 && p < 1 / 3 - EDGE,
  mixed: (p) => p >= 1 / 3 - EDGE && p <= 2 / 3 + EDGE,
  mostly: (p) => p > 2 / 3 + EDGE,
  unseen: (p) => p === null,
};
const ORDERS = {
  tasks: { solvability: "most solved first", given: "as in the pool", cluster: "alike together" },
  candidates: { round: "by round", score: "best first", cluster: "alike together" },
};

function bytes(text) {
  const raw = atob(text);
  const found = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i += 1) found[i] = raw.charCodeAt(i);
  return found;
}

function score(value) {
  return value === null || value === undefined ? "-" : value.toFixed(3);
}

function shortened(name, most) {
  const keep = Math.floor((most - 1) / 2);
  return name.length > most ? `${name.slice(0, keep)}…${name.slice(-keep)}` : name;
}

class Matrix {
  constructor(host) {
    this.host = host;
    this.data = null;
    this.colours = {};
    this.cursor = null; // { row, column } in what is shown
    this.hover = null;
    this.known = new Map(); // draws of cells that were asked for
    this.queued = false;
    this.build();
    this.readAddress();
  }

  // The page around the canvas -------------------------------------------------------------

  build() {
    this.tools = document.createElement("div");
    this.tools.className = "matrix-tools";
    this.view = document.createElement("div");
    this.view.className = "matrix-view cv";
    this.view.tabIndex = 0;
    this.view.dataset.keys = "";
    this.view.setAttribute("role", "application");
    this.view.setAttribute(
      "aria-label",
      "Matrix of outcomes. Arrow keys move between cells, Enter opens the trial, plus and minus zoom.",
    );
    this.space = document.createElement("div");
    this.space.className = "matrix-space";
    this.canvas = document.createElement("canvas");
    this.paper = this.canvas.getContext("2d", { alpha: false });
    this.view.append(this.space, this.canvas);
    this.legend = document.createElement("ul");
    this.legend.className = "legend";
    this.note = document.createElement("p");
    this.note.className = "count";
    this.note.setAttribute("role", "status");
    this.note.textContent = "Loading the outcomes…";
    this.host.replaceChildren(this.tools, this.view, this.legend, this.note);
    this.fields = {
      tasks: this.select("Tasks", ORDERS.tasks),
      candidates: this.select("Candidates", ORDERS.candidates),
      group: this.select("Solvability", {
        all: "all tasks", never: "never solved", rare: "under 1/3", mixed: "1/3 to 2/3",
        mostly: "over 2/3", unseen: "not run yet",
      }),
      pool: this.select("Pool", { all: "all pools" }),
      task: this.field("Find a task"),
      candidate: this.field("Find a candidate"),
    };
    this.fields.pool.parentElement.hidden = true;
    const zoom = document.createElement("div");
    zoom.className = "zoom";
    for (const [text, label, step] of [["−", "Smaller cells", -1], ["+", "Larger cells", 1], ["Fit", "Fit the window", 0]]) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "button";
      button.textContent = text;
      button.setAttribute("aria-label", label);
      button.addEventListener("click", () => this.zoom(step));
      zoom.append(button);
    }
    this.tools.append(zoom);
    this.view.addEventListener("scroll", () => this.draw(), { passive: true });
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => this.leave());
    this.canvas.addEventListener("click", (event) => this.open(this.at(event)));
    this.view.addEventListener("keydown", (event) => this.key(event));
    this.view.addEventListener("focus", () => this.draw());
    this.view.addEventListener("blur", () => this.draw());
    new ResizeObserver(() => this.resize()).observe(this.view);
  }

  select(label, options) {
    const box = document.createElement("select");
    for (const [value, text] of Object.entries(options)) box.append(new Option(text, value));
    box.addEventListener("change", () => this.changed(true));
    return this.labelled(label, box);
  }

  field(label) {
    const box = document.createElement("input");
    box.type = "search";
    box.size = 14;
    box.autocomplete = "off";
    box.spellcheck = false;
    let wait = 0;
    box.addEventListener("input", () => {
      clearTimeout(wait);
      wait = setTimeout(() => this.changed(false), 120);
    });
    return this.labelled(label, box);
  }

  labelled(text, box) {
    const label = document.createElement("label");
    label.append(text, box);
    this.tools.append(label);
    return box;
  }

  readAddress() {
    const query = new URLSearchParams(location.search);
    const defaults = { tasks: "solvability", candidates: "round", group: "all", pool: "all" };
    for (const [name, box] of Object.entries(this.fields)) {
      const value = query.get(name) ?? defaults[name] ?? "";
      box.value = value;
      if (box.value !== value) box.value = defaults[name] ?? "";
    }
    this.size = SIZES.includes(Number(query.get("size"))) ? Number(query.get("size")) : 0;
  }

  writeAddress(push) {
    const url = new URL(location.href);
    const defaults = { tasks: "solvability", candidates: "round", group: "all", pool: "all" };
    for (const [name, box] of Object.entries(this.fields)) {
      if (box.value && box.value !== defaults[name]) url.searchParams.set(name, box.value);
      else url.searchParams.delete(name);
    }
    if (this.size) url.searchParams.set("size", String(this.size));
    else url.searchParams.delete("size");
    if (url.href === location.href) return;
    if (push) history.pushState({}, "", url);
    else history.replaceState({}, "", url);
  }

  changed(push) {
    this.writeAddress(push);
    this.arrange();
  }

  // Data -----------------------------------------------------------------------------------

  async load() {
    const since = this.data ? `&since=${this.data.events}` : "";
    const answer = await fetch(`${this.host.dataset.source}${since}`, { cache: "no-store" });
    const found = await answer.json();
    if (!answer.ok) throw new Error(found.error || "The server does not answer.");
    if (found.whole) this.take(found);
    else this.apply(found);
  }

  take(found) {
    const tasks = found.tasks.length;
    const count = found.candidates.length;
    const codes = bytes(found.codes);
    const raw = bytes(found.partial);
    const units = new DataView(raw.buffer);
    const scores = new Float32Array(codes.length).fill(NaN);
    let partial = 0;
    for (let i = 0; i < codes.length; i += 1) {
      const kind = codes[i] & KINDS;
      if (kind === SOLVED) scores[i] = 1;
      else if (kind === FAILED) scores[i] = 0;
      else if (kind === PARTIAL) {
        scores[i] = units.getUint16(2 * partial, true) / 65535;
        partial += 1;
      }
    }
    this.data = { ...found, codes, scores, count, width: tasks };
    const pool = this.fields.pool;
    if (found.pools.length > 1) {
      const chosen = new URLSearchParams(location.search).get("pool") ?? pool.value;
      pool.replaceChildren(new Option("all pools", "all"));
      found.pools.forEach((name, at) => pool.append(new Option(name.slice(0, 60), String(at))));
      pool.value = chosen;
      if (!pool.value) pool.value = "all";
      pool.parentElement.hidden = false;
    }
    this.arrange();
  }

  apply(found) {
    const data = this.data;
    data.events = found.events;
    if (!found.candidates) return;
    const count = found.candidates.length;
    if (count > data.count) {
      const codes = new Uint8Array(count * data.width);
      const scores = new Float32Array(count * data.width).fill(NaN);
      codes.set(data.codes);
      scores.set(data.scores);
      Object.assign(data, { codes, scores, count });
    }
    for (const [candidate, task, code, value] of found.cells) {
      const at = candidate * data.width + task;
      data.codes[at] = code;
      data.scores[at] = value === null ? NaN : value;
      this.known.delete(at);
    }
    Object.assign(data, {
      candidates: found.candidates,
      solvability: found.solvability,
      seen: found.seen,
      orders: found.orders,
    });
    this.arrange();
  }

  // What is shown, in which order ----------------------------------------------------------

  arrange() {
    const data = this.data;
    if (!data) return;
    const words = (box) => box.value.toLowerCase().split(/\s+/).filter(Boolean);
    const tasks = words(this.fields.task);
    const names = words(this.fields.candidate);
    const pool = this.fields.pool.value;
    const group = GROUPS[this.fields.group.value] ?? GROUPS.all;
    this.rows = data.orders.tasks[this.fields.tasks.value || "solvability"].filter(
      (task) =>
        group(data.solvability[task]) &&
        (pool === "all" || data.pool[task] === Number(pool)) &&
        tasks.every((word) => data.tasks[task].toLowerCase().includes(word)),
    );
    this.columns = data.orders.candidates[this.fields.candidates.value || "round"].filter(
      (one) =>
        data.candidates[one].status !== "refused" &&
        names.every((word) => data.candidates[one].shown.toLowerCase().includes(word)),
    );
    this.cursor = null;
    this.paintImage();
    this.measure();
    this.tell();
    this.draw();
  }

  tell() {
    const data = this.data;
    const counts = [0, 0, 0, 0, 0, 0];
    for (const column of this.columns) {
      for (const row of this.rows) counts[data.codes[column * data.width + row] & KINDS] += 1;
    }
    const cells = this.rows.length * this.columns.length;
    const ran = cells - counts[NOT_SAMPLED] - counts[WAITING];
    const share = cells ? Math.round((100 * ran) / cells) : 0;
    const text = cells
      ? `${this.rows.length.toLocaleString()} tasks, ${this.columns.length.toLocaleString()} candidates, ` +
        `${ran.toLocaleString()} of ${cells.toLocaleString()} cells ran (${share}%). ` +
        "Click a cell for its trial, a name for its page."
      : "No task or candidate matches.";
    if (this.note.textContent !== text) this.note.textContent = text;
    this.host.dataset.ready = String(data.events);
    this.drawLegend(counts);
  }

  // Colours and the image ------------------------------------------------------------------

  readColours() {
    const style = getComputedStyle(this.view);
    for (const name of [
      "paper", "ink", "soft", "line", "faint", "band", "absent", "missing", "candidate", "pale",
      "best", "start", "shade-0", "shade-1", "shade-2", "shade-3", "shade-4",
    ]) {
      this.colours[name] = style.getPropertyValue(`--cv-${name}`).trim();
    }
    this.rgb = {};
    const probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    for (const [name, value] of Object.entries(this.colours)) {
      probe.fillStyle = value;
      probe.fillRect(0, 0, 1, 1);
      this.rgb[name] = probe.getImageData(0, 0, 1, 1).data;
    }
    this.hatch = this.pattern();
  }

  pattern() {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 4;
    const paper = tile.getContext("2d");
    paper.fillStyle = this.colours.absent;
    paper.fillRect(0, 0, 4, 4);
    paper.strokeStyle = this.colours.missing;
    paper.lineWidth = 1.4;
    paper.beginPath();
    for (const at of [-4, 0, 4]) {
      paper.moveTo(at, 4);
      paper.lineTo(at + 4, 0);
    }
    paper.stroke();
    return this.paper.createPattern(tile, "repeat");
  }

  shade(code, value) {
    const kind = code & KINDS;
    if (kind === SOLVED) return "shade-4";
    if (kind === FAILED) return "shade-0";
    if (kind === PARTIAL) return `shade-${Math.min(3, Math.max(1, Math.round(value * 4)))}`;
    if (kind === MISSING) return "missing";
    return kind === WAITING ? "line" : "absent";
  }

  paintImage() {
    if (!this.rgb) this.readColours();
    const [wide, tall] = [this.columns.length, this.rows.length];
    this.image = null;
    if (!wide || !tall) return;
    const data = this.data;
    const image = document.createElement("canvas");
    image.width = wide;
    image.height = tall;
    const paper = image.getContext("2d");
    const pixels = paper.createImageData(wide, tall);
    const absent = this.rgb.absent;
    const table = new Map();
    for (let x = 0; x < wide; x += 1) {
      const from = this.columns[x] * data.width;
      for (let y = 0; y < tall; y += 1) {
        const at = from + this.rows[y];
        const code = data.codes[at];
        const name = this.shade(code, data.scores[at]);
        const key = code & 32 ? `${name}+` : name;
        let colour = table.get(key);
        if (!colour) {
          colour = this.rgb[name];
          // Outcomes of rescoring are paler: they are not of the search.
          if (code & 32) colour = [0, 1, 2].map((i) => (colour[i] + absent[i]) / 2);
          table.set(key, colour);
        }
        const to = 4 * (y * wide + x);
        pixels.data[to] = colour[0];
        pixels.data[to + 1] = colour[1];
        pixels.data[to + 2] = colour[2];
        pixels.data[to + 3] = 255;
      }
    }
    paper.putImageData(pixels, 0, 0);
    this.image = image;
  }

  // Sizes ----------------------------------------------------------------------------------

  measure() {
    if (!this.rows) return;
    const [width, height] = [this.view.clientWidth, this.view.clientHeight];
    const [wide, tall] = [this.columns.length, this.rows.length];
    const roomy = width > 640;
    const most = roomy ? 190 : 96;
    const fit = (room, number, largest) =>
      Math.min(largest, Math.max(0.35, room / Math.max(1, number)));
    const across = (left) => Math.max(fit(width - left - ASIDE - 14, wide, 64), roomy ? 2 : 3);
    // Columns need the names at the left, and rows those above: begin without the former.
    const titled = (w) => roomy && height > 420 && w >= 12;
    this.top = ABOVE + (titled(this.size || across(28)) ? NAMES : 0);
    if (this.size) {
      this.cell = { w: this.size, h: this.size };
    } else {
      const h = fit(height - this.top - 26, tall, 26);
      this.cell = { w: 0, h: h >= 9 ? h : Math.max(h, 3) };
    }
    this.named = this.cell.h >= 9;
    this.left = this.named ? most : 28;
    if (!this.size) this.cell.w = across(this.left);
    this.titled = titled(this.cell.w);
    if (!this.titled) this.top = ABOVE;
    this.below = 24;
    this.extent = {
      w: this.left + wide * this.cell.w + ASIDE + 14,
      h: this.top + tall * this.cell.h + this.below,
    };
    this.space.style.setProperty("width", `${this.extent.w}px`);
    this.space.style.setProperty("height", `${this.extent.h}px`);
    // The bars stay in sight where the cells do not fit.
    this.right = Math.min(this.left + wide * this.cell.w, width - ASIDE - 8);
    this.bottom = Math.min(this.top + tall * this.cell.h, height - this.below);
    this.labels = null;
  }

  resize() {
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    const [width, height] = [this.view.clientWidth, this.view.clientHeight];
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.setProperty("width", `${width}px`);
    this.canvas.style.setProperty("height", `${height}px`);
    this.ratio = ratio;
    this.measure();
    this.draw();
  }

  zoom(step) {
    if (!step) this.size = 0;
    else {
      const now = this.size || this.cell.h;
      const larger = SIZES.filter((size) => size > now + 0.01);
      const smaller = SIZES.filter((size) => size < now - 0.01);
      this.size = step > 0 ? (larger[0] ?? SIZES.at(-1)) : (smaller.at(-1) ?? SIZES[0]);
    }
    // A key that is held changes the size in every frame; browsers refuse so many addresses.
    clearTimeout(this.naming);
    this.naming = setTimeout(() => this.writeAddress(false), 150);
    this.measure();
    this.draw();
  }

  // Drawing --------------------------------------------------------------------------------

  draw() {
    if (this.queued) return;
    this.queued = true;
    requestAnimationFrame(() => {
      this.queued = false;
      this.drawNow();
    });
  }

  drawNow() {
    const paper = this.paper;
    const c = this.colours;
    if (!this.data || !this.cell || !c.paper) return;
    const [width, height] = [this.view.clientWidth, this.view.clientHeight];
    const [x0, y0] = [this.view.scrollLeft, this.view.scrollTop];
    const { w, h } = this.cell;
    paper.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    paper.fillStyle = c.paper;
    paper.fillRect(0, 0, width, height);
    if (!this.image) {
      paper.fillStyle = c.soft;
      paper.font = "14px system-ui, sans-serif";
      paper.fillText("Nothing to show.", 24, 40);
      return;
    }
    const first = { column: Math.floor(x0 / w), row: Math.floor(y0 / h) };
    const last = {
      column: Math.min(this.columns.length, Math.ceil((x0 + this.right - this.left) / w)),
      row: Math.min(this.rows.length, Math.ceil((y0 + this.bottom - this.top) / h)),
    };
    const seen = { first, last, x0, y0 };
    paper.save();
    paper.beginPath();
    paper.rect(this.left, this.top, this.right - this.left, this.bottom - this.top);
    paper.clip();
    this.drawCells(seen);
    paper.restore();
    this.drawEstimates(seen);
    this.drawNames(seen);
    this.drawTasks(seen);
    this.drawBars(seen, width);
    this.drawRounds(seen);
    this.drawFocus(seen);
  }

  drawCells({ first, last, x0, y0 }) {
    const paper = this.paper;
    const { w, h } = this.cell;
    const [columns, rows] = [last.column - first.column, last.row - first.row];
    if (columns <= 0 || rows <= 0) return;
    paper.imageSmoothingEnabled = w < 1 || h < 1;
    paper.imageSmoothingQuality = "high";
    const left = this.left + first.column * w - x0;
    const top = this.top + first.row * h - y0;
    paper.drawImage(this.image, first.column, first.row, columns, rows, left, top, columns * w, rows * h);
    if (Math.min(w, h) >= 5) {
      paper.fillStyle = this.colours.paper;
      for (let i = 1; i <= columns; i += 1) paper.fillRect(left + i * w - 1, top, 1, rows * h);
      for (let i = 1; i <= rows; i += 1) paper.fillRect(left, top + i * h - 1, columns * w, 1);
      this.drawMarks(first, last, left, top);
    }
  }

  // Shapes for what must not rest on colour: missing is hatched, waiting is a frame.
  drawMarks(first, last, left, top) {
    const paper = this.paper;
    const { w, h } = this.cell;
    const data = this.data;
    for (let column = first.column; column < last.column; column += 1) {
      const from = this.columns[column] * data.width;
      const x = left + (column - first.column) * w;
      for (let row = first.row; row < last.row; row += 1) {
        const code = data.codes[from + this.rows[row]];
        if ((code & KINDS) !== MISSING && (code & KINDS) !== WAITING && !(code & 24)) continue;
        const y = top + (row - first.row) * h;
        if ((code & KINDS) === MISSING) {
          paper.fillStyle = this.hatch;
          paper.fillRect(x, y, w - 1, h - 1);
        } else if ((code & KINDS) === WAITING) {
          paper.fillStyle = this.colours.paper;
          paper.fillRect(x + 2, y + 2, w - 5, h - 5);
        } else if (code & 16 && h >= 8) {
          // A fault scored 0: a bar across.
          paper.fillStyle = this.colours.ink;
          paper.fillRect(x + 2, y + h / 2 - 1, w - 5, 1.5);
        }
      }
    }
  }

  scale() {
    if (this.labels) return this.labels;
    let [low, high] = [Infinity, -Infinity];
    for (const column of this.columns) {
      const one = this.data.candidates[column];
      for (const value of [one.value, one.low, one.high]) {
        if (value === null || value === undefined) continue;
        low = Math.min(low, value);
        high = Math.max(high, value);
      }
    }
    if (low > high) [low, high] = [0, 1];
    const room = Math.max(0.02, high - low) * 0.08;
    low = Math.max(0, low - room);
    high = Math.min(1, high + room);
    if (high <= low) high = low + 0.1;
    this.labels = { low, high };
    return this.labels;
  }

  drawEstimates({ first, last, x0 }) {
    const paper = this.paper;
    const c = this.colours;
    const { w } = this.cell;
    const { low, high } = this.scale();
    const y = (value) => {
      const held = Math.min(1, Math.max(0, (value - low) / (high - low)));
      return ABOVE - 12 - held * (ABOVE - 28);
    };
    paper.save();
    paper.beginPath();
    paper.rect(this.left, 0, this.right - this.left, ABOVE);
    paper.clip();
    const size = Math.min(3.2, Math.max(1, w * 0.32));
    for (let column = first.column; column < last.column; column += 1) {
      const one = this.data.candidates[this.columns[column]];
      if (one.value === null) continue;
      const x = this.left + (column + 0.5) * w - x0;
      if (one.low !== null && one.high !== null && one.high > one.low) {
        paper.strokeStyle = one.best ? c.best : c.pale;
        paper.lineWidth = w > 4 ? 1.5 : 0.8;
        paper.beginPath();
        paper.moveTo(x, y(one.low));
        paper.lineTo(x, y(one.high));
        paper.stroke();
      }
      if (one.best) {
        paper.fillStyle = c.best;
        this.star(x, y(one.value), 6.5);
      } else if (one.start) {
        paper.strokeStyle = c.start;
        paper.lineWidth = 1.6;
        paper.strokeRect(x - size, y(one.value) - size, 2 * size, 2 * size);
      } else {
        paper.fillStyle = c.candidate;
        paper.beginPath();
        paper.arc(x, y(one.value), size, 0, 7);
        paper.fill();
      }
    }
    paper.restore();
    paper.fillStyle = c.soft;
    paper.font = "11px system-ui, sans-serif";
    paper.textAlign = "left";
    for (const value of [low, high]) paper.fillText(value.toFixed(2), this.right + 8, y(value) + 4);
    paper.fillText("estimate", this.right + 8, (y(low) + y(high)) / 2 + 4);
  }

  drawNames({ first, last, x0 }) {
    if (!this.titled) return;
    const paper = this.paper;
    const c = this.colours;
    const { w } = this.cell;
    paper.save();
    paper.beginPath();
    paper.rect(this.left, ABOVE, this.right - this.left, NAMES);
    paper.clip();
    paper.textBaseline = "middle";
    paper.textAlign = "left";
    for (let column = first.column; column < last.column; column += 1) {
      const one = this.data.candidates[this.columns[column]];
      paper.fillStyle = one.best ? c.best : c.soft;
      paper.font = `${one.best ? "600 " : ""}11px system-ui, sans-serif`;
      paper.save();
      paper.translate(this.left + (column + 0.5) * w - x0, this.top - 6);
      paper.rotate(-Math.PI / 2);
      paper.fillText(shortened(one.shown, 16), 0, 0);
      paper.restore();
    }
    paper.restore();
  }

  star(x, y, size) {
    const paper = this.paper;
    paper.beginPath();
    for (let i = 0; i < 10; i += 1) {
      const r = i % 2 ? size * 0.45 : size;
      const a = (Math.PI * i) / 5 - Math.PI / 2;
      paper.lineTo(x + r * Math.cos(a), y + r * Math.sin(a));
    }
    paper.fill();
  }

  drawTasks({ first, last, y0 }) {
    const paper = this.paper;
    const { h } = this.cell;
    paper.fillStyle = this.colours.soft;
    if (!this.named) {
      paper.save();
      paper.translate(15, (this.top + this.bottom) / 2);
      paper.rotate(-Math.PI / 2);
      paper.textAlign = "center";
      paper.font = "11px system-ui, sans-serif";
      paper.fillText(`${this.rows.length.toLocaleString()} tasks`, 0, 0);
      paper.restore();
      return;
    }
    paper.save();
    paper.beginPath();
    paper.rect(0, this.top, this.left, this.bottom - this.top);
    paper.clip();
    paper.font = `${Math.min(12, Math.max(9, h - 2))}px system-ui, sans-serif`;
    paper.textAlign = "right";
    paper.textBaseline = "middle";
    const most = Math.floor((this.left - 12) / 5.8);
    for (let row = first.row; row < last.row; row += 1) {
      const name = this.data.tasks[this.rows[row]];
      paper.fillText(shortened(name, most), this.left - 7, this.top + (row + 0.5) * h - y0);
    }
    paper.restore();
    paper.textBaseline = "alphabetic";
  }

  drawBars({ first, last, y0 }) {
    const paper = this.paper;
    const { h } = this.cell;
    const left = this.right + 8;
    const long = ASIDE - 14;
    paper.save();
    paper.beginPath();
    paper.rect(left, this.top, long + 2, this.bottom - this.top);
    paper.clip();
    paper.fillStyle = this.colours.pale;
    const gap = h >= 5 ? 1 : 0;
    for (let row = first.row; row < last.row; row += 1) {
      const p = this.data.solvability[this.rows[row]];
      if (p !== null) paper.fillRect(left, this.top + row * h - y0, Math.max(0.5, long * p), h - gap);
    }
    paper.restore();
    paper.fillStyle = this.colours.soft;
    paper.font = "11px system-ui, sans-serif";
    paper.textAlign = "left";
    paper.fillText("solved by", left, this.bottom + 15);
  }

  drawRounds({ first, last, x0 }) {
    const paper = this.paper;
    const { w } = this.cell;
    const y = this.bottom + 15;
    paper.fillStyle = this.colours.soft;
    paper.font = "11px system-ui, sans-serif";
    if (this.fields.candidates.value && this.fields.candidates.value !== "round") {
      paper.textAlign = "left";
      const best = this.fields.candidates.value === "score" ? "best candidate first" : "alike candidates together";
      paper.fillText(best, this.left, y);
      return;
    }
    paper.textAlign = "center";
    let before = -99;
    for (let column = first.column; column < last.column; ) {
      const round = this.data.candidates[this.columns[column]].round;
      let end = column;
      while (end < last.column && this.data.candidates[this.columns[end]].round === round) end += 1;
      const x = this.left + ((column + end) / 2) * w - x0;
      const text = round || (end - column) * w < 30 ? String(round) : "start";
      if (x - before > 8 * text.length + 8 && x > this.left - 4 && x < this.right) {
        paper.fillText(text, x, y);
        before = x;
      }
      column = end;
    }
    if (this.named) {
      paper.textAlign = "right";
      paper.fillText("round", this.left - 7, y);
    }
  }

  drawFocus({ x0, y0 }) {
    const at = this.hover ?? (document.activeElement === this.view ? this.cursor : null);
    if (!at) return;
    const paper = this.paper;
    const { w, h } = this.cell;
    const x = this.left + at.column * w - x0;
    const y = this.top + at.row * h - y0;
    paper.save();
    paper.beginPath();
    paper.rect(this.left - 1, this.top - 1, this.right - this.left + 2, this.bottom - this.top + 2);
    paper.clip();
    paper.strokeStyle = this.colours.ink;
    paper.globalAlpha = 0.35;
    paper.lineWidth = 1;
    paper.strokeRect(x - 0.5, this.top - 1, w, this.bottom - this.top + 2);
    paper.strokeRect(this.left - 1, y - 0.5, this.right - this.left + 2, h);
    paper.globalAlpha = 1;
    paper.lineWidth = 2;
    paper.strokeRect(x - 1, y - 1, Math.max(w, 3) + 1, Math.max(h, 3) + 1);
    paper.restore();
  }

  drawLegend(counts) {
    const items = [["solved", SOLVED, 1], ["failed", FAILED, 0]];
    if (counts[PARTIAL]) items.push(["between", PARTIAL, 0.5]);
    if (counts[MISSING]) items.push(["missing", MISSING, NaN]);
    if (counts[WAITING]) items.push(["waiting", WAITING, NaN]);
    items.push(["not sampled", NOT_SAMPLED, NaN]);
    const rows = items.map(([text, code, value]) => {
      const item = document.createElement("li");
      const box = document.createElement("canvas");
      box.width = box.height = 14;
      const paper = box.getContext("2d");
      paper.fillStyle = code === MISSING ? this.hatch : this.colours[this.shade(code, value)];
      paper.fillRect(0, 0, 14, 14);
      if (code === WAITING) {
        paper.fillStyle = this.colours.paper;
        paper.fillRect(3, 3, 8, 8);
      }
      box.setAttribute("aria-hidden", "true");
      item.append(box, counts[code] ? `${text} ${counts[code].toLocaleString()}` : text);
      return item;
    });
    if (this.data.codes.some((code) => code & 32)) {
      const item = document.createElement("li");
      item.append("pale: scored after the choice");
      rows.push(item);
    }
    this.legend.replaceChildren(...rows);
  }

  // Pointing, keys and links ---------------------------------------------------------------

  at(event) {
    if (!this.cell || !this.rows) return null;
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const column = Math.floor((x - this.left + this.view.scrollLeft) / this.cell.w);
    const row = Math.floor((y - this.top + this.view.scrollTop) / this.cell.h);
    const across = x >= this.left && x < this.right && column >= 0 && column < this.columns.length;
    const down = y >= this.top && y < this.bottom && row >= 0 && row < this.rows.length;
    if (across && down) return { row, column };
    if (across && y < this.top) return { column };
    if (down && x < this.left && this.named) return { row };
    return null;
  }

  point(event) {
    const at = this.at(event);
    const cell = at && "row" in at && "column" in at ? at : null;
    this.canvas.style.setProperty("cursor", at && (!cell || this.ran(cell)) ? "pointer" : "default");
    const moved = cell?.row !== this.hover?.row || cell?.column !== this.hover?.column;
    this.hover = cell;
    if (moved) this.draw();
    if (!at) {
      hideTip();
      return;
    }
    this.spot = { x: event.clientX, y: event.clientY };
    if (!cell) showTip(this.headText(at), this.spot.x, this.spot.y);
    else {
      showTip(this.cellText(cell), this.spot.x, this.spot.y);
      this.ask(cell);
    }
  }

  leave() {
    this.hover = null;
    hideTip();
    this.draw();
  }

  index({ row, column }) {
    return this.columns[column] * this.data.width + this.rows[row];
  }

  ran(cell) {
    const kind = this.data.codes[this.index(cell)] & KINDS;
    return kind !== NOT_SAMPLED && kind !== WAITING;
  }

  headText(at) {
    if ("row" in at) {
      const task = this.rows[at.row];
      const p = this.data.solvability[task];
      return `${this.data.tasks[task]}\nsolvability ${score(p)}, run by ${this.data.seen[task]}`;
    }
    const one = this.data.candidates[this.columns[at.column]];
    const where = one.start ? "starting harness" : `round ${one.round}`;
    const limits = one.low === null || one.low === one.high ? "" : ` (${score(one.low)} to ${score(one.high)})`;
    return `${one.shown}\n${where}, estimate ${score(one.value)}${limits}, ${one.tasks} tasks`;
  }

  cellText(cell) {
    const at = this.index(cell);
    const data = this.data;
    const code = data.codes[at];
    const kind = code & KINDS;
    const task = this.rows[cell.row];
    const one = data.candidates[this.columns[cell.column]];
    let what = WORDS[kind];
    if (kind === PARTIAL) what = `score ${score(data.scores[at])}`;
    if (code & 16) what += ", by a fault";
    if (code & 8) what += ", from past results";
    if (code & 32) what += ", scored after the choice";
    const where = one.start ? "start" : `round ${one.round}`;
    const lines = [
      `${one.shown} (${where})`,
      `${data.tasks[task]}, solvability ${score(data.solvability[task])}`,
      what,
    ];
    const draw = this.known.get(at);
    if (draw?.drawn) {
      lines.push(
        `drawn in round ${draw.round} with inclusion probability π = ${draw.probability.toFixed(3)}, ` +
          `weight ${draw.weight.toPrecision(3)}`,
      );
    } else if (draw && this.ran(cell)) lines.push("not drawn: every task was run");
    return lines.join("\n");
  }

  ask(cell) {
    const at = this.index(cell);
    if (this.known.has(at)) return;
    clearTimeout(this.asking);
    this.asking = setTimeout(async () => {
      const query = new URLSearchParams({
        split: this.host.dataset.split,
        candidate: this.data.candidates[this.columns[cell.column]].name,
        task: this.data.ids[this.rows[cell.row]],
      });
      const answer = await fetch(`${this.host.dataset.source.split("/matrix.json")[0]}/cell.json?${query}`);
      if (!answer.ok) return;
      this.known.set(at, await answer.json());
      const here = this.hover ?? this.cursor;
      if (!here || this.index(here) !== at) return;
      if (this.hover) showTip(this.cellText(here), this.spot.x, this.spot.y);
      else speak(this.cellText(here));
    }, 60);
  }

  open(at) {
    if (!at) return;
    const place = {};
    if ("column" in at) place.candidate = this.data.candidates[this.columns[at.column]].name;
    if ("row" in at) place.task = this.data.ids[this.rows[at.row]];
    if ("column" in at && "row" in at && !this.ran(at)) return;
    location.href = placeOf(place);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.rows?.length) return;
    const page = Math.max(1, Math.floor((this.bottom - this.top) / this.cell.h) - 1);
    const steps = {
      ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
      PageUp: [-page, 0], PageDown: [page, 0],
      Home: [0, -this.columns.length], End: [0, this.columns.length],
    };
    if (event.key in steps) {
      const [down, across] = steps[event.key];
      const now = this.cursor ?? { row: -Math.min(0, down), column: -Math.min(0, across) };
      const begin = this.cursor === null;
      this.move({
        row: begin ? 0 : now.row + down,
        column: begin ? 0 : now.column + across,
      });
    } else if (event.key === "Enter" && this.cursor) this.open(this.cursor);
    else if (event.key === "+" || event.key === "=") this.zoom(1);
    else if (event.key === "-") this.zoom(-1);
    else if (event.key === "0") this.zoom(0);
    else return;
    event.preventDefault();
  }

  move({ row, column }) {
    const held = (value, count) => Math.min(count - 1, Math.max(0, value));
    this.cursor = { row: held(row, this.rows.length), column: held(column, this.columns.length) };
    const { w, h } = this.cell;
    const [x, y] = [this.cursor.column * w, this.cursor.row * h];
    const view = this.view;
    const [wide, tall] = [this.right - this.left, this.bottom - this.top];
    if (x < view.scrollLeft) view.scrollLeft = x;
    if (x + w > view.scrollLeft + wide) view.scrollLeft = x + w - wide;
    if (y < view.scrollTop) view.scrollTop = y;
    if (y + h > view.scrollTop + tall) view.scrollTop = y + h - tall;
    this.hover = null;
    speak(this.cellText(this.cursor));
    this.ask(this.cursor);
    this.draw();
  }
}

const host = document.getElementById("matrix");
if (host) {
  const matrix = new Matrix(host);
  let loading = false;
  let again = false;
  const update = async () => {
    if (loading) {
      again = true;
      return;
    }
    loading = true;
    try {
      await matrix.load();
    } catch (error) {
      matrix.note.textContent = `The outcomes cannot be loaded: ${error.message}`;
    }
    loading = false;
    if (again) {
      again = false;
      update();
    }
  };
  update();
  document.addEventListener("coevolve:moment", update);
  document.addEventListener("coevolve:theme", () => {
    matrix.readColours();
    if (matrix.data) matrix.arrange();
  });
  window.addEventListener("popstate", () => {
    matrix.readAddress();
    matrix.arrange();
  });
}
