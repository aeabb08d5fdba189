// Shows the programs of this page: what each rank does when. Plain canvas; only what is visible is drawn, at most one box a
// pixel, so that a frame costs the same however long the programs are.
"use strict";

const NONE = 0xffffffff; // A cause: it could start at once.
const HIDDEN = 0xfffffffe; // A cause: a row of a rank that the page does not have.
const AXIS = 26, TITLE = 30, BOX = 24, LANE = 14, MESSAGE = 8, MEMORY = 30, GAP = 4;
const FAMILY = "px Helvetica, Arial, sans-serif", FONT = 11 + FAMILY;
const TICK = 4, MOST_TICKS = 7; // The marks of chunks.
const NARROW = 3; // Boxes below this many pixels have neither border nor label.
const NODE = 12; // Nodes show once they are this many pixels wide on average, so that most have a label.

// ---- Colours ----------------------------------------------------------------------------------------------------------

/// Those of viewer.css, which has others for dark pages.
const theme = {};
function readTheme() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["paper", "ground", "dimmed", "text", "faint", "line", "strong", "memory", "limit"])
    theme[name] = style.getPropertyValue("--" + name).trim();
}

/// Lines of a tile of six pixels by the number of a hatch, as Figure.cpp has them; one of them is dots.
const HATCHES = [[], [[-1, 1, 1, -1], [0, 6, 6, 0], [5, 7, 7, 5]], [[-1, 5, 1, 7], [0, 0, 6, 6], [5, -1, 7, 1]], "dots",
  [[0, 6, 6, 0], [0, 0, 6, 6]], [[0, 1.5, 6, 1.5], [0, 4.5, 6, 4.5]], [[1.5, 0, 1.5, 6], [4.5, 0, 4.5, 6]], [[0, 3, 6, 3], [3, 0, 3, 6]]];
const patterns = HATCHES.map((lines) => {
  if (!lines.length) return null;
  const scale = Math.max(1, Math.round(window.devicePixelRatio || 1));
  const tile = new OffscreenCanvas(6 * scale, 6 * scale), on = tile.getContext("2d");
  on.scale(scale, scale);
  on.globalAlpha = 0.25;
  if (lines === "dots") on.fillRect(2.3, 2.3, 1.4, 1.4);
  else
    for (const [x, y, toX, toY] of lines) {
      on.beginPath();
      on.lineWidth = 0.8;
      on.moveTo(x, y);
      on.lineTo(toX, toY);
      on.stroke();
    }
  const pattern = on.createPattern(tile, "repeat");
  pattern.setTransform(new DOMMatrix().scale(1 / scale));
  return pattern;
});

// ---- The data -------------------------------------------------------------------------------------------------------

function bytes(base64) {
  const text = atob(base64);
  const result = new Uint8Array(text.length);
  for (let i = 0; i < text.length; ++i) result[i] = text.charCodeAt(i);
  return result.buffer;
}

/// The program that one JSON text of the page holds, with times in units and the things to draw by rank.
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
  data.nodes = json.nodes ? loadNodes(json.nodes) : null;
  data.box = Math.max(BOX, data.nodes ? LANE * data.nodes.lanes.length : 0);
  data.source = new Map(json.source.map(([file, line, text]) => [file + ":" + line, text]));
  data.tracks = json.ranks.map((rank, i) => {
    const compute = [], messages = [], beside = new Map();
    for (let row = json.rowStarts[i]; row < json.rowStarts[i + 1]; ++row) {
      const takesTime = data.end[row] > data.start[row], kind = data.kinds[data.kind[row]];
      if (isCompute(data, row)) {
        if (takesTime && !isMember(data, row, json.rowStarts[i])) compute.push(row);
      } else if (takesTime && kind.class === "beside") {
        if (!beside.has(kind.lane)) beside.set(kind.lane, []);
        beside.get(kind.lane).push(row);
      } else messages.push(row);
    }
    const at = new Float64Array(bytes(json.memory[i].at)), held = new Float64Array(bytes(json.memory[i].held));
    let peak = 0;
    for (const value of held) peak = Math.max(peak, value);
    for (const [lane, rows] of beside) beside.set(lane, items(data, rows));
    const { limit } = json.memory[i];
    return { rank, compute: items(data, compute), beside, messages: items(data, messages), memory: { at, held, peak, limit } };
  });
  data.beside = [...new Set(data.tracks.flatMap((track) => [...track.beside.keys()]))].sort((a, b) => a - b);
  data.peak = data.tracks.reduce((peak, { memory }) => Math.max(peak, memory.peak, memory.limit || 0), 0);
  return data;
}

/// The orders of nodes, each with the nodes of each lane in order of time; and what a node takes on average.
function loadNodes(json) {
  const column = (name, type) => new type(bytes(json[name]));
  const nodes = {
    lanes: json.lanes, names: json.names, order: column("order", Uint32Array), begin: column("begin", Uint32Array),
    member: column("member", Uint32Array), kind: column("kind", Uint8Array), lane: column("lane", Uint8Array),
    name: column("name", Uint32Array), layer: column("layer", Uint32Array),
    start: column("start", Float64Array), end: column("end", Float64Array), labels: json.labels,
  };
  // Lanes on which nothing runs are left out.
  const used = [...new Set(nodes.lane)].sort((a, b) => a - b);
  nodes.lanes = used.map((lane) => json.lanes[lane]);
  nodes.lane = nodes.lane.map((lane) => used.indexOf(lane));
  nodes.orders = Array.from({ length: nodes.begin.length - 1 }, (_, order) => {
    const lanes = nodes.lanes.map(() => []), first = nodes.begin[order], last = nodes.begin[order + 1];
    let taken = 0;
    for (let node = first; node < last; ++node) {
      lanes[nodes.lane[node]].push(node);
      taken += nodes.end[node] - nodes.start[node];
    }
    return { lanes: lanes.map((list) => items(nodes, list)), taken, count: last - first };
  });
  let taken = 0, count = 0;
  for (const order of nodes.order)
    if (order !== NONE) {
      taken += nodes.orders[order].taken;
      count += nodes.orders[order].count;
    }
  nodes.mean = count ? taken / count : 0;
  return nodes;
}

/// `#rrggbb` as three numbers.
const channels = (color) => [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));

const isCompute = (data, row) => data.kinds[data.kind[row]].class === "compute";
/// Whether the row is a later member of a group of compute actions.
const isMember = (data, row, first) => data.joined[row] === 1 && row > first && isCompute(data, row - 1);

/// Rows, or nodes, in order of their starts, ready for searches by time.
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
const label = (data, row) => data.kinds[data.kind[row]].label + microbatchText(data, row);
const cell = (data, row) => data.stage[row] + data.kinds[data.kind[row]].letters + microbatchText(data, row);
/// As in `B3.L1.mlp`; the letters are those of the node.
const nodeLabel = (data, row, node) => data.kinds[data.nodes.kind[node]].letters + microbatchText(data, row);
function nodePath(data, row, node) {
  const { layer, name, names } = data.nodes;
  return nodeLabel(data, row, node) + (layer[node] === NONE ? "" : ".L" + layer[node]) + "." + names[name[node]];
}

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

const span = (start, end) => "from " + number(start) + " to " + number(end) + " (" + number(end - start) + ")";

/// The lines of the tooltip of a row, or of a node of it: [text, class].
function describe({ data, row, node, begin }) {
  const kind = data.kinds[data.kind[row]], { nodes } = data;
  const pipe = data.pipes.length > 1 ? " of pipe " + data.pipes[data.pipe[row]].name : "";
  const phase = data.phases[data.phase[row]];
  const start = data.start[row], end = data.end[row];
  const lines = [
    [(node === undefined ? "" : "in ") + cell(data, row) + ": " + kind.words],
    ["stage " + data.stage[row] + pipe + (microbatchText(data, row) && ", microbatch " + microbatchText(data, row)) + (phase ? ", phase " + phase : "")],
    ["rank " + data.ranks[rankIndex(data, row)] + ", " + span(start, end)],
  ];
  if (node !== undefined)
    lines.unshift(
      [data.stage[row] + nodePath(data, row, node) + " on " + nodes.lanes[nodes.lane[node]]],
      [span(begin + nodes.start[node], begin + nodes.end[node])]);
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
let programs = [], length = 0; // The time of the longest one.
const shows = { critical: false, messages: false, memory: false };
let selected = null; // A microbatch.
let focused = null; // The action that the keys are at: { data, row }.
let labels = { size: 11, stacked: false }; // All that stand in boxes look alike.
let view = { from: 0, to: 0, top: 0 };
const EMPTY = { rows: new Uint32Array(0), reach: new Float64Array(0) };
let width = 0, height = 0, strips = [], total = 0, pending = false, frames = 0;

const scale = () => (width - gutter - 8) / (view.to - view.from); // Pixels a unit of time.
const xOf = (time) => gutter + (time - view.from) * scale();
const timeOf = (x) => view.from + (x - gutter) / scale();
const showsNodes = (data) => data.nodes !== null && data.nodes.mean * scale() >= NODE;

function widest(names) {
  context.font = FONT;
  return Math.min(Math.max(0, ...names.map((name) => context.measureText(name).width)), 120);
}

/// Pixels for names: those of ranks, and behind them those of the lanes of nodes; the lanes beside have all of it.
let laneNames = 0, gutter = 0;

/// Shows these programs, each JSON. Who has zoomed stays there, and what is chosen stays chosen.
function show(texts) {
  const stays = length > 0 && hasMoved();
  programs = texts.map((text) => load(JSON.parse(text)));
  length = Math.max(...programs.map((data) => data.length));
  focused = null;
  tooltip.hidden = true;
  laneNames = widest(programs.flatMap((data) => (data.nodes ? data.nodes.lanes : [])));
  const beside = widest(programs.flatMap((data) => data.beside.map((lane) => data.lanes[lane])));
  gutter = Math.ceil(Math.max(78, laneNames && laneNames + 76, beside + 12));
  canvas.setAttribute("aria-label", "What each rank does when: " + programs.map((data) => data.title).join("; "));
  legend();
  layOut();
  if (stays) return;
  if (programs.length && programs[0].span) move(programs[0].span[0], programs[0].span[1], 0);
  else fit();
}

/// What stands under what: titles, ranks, memory curves. Lanes of a rank stand in its strip.
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
      const lines = [{ data, list: track.compute, y: 0, height: data.box, halves: 2 }];
      let bottom = data.box;
      for (const lane of data.beside) {
        if (!track.beside.has(lane)) continue;
        lines.push({ data, list: track.beside.get(lane), lane, y: bottom + 2, height: LANE, halves: 1 });
        bottom += 2 + LANE;
      }
      const messages = shows.messages && track.messages.rows.length ? MESSAGE : 0;
      const gap = lines.length > 1 ? 2 * GAP : GAP;
      add({ type: "rank", data, track, lines, messages: bottom + 1, height: bottom + messages + gap });
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

function color(data, row, kind = data.kind[row]) {
  const chunk = data.pipes[data.pipe[row]].chunks[data.stage[row]];
  return isDimmed(data, row) ? theme.dimmed : data.kinds[kind].colors[chunk];
}

function draw() {
  context.fillStyle = theme.paper;
  context.fillRect(0, 0, width, height);
  context.save();
  context.beginPath();
  context.rect(gutter, AXIS, width - gutter, height - AXIS);
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

/// An image of the visible lines, a row of pixels each, two where members of groups share it: each pixel has the mean of the
/// colours of its time. It is stretched to the heights of the lines; what is wide enough for a border is drawn over it.
const means = { canvas: document.createElement("canvas"), image: null };
means.context = means.canvas.getContext("2d");

function clearMeans(rows) {
  const columns = Math.max(1, Math.ceil(width - gutter)), { canvas: own } = means;
  if (!means.image || own.width !== columns || own.height !== rows) {
    own.width = columns;
    own.height = rows;
    means.image = means.context.createImageData(columns, rows);
  }
  const [red, green, blue] = channels(theme.ground);
  new Uint32Array(means.image.data.buffer).fill(0xff000000 + (blue << 16) + (green << 8) + red);
}

/// For each half of a line, and each colour channel, the integrals up to each box of how its colour differs from the ground.
function integralsOf({ data, list, halves }) {
  const choice = theme.ground + selected + (shows.critical ? " critical" : "");
  if (list.integrals && list.choice === choice) return list.integrals;
  const { rows } = list, ground = channels(theme.ground), known = new Map();
  const integrals = Array.from({ length: halves }, () => ground.map(() => new Float64Array(rows.length + 1)));
  const channelsOf = (name) => {
    if (!known.has(name)) known.set(name, channels(name).map((value, i) => value - ground[i]));
    return known.get(name);
  };
  for (let i = 0; i < rows.length; ++i) {
    const row = rows[i], length = data.end[row] - data.start[row];
    for (let half = 0; half < halves; ++half) {
      const member = half && data.joined[row + 1] && isCompute(data, row + 1) ? row + 1 : row;
      channelsOf(color(data, member)).forEach((value, c) => {
        integrals[half][c][i + 1] = integrals[half][c][i] + value * length;
      });
    }
  }
  list.choice = choice;
  return (list.integrals = integrals);
}

/// Paints a line, from the row `top` of the image on.
function paintMeans(line, top) {
  const { data, list } = line, { rows, reach } = list, integrals = integralsOf(line);
  const ground = channels(theme.ground), pixels = means.image.data, columns = means.canvas.width, step = 1 / scale();
  const before = integrals.map(() => [0, 0, 0]);
  for (let x = -1; x < columns; ++x) {
    const time = view.from + (x + 1) * step, i = firstAbove(reach, time); // The end of the column, and the box there.
    const start = i < rows.length ? data.start[rows[i]] : time;
    const part = start < time ? (time - start) / (data.end[rows[i]] - start) : 0;
    for (let half = 0; half < integrals.length; ++half)
      for (let c = 0; c < 3; ++c) {
        const integral = integrals[half][c];
        const sum = part ? integral[i] + (integral[i + 1] - integral[i]) * part : integral[i];
        if (x >= 0) pixels[4 * ((top + half) * columns + x) + c] = ground[c] + (sum - before[half][c]) / step;
        before[half][c] = sum;
      }
  }
}

function drawRanks(seen) {
  const least = 1 / scale(), wide = [], lines = [];
  for (const strip of seen)
    if (strip.type === "rank") for (const line of strip.lines) lines.push({ line, top: yOf(strip) + line.y });
  const halves = lines.reduce((sum, { line }) => sum + line.halves, 0);
  clearMeans(Math.max(1, halves));
  let row = 0;
  for (const { line, top } of lines) {
    let hasNarrow = false;
    forEachVisible(line.data, line.list, view.from, view.to, least, (box, start, end) => {
      if (end - start < NARROW * least) hasNarrow = true;
      else wide.push({ line, top, row: box });
    });
    if (hasNarrow) paintMeans(line, row);
    row += line.halves;
  }
  means.context.putImageData(means.image, 0, 0);
  context.imageSmoothingEnabled = false;
  row = 0;
  for (const { line, top } of lines) {
    context.drawImage(means.canvas, 0, row, means.canvas.width, line.halves, gutter, top, means.canvas.width, line.height);
    row += line.halves;
  }
  context.font = FONT;
  context.textAlign = "center";
  context.textBaseline = "middle";
  chooseLabels(wide);
  for (const box of wide) drawBox(box);
  if (focused) drawFocus();
  if (shows.messages) for (const strip of seen) if (strip.type === "rank") drawMessages(strip);
}

/// Whether letters and digits fit, in one line or in two.
const fits = (text, room, size = 11) => room >= 0.6 * size * text.length + 2;
function fitsBoth(letters, digits, room, { size, stacked }) {
  return stacked ? fits(letters, room, size) && fits(digits, room, size) : fits(letters + digits, room, size);
}

/// The first of the ways in which all labels of actions fit that can be seen, else that in which most do.
function chooseLabels(boxes) {
  const styles = [11, 9].flatMap((size) => [{ size, stacked: false }, { size, stacked: true }]).map((style) => ({ ...style, count: 0 }));
  for (const { line, row } of boxes) {
    const { data } = line;
    if (line.lane !== undefined || (showsNodes(data) && data.nodes.order[row] !== NONE)) continue;
    const room = xOf(data.end[row]) - xOf(data.start[row]), digits = microbatchText(data, row);
    const single = !(data.joined[row + 1] && isCompute(data, row + 1));
    for (const style of styles)
      style.count += fitsBoth(data.kinds[data.kind[row]].label, digits, room, { ...style, stacked: style.stacked && single });
  }
  labels = styles.reduce((best, style) => (style.count > best.count ? style : best));
}

function drawBox({ line, top, row }) {
  const { data } = line;
  if (line.lane !== undefined) {
    const words = [label(data, row), microbatchText(data, row)];
    return drawPart(data, row, { start: data.start[row], end: data.end[row], top, height: line.height, words });
  }
  if (showsNodes(data) && data.nodes.order[row] !== NONE) return drawNodes(data, row, top);
  const group = members(data, row);
  group.forEach((member, i) => {
    const height = line.height / group.length;
    drawPart(data, member, { start: data.start[row], end: data.end[row], top: top + i * height, height });
  });
}

/// The top and height of a lane of nodes in the row of its rank.
function laneAt(data, lane) {
  const height = data.box / data.nodes.lanes.length;
  return { top: height * lane, height };
}

function drawNodes(data, row, top) {
  const { nodes } = data, begin = data.start[row], left = xOf(begin);
  context.fillStyle = theme.ground;
  context.fillRect(left, top, xOf(data.end[row]) - left, data.box);
  nodes.orders[nodes.order[row]].lanes.forEach((list, lane) => {
    const { top: above, height } = laneAt(data, lane);
    forEachVisible(nodes, list, view.from - begin, view.to - begin, 1 / scale(), (node, start, end) => {
      const member = row + nodes.member[node];
      const short = nodes.labels[nodes.name[node]], words = [nodePath(data, member, node), nodeLabel(data, member, node) + "." + short, short];
      drawPart(data, member, { start: begin + start, end: begin + end, top: top + above, height, words, kind: nodes.kind[node] });
    });
  });
}

/// A box with the first of its words that fit; without words it has the label of the row.
function drawPart(data, row, { start, end, top, height, words, kind = data.kind[row] }) {
  const left = Math.max(xOf(start), gutter - 2), right = Math.min(xOf(end), width + 2), dimmed = isDimmed(data, row);
  const marked = (shows.critical || selected !== null) && !dimmed, pattern = patterns[data.kinds[kind].hatch];
  context.fillStyle = color(data, row, kind);
  context.fillRect(left, top, right - left, height);
  if (right - left < NARROW) return;
  if (pattern && !dimmed) {
    context.fillStyle = pattern;
    context.fillRect(left, top, right - left, height);
  }
  context.strokeStyle = marked ? theme.strong : "#555";
  context.lineWidth = marked ? 1.5 : 0.5;
  context.strokeRect(left, top, right - left, height);
  context.fillStyle = dimmed ? theme.faint : "#000";
  if (!dimmed) drawTicks(data.pipes[data.pipe[row]].chunks[data.stage[row]], left, right, top);
  if (height < 9) return;
  if (!words) return drawLabel(data, row, left, right, top, height);
  const text = words.find((candidate) => fits(candidate, right - left));
  if (text) context.fillText(text, (left + right) / 2, top + height / 2 + 0.5);
}

/// One for chunk 1, two for chunk 2, so that chunks can be told without colours.
function drawTicks(chunk, left, right, top) {
  if (chunk > MOST_TICKS || right - left < 2 * chunk + 3) return;
  for (let i = 0; i < chunk; ++i) context.fillRect(left + 1.5 + 2 * i, top, 1, TICK);
}

/// Around the action that the keys are at.
function drawFocus() {
  const strip = stripOf(focused.data, focused.row);
  if (!strip) return;
  const box = areaOf(strip, focused.row);
  for (const [color, wide] of [[theme.paper, 4.5], [theme.strong, 2.5]]) {
    context.strokeStyle = color;
    context.lineWidth = wide;
    context.strokeRect(box.left, box.top, Math.max(box.right - box.left, 1), box.height);
  }
}

function drawMessages(strip) {
  const { data, track } = strip, top = yOf(strip) + strip.messages;
  forEachVisible(data, track.messages, view.from, view.to, 1 / scale(), (row, start, end) => {
    context.fillStyle = color(data, row);
    context.fillRect(xOf(start), top, Math.max(1, xOf(end) - xOf(start)), MESSAGE - 2);
  });
}

/// The letters and the microbatch as all labels stand, or not at all. Only a box of a whole row has the height for two lines.
function drawLabel(data, row, left, right, top, height) {
  const letters = data.kinds[data.kind[row]].label, digits = microbatchText(data, row), center = (left + right) / 2;
  const style = { size: labels.size, stacked: labels.stacked && height >= 20 && digits !== "" };
  if (!fitsBoth(letters, digits, right - left, style)) return;
  context.font = style.size + FAMILY;
  if (!style.stacked) return context.fillText(letters + digits, center, top + height / 2 + 0.5);
  context.fillText(letters, center, top + height / 4 + 1);
  context.fillText(digits, center, top + (3 * height) / 4);
}

function drawMemory(strip) {
  const { data, track } = strip, { at, held } = track.memory, bottom = yOf(strip) + MEMORY;
  const heightOf = (value) => (data.peak > 0 ? (value / data.peak) * (MEMORY - 2) : 0);
  context.fillStyle = theme.memory + "33";
  context.strokeStyle = theme.memory;
  context.lineWidth = 1;
  const path = new Path2D();
  let i = Math.max(firstAbove(at, view.from) - 1, 0);
  let level = at.length && at[i] <= view.from ? held[i] : 0;
  path.moveTo(gutter, bottom - heightOf(level));
  // Of the changes within a pixel, the highest and the last.
  while (i < at.length && at[i] <= view.to) {
    const x = Math.max(xOf(at[i]), gutter);
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
  path.lineTo(gutter, bottom);
  context.fill(path);
  const line = (y) => {
    context.beginPath();
    context.moveTo(gutter, y);
    context.lineTo(width, y);
    context.stroke();
  };
  context.strokeStyle = theme.line;
  context.lineWidth = 0.5;
  line(bottom);
  if (track.memory.limit === undefined) return;
  context.strokeStyle = theme.limit;
  context.lineWidth = 1;
  context.setLineDash([4, 3]);
  line(bottom - heightOf(track.memory.limit));
  context.setLineDash([]);
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
    if (strip.data === data && strip.type === "rank") middles.set(strip.track.rank, yOf(strip) + data.box / 2);
  context.strokeStyle = theme.strong;
  context.lineWidth = 1;
  context.beginPath();
  let before = null;
  for (const row of rows) {
    if (!isCompute(data, row)) continue;
    const x = [xOf(data.start[row]), xOf(data.end[row])], y = middles.get(data.ranks[rankIndex(data, row)]);
    if (before && before.y !== y && x[0] > gutter && before.x < width) {
      context.moveTo(before.x, before.y);
      context.lineTo(x[0], y);
    }
    before = { x: x[1], y };
  }
  context.stroke();
}

function drawNames(seen) {
  context.textBaseline = "middle";
  context.fillStyle = theme.paper;
  context.fillRect(0, 0, gutter, height);
  for (const strip of seen) {
    context.fillStyle = theme.text;
    context.textAlign = strip.type === "title" ? "left" : "right";
    context.font = strip.type === "title" ? "bold 13px Helvetica, Arial, sans-serif" : FONT;
    if (strip.type === "title") context.fillText(strip.data.title, 8, yOf(strip) + TITLE / 2);
    if (strip.type === "rank") drawRankNames(strip);
    if (strip.type === "memory") drawMemoryAxis(strip);
  }
}

/// Nothing, and the limit or the most that the rank holds.
function drawMemoryAxis(strip) {
  const { data, track } = strip, { limit, peak } = track.memory, bottom = yOf(strip) + MEMORY, most = limit ?? peak;
  const y = bottom - (data.peak > 0 ? (most / data.peak) * (MEMORY - 2) : 0);
  context.font = 9 + FAMILY;
  if (bottom - y > 10) context.fillText("0", gutter - 6, bottom - 3);
  if (limit !== undefined) context.fillStyle = theme.limit;
  context.fillText(number(most), gutter - 6, Math.max(y, yOf(strip) + 3));
}

function drawRankNames(strip) {
  const { data } = strip, top = yOf(strip);
  context.fillText("rank " + strip.track.rank, gutter - 6 - (data.nodes ? laneNames + 8 : 0), top + data.box / 2);
  if (showsNodes(data))
    data.nodes.lanes.forEach((name, lane) => {
      const place = laneAt(data, lane);
      context.fillText(name, gutter - 6, top + place.top + place.height / 2, laneNames);
    });
  for (const line of strip.lines)
    if (line.lane !== undefined) context.fillText(data.lanes[line.lane], gutter - 6, top + line.y + LANE / 2, gutter - 12);
}

/// The least of 1, 2 and 5 times a power of ten that is at least `value`.
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((digit) => digit * power).find((step) => step >= value * (1 - 1e-9));
}

function drawAxis() {
  context.fillStyle = theme.paper;
  context.fillRect(0, 0, width, AXIS);
  context.fillStyle = theme.text;
  context.strokeStyle = theme.line;
  context.lineWidth = 1;
  context.font = FONT;
  context.textAlign = "center";
  const step = roundUp(80 / scale());
  context.beginPath();
  context.moveTo(gutter, AXIS - 0.5);
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

/// The row at a place of the canvas, with its program, and where nodes show the node and when its box begins; nothing elsewhere.
function rowAt(x, y) {
  const strip = strips.find((candidate) => candidate.type === "rank" && y >= yOf(candidate) && y < yOf(candidate) + candidate.height);
  if (!strip || x < gutter || y < AXIS) return null;
  const { data, track } = strip, inside = y - yOf(strip), time = timeOf(x);
  const line = strip.lines.find((candidate) => inside >= candidate.y && inside < candidate.y + candidate.height);
  const list = line ? line.list : shows.messages && inside >= strip.messages ? track.messages : EMPTY;
  const row = itemAt(data, list, time);
  if (row === null || !line || line.lane !== undefined) return row === null ? null : { data, row };
  if (showsNodes(data) && data.nodes.order[row] !== NONE) return nodeAt(data, row, time, inside);
  const group = members(data, row);
  return { data, row: group[Math.floor((inside / data.box) * group.length)] };
}

/// The row, or node, of a list at a time. What is drawn at least a pixel wide is found a pixel wide.
function itemAt(data, list, time) {
  const pixel = 1 / scale();
  for (let i = firstAbove(list.reach, time - pixel); i < list.rows.length; ++i) {
    const row = list.rows[i];
    if (data.start[row] > time) return null;
    if (Math.max(data.end[row], data.start[row] + pixel) > time) return row;
  }
  return null;
}

function nodeAt(data, row, time, inside) {
  const { nodes } = data, begin = data.start[row];
  const lane = Math.floor((inside / data.box) * nodes.lanes.length);
  const node = itemAt(nodes, nodes.orders[nodes.order[row]].lanes[lane], time - begin);
  return node === null ? null : { data, row: row + nodes.member[node], node, begin };
}

function memoryAt(x, y) {
  const strip = strips.find((candidate) => candidate.type === "memory" && y >= yOf(candidate) && y < yOf(candidate) + candidate.height);
  if (!strip || x < gutter || y < AXIS) return null;
  const { at, held } = strip.track.memory, i = firstAbove(at, timeOf(x)) - 1;
  const { limit } = strip.track.memory, of = limit === undefined ? "" : ", of at most " + number(limit);
  return [["rank " + strip.track.rank + " holds " + number(i < 0 ? 0 : held[i]) + " at " + number(timeOf(x)) + of]];
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
  tooltip.style.top = (below + box.height < window.innerHeight ? below : Math.max(0, (event.top ?? event.clientY) - box.height - 10)) + "px";
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
      return showTooltip(found ? describe(found) : event.target === canvas ? memoryAt(x, y) : null, event);
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
  const middle = () => (gutter + width) / 2;
  const keys = {
    ArrowLeft: () => step(-1), ArrowRight: () => step(1), ArrowUp: () => cross(-1), ArrowDown: () => cross(1),
    Home: () => step(-Infinity), End: () => step(Infinity),
    Enter: () => focused && select(focused.data.microbatch[focused.row] === selected ? null : focused.data.microbatch[focused.row]),
    "+": () => zoom(0.8, middle()), "=": () => zoom(0.8, middle()), "-": () => zoom(1.25, middle()),
    0: fit, c: () => toggle("critical"), m: () => toggle("memory"), s: () => toggle("messages"), Escape: () => select(null),
  };
  const shifted = {
    ArrowLeft: () => pan(-0.1), ArrowRight: () => pan(0.1),
    ArrowUp: () => move(view.from, view.to, view.top - 60), ArrowDown: () => move(view.from, view.to, view.top + 60),
  };
  window.addEventListener("keydown", (event) => {
    const isTyping = event.target.tagName === "INPUT" && event.key !== "Escape";
    const isPressing = event.target.tagName === "BUTTON" && event.key === "Enter";
    const does = event.shiftKey && Object.hasOwn(shifted, event.key) ? shifted[event.key] : Object.hasOwn(keys, event.key) && keys[event.key];
    if (isTyping || isPressing || event.ctrlKey || event.metaKey || event.altKey || !does) return;
    event.preventDefault();
    does();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    readTheme();
    redraw();
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

// ---- From action to action by keys ------------------------------------------------------------------------------------

const rankStrips = () => strips.filter((strip) => strip.type === "rank" && strip.track.compute.rows.length);
const stripOf = (data, row) => strips.find((strip) =>
  strip.type === "rank" && strip.data === data && strip.track.rank === data.ranks[rankIndex(data, row)]);

/// Where an action of a rank is on the canvas.
function areaOf(strip, row) {
  const { data } = strip;
  let first = row;
  while (isMember(data, first, data.rowStarts[rankIndex(data, row)])) --first;
  const height = data.box / members(data, first).length;
  return { left: xOf(data.start[row]), right: xOf(data.end[row]), top: yOf(strip) + height * (row - first), height };
}

/// All actions of a rank that take time, members of groups too.
const walkable = ({ data, track }) => [...track.compute.rows].flatMap((row) => members(data, row));

/// To the action so many further on the rank; without one to the first that can be seen.
function step(count) {
  if (!focused) return enter(rankStrips()[0], view.from);
  const strip = stripOf(focused.data, focused.row), rows = walkable(strip);
  focus(focused.data, rows[Math.max(0, Math.min(rows.length - 1, rows.indexOf(focused.row) + count))]);
}

/// To what a rank further down, or up, does at that time.
function cross(count) {
  const ranks = rankStrips();
  if (!focused) return enter(ranks[0], view.from);
  const next = ranks[ranks.indexOf(stripOf(focused.data, focused.row)) + count];
  if (next) enter(next, focused.data.start[focused.row]);
}

function enter(strip, time) {
  if (!strip) return;
  const { rows, reach } = strip.track.compute;
  focus(strip.data, rows[Math.min(firstAbove(reach, time), rows.length - 1)]);
}

/// Shows and speaks it.
function focus(data, row) {
  focused = { data, row };
  const strip = stripOf(data, row), span = view.to - view.from, start = data.start[row], end = data.end[row];
  const from = start < view.from ? start - span / 8 : end > view.to ? end - (span * 7) / 8 : view.from;
  const inside = strip.y + strip.height - view.top;
  const top = strip.y < view.top ? strip.y : inside > height - AXIS ? view.top + inside - (height - AXIS) : view.top;
  move(from, from + span, top);
  const lines = describe(focused), box = areaOf(strip, row), at = canvas.getBoundingClientRect();
  showTooltip(lines, { clientX: at.left + Math.max(box.left, gutter), clientY: at.top + box.top + box.height, top: at.top + box.top });
  byId("spoken").textContent = lines.map(([text]) => text).join("; ");
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
  byId("legend").replaceChildren();
  for (const data of programs)
    for (const index of new Set([...data.kind, ...(data.nodes ? data.nodes.kind : [])])) {
      const kind = data.kinds[index];
      if (kind.class !== "send" && kind.class !== "recv" && !seen.has(kind.letters)) seen.set(kind.letters, kind);
    }
  const add = (text, paint) => {
    const entry = document.createElement("span"), swatch = document.createElement("canvas"), on = swatch.getContext("2d");
    [swatch.width, swatch.height] = [16, 12];
    swatch.setAttribute("aria-hidden", "true");
    paint(on);
    on.strokeStyle = "#555";
    on.strokeRect(0.5, 0.5, 15, 11);
    entry.append(swatch, text);
    byId("legend").append(entry);
  };
  const paint = (on, style) => {
    on.fillStyle = style;
    on.fillRect(0, 0, 16, 12);
  };
  for (const kind of seen.values())
    add([...new Set([kind.label, kind.letters]), kind.words].join(" "), (on) => {
      paint(on, kind.colors[0]);
      if (patterns[kind.hatch]) paint(on, patterns[kind.hatch]);
    });
  const chunks = new Map();
  for (const { chunks: words, kinds } of programs)
    words.forEach((text, chunk) => chunks.has(chunk) || chunks.set(chunk, { text, color: kinds[0].colors[chunk] }));
  for (const [chunk, { text, color }] of chunks)
    if (chunk <= MOST_TICKS)
      add(text, (on) => {
        paint(on, color);
        on.fillStyle = "#000";
        for (let i = 0; i < chunk; ++i) on.fillRect(2 + 2 * i, 0, 1, TICK);
      });
  byId("nodes").hidden = !programs.some((data) => data.nodes);
}

const hasMoved = () => view.from > 0 || view.top > 0 || view.to < length * 1.01;

/// For scripts, tests and pages around this one: the programs, others in their place, and where a row is on the screen.
window.ppcc = {
  get programs() { return programs; },
  show,
  get view() { return { ...view }; },
  get frames() { return frames; },
  move,
  screenOf(program, row, node) {
    const data = programs[program], { nodes } = data, rank = data.ranks[rankIndex(data, row)], kind = data.kinds[data.kind[row]];
    const strip = strips.find((candidate) => candidate.data === data && candidate.type === "rank" && candidate.track.rank === rank);
    let first = row;
    while (isMember(data, first, data.rowStarts[rankIndex(data, row)])) --first;
    const group = members(data, first), box = canvas.getBoundingClientRect();
    const line = strip.lines.find((candidate) => candidate.lane === kind.lane);
    let start = data.start[row], end = data.end[row], inside = (data.box / group.length) * (row - first + 0.5);
    if (node !== undefined) {
      const place = laneAt(data, nodes.lane[node]);
      end = data.start[first] + nodes.end[node];
      start = data.start[first] + nodes.start[node];
      inside = place.top + place.height / 2;
    } else if (kind.class === "beside" && line) inside = line.y + LANE / 2;
    else if (!isCompute(data, row)) inside = strip.messages - 1 + MESSAGE / 2;
    return { x: box.left + (xOf(start) + Math.max(xOf(end), xOf(start) + 1)) / 2, y: box.top + yOf(strip) + inside };
  },
};

readTheme();
listen();
show(Array.from(document.querySelectorAll('script[type="application/json"]'), (element) => element.textContent));
