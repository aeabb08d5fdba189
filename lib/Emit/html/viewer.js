// Shows the programs of this page: what each rank does when. Plain canvas; only what is visible is drawn, at most one box a
// pixel, so that a frame costs the same however long the programs are.
"use strict";

const NONE = 0xffffffff; // A cause: it could start at once.
const HIDDEN = 0xfffffffe; // A cause: a row of a rank that the page does not have.
const GUTTER = 78, AXIS = 26, TITLE = 30, BOX = 24, MESSAGE = 8, MEMORY = 30, GAP = 4;
const DIMMED = "#e4e4e4", DIMMED_PIXEL = 0xffe4e4e4;
const NARROW = 3; // Boxes below this many pixels have neither border nor label.

// ---- The data -------------------------------------------------------------------------------------------------------

function bytes(base64) {
  const text = atob(base64);
  const result = new Uint8Array(text.length);
  for (let i = 0; i < text.length; ++i) result[i] = text.charCodeAt(i);
  return result.buffer;
}

/// The program behind one <script type="application/json">, with times in units and the things to draw by rank.
function load(json) {
  const column = (name, type) => new type(bytes(json.columns[name]));
  const times = (name) => {
    const ticks = column(name, json.wide ? Float64Array : Uint32Array);
    return Float64Array.from(ticks, (tick) => (tick * json.tick) / 1e9);
  };
  const data = {
    ...json,
    start: times("start"), end: times("end"), cause: column("cause", Uint32Array),
    kind: column("kind", Uint8Array), pipe: column("pipe", Uint8Array),
    stage: column("stage", Uint16Array), peer: column("peer", Uint16Array),
    microbatch: column("microbatch", Uint32Array),
    phase: column("phase", Uint16Array), joined: column("joined", Uint8Array),
    site: column("site", Uint32Array), sites: column("sites", Uint32Array),
    critical: column("critical", Uint32Array),
  };
  data.length = 0;
  for (const time of data.end) data.length = Math.max(data.length, time);
  data.onCritical = new Uint8Array(data.start.length);
  for (const row of data.critical) data.onCritical[row] = 1;
  for (const kind of data.kinds) kind.pixels = kind.colors.map(pixelOf);
  data.source = new Map(json.source.map(([file, line, text]) => [file + ":" + line, text]));
  data.tracks = json.ranks.map((rank, i) => {
    const compute = [], messages = [];
    for (let row = json.rowStarts[i]; row < json.rowStarts[i + 1]; ++row) {
      if (!isCompute(data, row)) messages.push(row);
      else if (data.end[row] > data.start[row] && !isMember(data, row, json.rowStarts[i])) compute.push(row);
    }
    const at = new Float64Array(bytes(json.memory[i].at)), held = new Float64Array(bytes(json.memory[i].held));
    let peak = 0;
    for (const value of held) peak = Math.max(peak, value);
    return { rank, compute: items(data, compute), messages: items(data, messages), memory: { at, held, peak } };
  });
  data.peak = data.tracks.reduce((peak, track) => Math.max(peak, track.memory.peak), 0);
  return data;
}

/// `#rrggbb` as a pixel of an image.
function pixelOf(color) {
  const value = parseInt(color.slice(1), 16);
  return ((0xff000000 | ((value & 0xff) << 16)) | (value & 0xff00) | (value >> 16)) >>> 0;
}

const isCompute = (data, row) => data.kinds[data.kind[row]].class === "compute";
/// Whether the row is a later member of a group of compute actions.
const isMember = (data, row, first) => data.joined[row] === 1 && row > first && isCompute(data, row - 1);

/// Rows in order of their starts, ready for searches by time.
function items(data, rows) {
  rows.sort((a, b) => data.start[a] - data.start[b] || a - b);
  const reach = new Float64Array(rows.length); // The latest end so far.
  let latest = -Infinity;
  for (let i = 0; i < rows.length; ++i) reach[i] = latest = Math.max(latest, data.end[rows[i]]);
  return { rows: Uint32Array.from(rows), reach };
}

/// The first index with values[index] > limit.
function firstAbove(values, limit) {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] > limit) high = middle;
    else low = middle + 1;
  }
  return low;
}

/// Calls visit(row, start, end) for what lies in a span. Of what is narrower than a pixel, one a pixel; pixels are counted
/// from time 0, so that the choice stays the same when the view moves.
function forEachVisible(data, { rows, reach }, from, to, pixel, visit) {
  for (let i = firstAbove(reach, from); i < rows.length;) {
    const row = rows[i], start = data.start[row], end = data.end[row];
    if (start >= to) return;
    if (end - start >= pixel) {
      visit(row, start, end);
      ++i;
      continue;
    }
    const next = (Math.floor(start / pixel) + 1) * pixel;
    visit(row, next - pixel, next);
    i = Math.max(i + 1, firstAbove(reach, next));
  }
}

/// The rows that run together with `row`, itself first.
function members(data, row) {
  const result = [row];
  while (row + 1 < data.start.length && data.joined[row + 1] && isCompute(data, row + 1)) result.push(++row);
  return result;
}

function rankIndex(data, row) {
  return firstAbove(data.rowStarts, row) - 1;
}

// ---- Words ----------------------------------------------------------------------------------------------------------

const number = (value) => String(Number(value.toFixed(9)));
/// Nothing for an action of a stage or a rank.
const microbatchText = (data, row) => (data.microbatch[row] === 0xffffffff ? "" : String(data.microbatch[row]));
const label = (data, row) => data.kinds[data.kind[row]].letters + microbatchText(data, row);
const cell = (data, row) => data.stage[row] + label(data, row);

function place(data, site) {
  const [file, line, column] = data.sites.subarray(4 * site, 4 * site + 3);
  return { text: data.files[file] + ":" + line + ":" + column, source: data.source.get(file + ":" + line) };
}

/// What let a row go on, back to the action that made it wait.
function waitedFor(data, row) {
  const names = [];
  for (let cause = data.cause[row]; names.length < 8; cause = data.cause[cause]) {
    if (cause === NONE) break;
    if (cause === HIDDEN) {
      names.push("a rank that is not shown");
      break;
    }
    names.push(cell(data, cause) + " on rank " + data.ranks[rankIndex(data, cause)] + " until " + number(data.end[cause]));
    if (isCompute(data, cause)) break;
  }
  return names.length ? "waited for " + names.join(", that for ") : "waited for nothing";
}

/// The lines of the tooltip of a row: [text, class].
function describe(data, row) {
  const kind = data.kinds[data.kind[row]];
  const pipe = data.pipes.length > 1 ? " of pipe " + data.pipes[data.pipe[row]].name : "";
  const phase = data.phases[data.phase[row]];
  const start = data.start[row], end = data.end[row];
  const lines = [
    [cell(data, row) + ": " + kind.words],
    ["stage " + data.stage[row] + pipe + (microbatchText(data, row) && ", microbatch " + microbatchText(data, row)) + (phase ? ", phase " + phase : "")],
    ["rank " + data.ranks[rankIndex(data, row)] + ", from " + number(start) + " to " + number(end) + " (" + number(end - start) + ")"],
  ];
  if (kind.class === "send" || kind.class === "recv") lines.push([(kind.class === "send" ? "to" : "from") + " stage " + data.peer[row]]);
  for (let site = data.site[row], depth = 0; site !== 0 && depth < 8; site = data.sites[4 * site + 3], ++depth) {
    const { text, source } = place(data, site);
    lines.push([(depth ? "called at " : "") + text + (source ? "  " + source : ""), "source"]);
  }
  lines.push([waitedFor(data, row)]);
  return lines;
}

// ---- The view -------------------------------------------------------------------------------------------------------

const byId = (id) => document.getElementById(id);
const canvas = byId("canvas"), context = canvas.getContext("2d", { alpha: false }), tooltip = byId("tooltip");
const programs = Array.from(document.querySelectorAll('script[type="application/json"]'), (element) => load(JSON.parse(element.textContent)));
const length = Math.max(...programs.map((data) => data.length));
const shows = { critical: false, messages: false, memory: false };
let selected = null; // A microbatch.
let view = { from: 0, to: length, top: 0 };
let width = 0, height = 0, strips = [], total = 0, pending = false, frames = 0;

const scale = () => (width - GUTTER - 8) / (view.to - view.from); // Pixels a unit of time.
const xOf = (time) => GUTTER + (time - view.from) * scale();
const timeOf = (x) => view.from + (x - GUTTER) / scale();

/// What stands under what: titles, ranks, memory curves.
function layOut() {
  strips = [];
  let y = 0;
  const add = (strip) => {
    strips.push({ ...strip, y });
    y += strip.height;
  };
  for (const data of programs) {
    add({ type: "title", data, height: TITLE });
    for (const track of data.tracks) {
      add({ type: "rank", data, track, height: BOX + GAP + (shows.messages && track.messages.rows.length ? MESSAGE : 0) });
      if (shows.memory) add({ type: "memory", data, track, height: MEMORY + GAP });
    }
  }
  total = y + AXIS;
  move(view.from, view.to, view.top);
}

function move(from, to, top) {
  const least = length * 1e-9 || 1e-9;
  const span = Math.min(Math.max(to - from, least), length * 1.02 || 1);
  from = Math.min(Math.max(from, 0), Math.max(length * 1.02 - span, 0));
  view = { from, to: from + span, top: Math.max(0, Math.min(top, total - height)) };
  redraw();
}

function zoom(factor, x) {
  const at = timeOf(x);
  move(at - (at - view.from) * factor, at + (view.to - at) * factor, view.top);
}

function redraw() {
  if (pending) return;
  pending = true;
  requestAnimationFrame(() => {
    pending = false;
    ++frames;
    draw();
  });
}

function resize() {
  const ratio = window.devicePixelRatio || 1;
  width = canvas.clientWidth;
  height = canvas.clientHeight;
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.max(1, Math.round(height * ratio));
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  move(view.from, view.to, view.top);
}

// ---- Drawing --------------------------------------------------------------------------------------------------------

const isDimmed = (data, row) =>
  (selected !== null && data.microbatch[row] !== selected) || (shows.critical && !data.onCritical[row]);

function color(data, row) {
  const chunk = data.pipes[data.pipe[row]].chunks[data.stage[row]];
  const kind = data.kinds[data.kind[row]];
  return isDimmed(data, row) ? DIMMED : kind.colors[chunk];
}

function pixel(data, row) {
  const chunk = data.pipes[data.pipe[row]].chunks[data.stage[row]], { pixels } = data.kinds[data.kind[row]];
  return isDimmed(data, row) ? DIMMED_PIXEL : pixels[chunk];
}

function draw() {
  context.fillStyle = "#fff";
  context.fillRect(0, 0, width, height);
  context.save();
  context.beginPath();
  context.rect(GUTTER, AXIS, width - GUTTER, height - AXIS);
  context.clip();
  const seen = strips.filter((strip) => yOf(strip) < height && yOf(strip) + strip.height > AXIS);
  drawRanks(seen);
  for (const strip of seen) if (strip.type === "memory") drawMemory(strip);
  if (selected !== null) for (const data of programs) drawPath(data, pathOf(data));
  if (shows.critical) for (const data of programs) drawPath(data, data.critical);
  context.restore();
  drawNames(seen);
  drawAxis();
}

const yOf = (strip) => AXIS + strip.y - view.top;

/// The narrow boxes of all visible ranks, two rows of pixels a rank, which are stretched to its height.
const narrow = { canvas: document.createElement("canvas"), image: null, pixels: null };
narrow.context = narrow.canvas.getContext("2d");

function clearNarrow(ranks) {
  const { canvas: own, context: ownContext } = narrow, columns = Math.max(1, Math.ceil(width - GUTTER)), rows = Math.max(1, 2 * ranks);
  if (!narrow.image || own.width !== columns || own.height !== rows) {
    own.width = columns;
    own.height = rows;
    narrow.image = ownContext.createImageData(columns, rows);
    narrow.pixels = new Uint32Array(narrow.image.data.buffer);
  }
  narrow.pixels.fill(0xfff2f2f2);
}

function paintNarrow(index, data, row, start, end) {
  const columns = narrow.canvas.width, line = 2 * index * columns;
  const first = Math.floor(xOf(start) - GUTTER + 0.5), last = Math.max(first + 1, Math.floor(xOf(end) - GUTTER + 0.5));
  const upper = pixel(data, row), lower = data.joined[row + 1] && isCompute(data, row + 1) ? pixel(data, row + 1) : upper;
  for (let x = Math.max(first, 0); x < last && x < columns; ++x) {
    narrow.pixels[line + x] = upper;
    narrow.pixels[line + columns + x] = lower;
  }
}

function drawRanks(seen) {
  const ranks = seen.filter((strip) => strip.type === "rank"), least = 1 / scale(), wide = [];
  clearNarrow(ranks.length);
  ranks.forEach((strip, i) =>
    forEachVisible(strip.data, strip.track.compute, view.from, view.to, least, (row, start, end) => {
      if (end - start < NARROW * least) paintNarrow(i, strip.data, row, start, end);
      else wide.push({ strip, row, start, end });
    }));
  narrow.context.putImageData(narrow.image, 0, 0);
  context.imageSmoothingEnabled = false;
  ranks.forEach((strip, i) =>
    context.drawImage(narrow.canvas, 0, 2 * i, narrow.canvas.width, 2, GUTTER, yOf(strip), narrow.canvas.width, BOX));
  context.font = "11px Helvetica, Arial, sans-serif";
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (const box of wide) drawBox(box);
  if (shows.messages) ranks.forEach(drawMessages);
}

function drawBox({ strip, row, start, end }) {
  const { data } = strip, y = yOf(strip), group = members(data, row);
  const left = Math.max(xOf(start), GUTTER - 2), right = Math.min(xOf(end), width + 2);
  group.forEach((member, i) => {
    const top = y + (BOX * i) / group.length, part = BOX / group.length;
    const marked = (shows.critical || selected !== null) && !isDimmed(data, member);
    context.fillStyle = color(data, member);
    context.fillRect(left, top, right - left, part);
    context.strokeStyle = marked ? "#000" : "#555";
    context.lineWidth = marked ? 1.5 : 0.5;
    context.strokeRect(left, top, right - left, part);
    context.fillStyle = isDimmed(data, member) ? "#777" : "#000";
    drawLabel(data, member, left, right, top, part);
  });
}

function drawMessages(strip) {
  const { data, track } = strip, top = yOf(strip) + BOX + 1;
  forEachVisible(data, track.messages, view.from, view.to, 1 / scale(), (row, start, end) => {
    context.fillStyle = color(data, row);
    context.fillRect(xOf(start), top, Math.max(1, xOf(end) - xOf(start)), MESSAGE - 2);
  });
}

/// The letters and the microbatch, in one line, else in two, else not at all.
function drawLabel(data, row, left, right, top, part) {
  const letters = data.kinds[data.kind[row]].letters, digits = microbatchText(data, row);
  const fits = (text) => right - left >= 6.4 * text.length + 2;
  const center = (left + right) / 2;
  if (part < 9) return;
  if (fits(letters + digits)) return context.fillText(letters + digits, center, top + part / 2 + 0.5);
  if (part < 20 || !fits(letters) || !fits(digits)) return;
  context.fillText(letters, center, top + part / 4 + 1);
  context.fillText(digits, center, top + (3 * part) / 4);
}

function drawMemory(strip) {
  const { data, track } = strip, { at, held } = track.memory, bottom = yOf(strip) + MEMORY;
  const heightOf = (value) => (data.peak > 0 ? (value / data.peak) * (MEMORY - 2) : 0);
  context.fillStyle = "#0072b233";
  context.strokeStyle = "#0072b2";
  context.lineWidth = 1;
  const path = new Path2D();
  let i = Math.max(firstAbove(at, view.from) - 1, 0);
  let level = at.length && at[i] <= view.from ? held[i] : 0;
  path.moveTo(GUTTER, bottom - heightOf(level));
  // Of the changes within a pixel, the highest and the last.
  while (i < at.length && at[i] <= view.to) {
    const x = Math.max(xOf(at[i]), GUTTER);
    path.lineTo(x, bottom - heightOf(level));
    let highest = held[i];
    level = held[i];
    for (++i; i < at.length && xOf(at[i]) < x + 1; ++i) {
      highest = Math.max(highest, held[i]);
      level = held[i];
    }
    path.lineTo(x, bottom - heightOf(highest));
    if (level !== highest) path.lineTo(x, bottom - heightOf(level));
  }
  path.lineTo(Math.min(xOf(data.length), width), bottom - heightOf(level));
  context.stroke(path);
  path.lineTo(Math.min(xOf(data.length), width), bottom);
  path.lineTo(GUTTER, bottom);
  context.fill(path);
}

/// The rows of the selected microbatch that hand something on, in order of time.
function pathOf(data) {
  if (data.path && data.path.microbatch === selected) return data.path.rows;
  const rows = [];
  for (let row = 0; row < data.start.length; ++row)
    if (data.microbatch[row] === selected && data.kinds[data.kind[row]].moves) rows.push(row);
  rows.sort((a, b) => data.start[a] - data.start[b] || a - b);
  data.path = { microbatch: selected, rows };
  return rows;
}

/// Lines from the end of each row to the start of the next, where that is on another rank.
function drawPath(data, rows) {
  const middles = new Map();
  for (const strip of strips)
    if (strip.data === data && strip.type === "rank") middles.set(strip.track.rank, yOf(strip) + BOX / 2);
  context.strokeStyle = "#000";
  context.lineWidth = 1;
  context.beginPath();
  let before = null;
  for (const row of rows) {
    if (!isCompute(data, row)) continue;
    const x = [xOf(data.start[row]), xOf(data.end[row])], y = middles.get(data.ranks[rankIndex(data, row)]);
    if (before && before.y !== y && x[0] > GUTTER && before.x < width) {
      context.moveTo(before.x, before.y);
      context.lineTo(x[0], y);
    }
    before = { x: x[1], y };
  }
  context.stroke();
}

function drawNames(seen) {
  context.textBaseline = "middle";
  context.fillStyle = "#fff";
  context.fillRect(0, 0, GUTTER, height);
  for (const strip of seen) {
    context.fillStyle = "#111";
    context.textAlign = strip.type === "title" ? "left" : "right";
    context.font = (strip.type === "title" ? "bold 13px" : "11px") + " Helvetica, Arial, sans-serif";
    if (strip.type === "title") context.fillText(strip.data.title, 8, yOf(strip) + TITLE / 2);
    if (strip.type === "rank") context.fillText("rank " + strip.track.rank, GUTTER - 6, yOf(strip) + BOX / 2);
    if (strip.type === "memory") context.fillText("≤ " + number(strip.track.memory.peak), GUTTER - 6, yOf(strip) + MEMORY / 2);
  }
}

/// The least of 1, 2 and 5 times a power of ten that is at least `value`.
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((digit) => digit * power).find((step) => step >= value * (1 - 1e-9));
}

function drawAxis() {
  context.fillStyle = "#fff";
  context.fillRect(0, 0, width, AXIS);
  context.fillStyle = "#111";
  context.strokeStyle = "#999";
  context.lineWidth = 1;
  context.font = "11px Helvetica, Arial, sans-serif";
  context.textAlign = "center";
  const step = roundUp(80 / scale());
  context.beginPath();
  context.moveTo(GUTTER, AXIS - 0.5);
  context.lineTo(width, AXIS - 0.5);
  for (let i = Math.ceil(view.from / step); i * step <= view.to; ++i) {
    const x = xOf(i * step);
    context.moveTo(x, AXIS - 6);
    context.lineTo(x, AXIS);
    context.fillText(number(i * step), x, 10);
  }
  context.stroke();
}

// ---- Pointer and keys -----------------------------------------------------------------------------------------------

/// The row at a place of the canvas, with its program; nothing elsewhere.
function rowAt(x, y) {
  const strip = strips.find((candidate) => candidate.type === "rank" && y >= yOf(candidate) && y < yOf(candidate) + candidate.height);
  if (!strip || x < GUTTER || y < AXIS) return null;
  const { data, track } = strip, inside = y - yOf(strip), time = timeOf(x);
  const list = inside < BOX ? track.compute : shows.messages ? track.messages : null;
  if (!list) return null;
  // What is drawn at least a pixel wide is found a pixel wide.
  const pixel = 1 / scale();
  for (let i = firstAbove(list.reach, time - pixel); i < list.rows.length; ++i) {
    const row = list.rows[i];
    if (data.start[row] > time) return null;
    if (Math.max(data.end[row], data.start[row] + pixel) <= time) continue;
    const group = inside < BOX ? members(data, row) : [row];
    return { data, row: group[Math.min(Math.floor((inside / BOX) * group.length), group.length - 1)] };
  }
  return null;
}

function memoryAt(x, y) {
  const strip = strips.find((candidate) => candidate.type === "memory" && y >= yOf(candidate) && y < yOf(candidate) + candidate.height);
  if (!strip || x < GUTTER || y < AXIS) return null;
  const { at, held } = strip.track.memory, i = firstAbove(at, timeOf(x)) - 1;
  return [["rank " + strip.track.rank + " holds " + number(i < 0 ? 0 : held[i]) + " at " + number(timeOf(x))]];
}

function showTooltip(lines, event) {
  tooltip.hidden = !lines;
  if (!lines) return;
  tooltip.replaceChildren(...lines.map(([text, style]) => {
    const line = document.createElement("div");
    line.textContent = text;
    if (style) line.className = style;
    return line;
  }));
  const box = tooltip.getBoundingClientRect();
  tooltip.style.left = Math.max(0, Math.min(event.clientX + 14, window.innerWidth - box.width - 4)) + "px";
  const below = event.clientY + 18;
  tooltip.style.top = (below + box.height < window.innerHeight ? below : Math.max(0, event.clientY - box.height - 10)) + "px";
}

function select(microbatch) {
  selected = microbatch;
  byId("microbatch").value = microbatch === null ? "" : microbatch;
  redraw();
}

function toggle(what) {
  shows[what] = !shows[what];
  byId(what).setAttribute("aria-pressed", shows[what]);
  layOut();
}

function listen() {
  let drag = null;
  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  canvas.addEventListener("pointerdown", (event) => {
    drag = { x: event.clientX, y: event.clientY, view: { ...view }, moved: false };
  });
  window.addEventListener("pointermove", (event) => {
    if (!drag) {
      const [x, y] = at(event), found = event.target === canvas && rowAt(x, y);
      return showTooltip(found ? describe(found.data, found.row) : event.target === canvas ? memoryAt(x, y) : null, event);
    }
    const dx = event.clientX - drag.x, dy = event.clientY - drag.y;
    drag.moved ||= Math.abs(dx) + Math.abs(dy) > 4;
    if (!drag.moved) return;
    tooltip.hidden = true;
    const time = dx / scale();
    move(drag.view.from - time, drag.view.to - time, drag.view.top - dy);
  });
  window.addEventListener("pointerup", (event) => {
    if (drag && !drag.moved) {
      const found = rowAt(...at(event));
      select(found && found.data.microbatch[found.row] !== selected ? found.data.microbatch[found.row] : null);
    }
    drag = null;
  });
  canvas.addEventListener("pointerleave", () => (tooltip.hidden = true));
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 16 : 1;
    if (event.shiftKey) move(view.from, view.to, view.top + (event.deltaY || event.deltaX) * lines);
    else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      const time = (event.deltaX * lines) / scale();
      move(view.from + time, view.to + time, view.top);
    } else zoom(Math.exp(event.deltaY * lines * 0.0015), at(event)[0]);
  }, { passive: false });
  const middle = () => (GUTTER + width) / 2;
  const keys = {
    ArrowLeft: () => pan(-0.1), ArrowRight: () => pan(0.1),
    ArrowUp: () => move(view.from, view.to, view.top - 60), ArrowDown: () => move(view.from, view.to, view.top + 60),
    "+": () => zoom(0.8, middle()), "=": () => zoom(0.8, middle()), "-": () => zoom(1.25, middle()),
    0: fit, c: () => toggle("critical"), m: () => toggle("memory"), s: () => toggle("messages"), Escape: () => select(null),
  };
  window.addEventListener("keydown", (event) => {
    const isTyping = event.target.tagName === "INPUT" && event.key !== "Escape";
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    keys[event.key]();
  });
  byId("fit").addEventListener("click", fit);
  for (const what of Object.keys(shows)) byId(what).addEventListener("click", () => toggle(what));
  byId("microbatch").addEventListener("input", (event) => {
    const value = event.target.value;
    selected = /^\d+$/.test(value) ? Number(value) : null;
    redraw();
  });
  new ResizeObserver(resize).observe(canvas);
}

function pan(share) {
  const time = (view.to - view.from) * share;
  move(view.from + time, view.to + time, view.top);
}

function fit() {
  move(0, length * 1.02, 0);
}

function legend() {
  const seen = new Map();
  for (const data of programs)
    for (const index of new Set(data.kind)) {
      const kind = data.kinds[index];
      if (kind.class === "compute" && !seen.has(kind.letters)) seen.set(kind.letters, kind);
    }
  for (const kind of seen.values()) {
    const entry = document.createElement("span"), swatch = document.createElement("i");
    swatch.style.background = kind.colors[0];
    entry.append(swatch, kind.letters + " " + kind.words);
    byId("legend").append(entry);
  }
}

/// For scripts and tests: the programs, and where a row is on the screen.
window.ppcc = {
  programs,
  get view() { return { ...view }; },
  get frames() { return frames; },
  move,
  screenOf(program, row) {
    const data = programs[program], rank = data.ranks[rankIndex(data, row)];
    const strip = strips.find((candidate) => candidate.data === data && candidate.type === "rank" && candidate.track.rank === rank);
    let first = row;
    while (isMember(data, first, data.rowStarts[rankIndex(data, row)])) --first;
    const group = members(data, first), box = canvas.getBoundingClientRect();
    const part = BOX / group.length, inside = isCompute(data, row) ? part * (row - first + 0.5) : BOX + MESSAGE / 2;
    return { x: box.left + (xOf(data.start[row]) + xOf(data.end[row])) / 2, y: box.top + yOf(strip) + inside };
  },
};

legend();
listen();
layOut();
if (programs.length && programs[0].span) move(programs[0].span[0], programs[0].span[1], 0);
else fit();
