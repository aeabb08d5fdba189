// Shows the programs of this page: what each rank does when. Plain canvas; only what is visible is drawn, at most one box a
// pixel, so that a frame costs the same however long the programs are.
"use strict";

const NONE = 0xffffffff; // A cause: it could start at once.
const HIDDEN = 0xfffffffe; // A cause: a row of a rank that the page does not have.
const AXIS = 26, TITLE = 30, BOX = 24, LANE = 14, MESSAGE = 8, MEMORY = 30, GAP = 4;
const FAMILY = "px Helvetica, Arial, sans-serif", FONT = 11 + FAMILY;
const TICK = 4, MAX_MARKS = 7; // The marks of chunks.
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
  on.lineWidth = 0.8;
  if (lines === "dots") on.fillRect(2.3, 2.3, 1.4, 1.4);
  else on.stroke(pathOf(lines));
  const pattern = on.createPattern(tile, "repeat");
  pattern.setTransform(new DOMMatrix().scale(1 / scale));
  return pattern;
});

/// Lines, each from a place to another.
function pathOf(lines) {
  const path = new Path2D();
  for (const [x, y, toX, toY] of lines) {
    path.moveTo(x, y);
    path.lineTo(toX, toY);
  }
  return path;
}

// ---- The data -------------------------------------------------------------------------------------------------------

function bytes(base64) {
  const text = atob(base64), result = new Uint8Array(text.length);
  for (let i = 0; i < text.length; ++i) result[i] = text.charCodeAt(i);
  return result.buffer;
}

/// What the page has as bytes, by name, as arrays of these types.
function columns(json, types) {
  return Object.fromEntries(Object.entries(types).map(([name, type]) => [name, new type(bytes(json[name]))]));
}

/// The program that one JSON text of the page holds, with times in units and the things to draw by rank.
function load(json) {
  const ticks = json.wide ? Float64Array : Uint32Array;
  const data = { ...json, ...columns(json.columns, {
    start: ticks, end: ticks, cause: Uint32Array, kind: Uint8Array, pipe: Uint8Array, stage: Uint16Array, peer: Uint16Array,
    microbatch: Uint32Array, phase: Uint16Array, joined: Uint8Array, site: Uint32Array, sites: Uint32Array, critical: Uint32Array,
  }) };
  for (const name of ["start", "end"]) data[name] = Float64Array.from(data[name], (tick) => (tick * json.tick) / 1e9);
  data.length = largest(data.end);
  data.onCritical = new Uint8Array(data.start.length);
  for (const row of data.critical) data.onCritical[row] = 1;
  data.nodes = json.nodes ? loadNodes(json.nodes) : null;
  data.box = Math.max(BOX, data.nodes ? LANE * data.nodes.lanes.length : 0);
  data.source = new Map(json.source.map(([file, line, text]) => [file + ":" + line, text]));
  data.tracks = json.ranks.map((rank, i) => {
    const compute = [], messages = [], beside = new Map();
    for (let row = json.rowStarts[i]; row < json.rowStarts[i + 1]; ++row) {
      const takesTime = data.end[row] > data.start[row], kind = kindOf(data, row);
      if (isCompute(data, row)) {
        if (takesTime && !isMember(data, row)) compute.push(row);
      } else if (takesTime && kind.class === "beside") {
        if (!beside.has(kind.lane)) beside.set(kind.lane, []);
        beside.get(kind.lane).push(row);
      } else messages.push(row);
    }
    for (const [lane, rows] of beside) beside.set(lane, items(data, rows));
    const memory = { ...json.memory[i], ...columns(json.memory[i], { at: Float64Array, held: Float64Array }) };
    memory.peak = largest(memory.held);
    return { rank, compute: items(data, compute), beside, messages: items(data, messages), memory };
  });
  data.beside = [...new Set(data.tracks.flatMap((track) => [...track.beside.keys()]))].sort((a, b) => a - b);
  data.peak = largest(data.tracks.map(({ memory }) => Math.max(memory.peak, memory.limit || 0)));
  return data;
}

/// At least 0.
const largest = (values) => values.reduce((most, value) => Math.max(most, value), 0);

/// The orders of nodes, each with the nodes of each lane in order of time; and what a node takes on average.
function loadNodes(json) {
  const nodes = { ...json, ...columns(json, {
    order: Uint32Array, begin: Uint32Array, member: Uint32Array, kind: Uint8Array, lane: Uint8Array, name: Uint32Array,
    layer: Uint32Array, start: Float64Array, end: Float64Array,
  }) };
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
  const drawn = nodes.order.filter((order) => order !== NONE);
  const sum = (what) => drawn.reduce((total, order) => total + nodes.orders[order][what], 0);
  nodes.mean = sum("taken") / sum("count") || 0;
  return nodes;
}

/// `#rrggbb` as three numbers.
const channels = (color) => [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));

const kindOf = (data, row) => data.kinds[data.kind[row]];
const isCompute = (data, row) => kindOf(data, row).class === "compute";
const isMessage = (kind) => kind.class === "send" || kind.class === "recv";
/// Whether the row is a later member of a group of compute actions.
const isMember = (data, row) => data.joined[row] === 1 && isCompute(data, row) && isCompute(data, row - 1);

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
  while (isMember(data, row + 1)) result.push(++row);
  return result;
}

/// All rows that run together with `row`.
function groupOf(data, row) {
  while (isMember(data, row)) --row;
  return members(data, row);
}

const rankIndex = (data, row) => firstAbove(data.rowStarts, row) - 1;
const rankOf = (data, row) => data.ranks[rankIndex(data, row)];

// ---- Words ----------------------------------------------------------------------------------------------------------

const number = (value) => String(Number(value.toFixed(9)));
/// Nothing for an action of a stage or a rank.
const microbatchText = (data, row) => (data.microbatch[row] === 0xffffffff ? "" : String(data.microbatch[row]));
const label = (data, row) => kindOf(data, row).label + microbatchText(data, row);
const cell = (data, row) => data.stage[row] + kindOf(data, row).mnemonic + microbatchText(data, row);
/// As in `B3.L1.mlp`; the letters are those of the node.
const nodeLabel = (data, row, node) => data.kinds[data.nodes.kind[node]].mnemonic + microbatchText(data, row);
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
  for (let cause = data.cause[row]; cause !== NONE && names.length < 8; cause = data.cause[cause]) {
    if (cause === HIDDEN) {
      names.push("a rank that is not shown");
      break;
    }
    names.push(cell(data, cause) + " on rank " + rankOf(data, cause) + " until " + number(data.end[cause]));
    if (isCompute(data, cause)) break;
  }
  return "waited for " + (names.join(", that for ") || "nothing");
}

const span = (start, end) => "from " + number(start) + " to " + number(end) + " (" + number(end - start) + ")";

/// The lines of the tooltip of a row, or of a node of it: [text, class].
function describe({ data, row, node, begin }) {
  const kind = kindOf(data, row), { nodes } = data, microbatch = microbatchText(data, row), phase = data.phases[data.phase[row]];
  const pipe = data.pipes.length > 1 ? " of pipe " + data.pipes[data.pipe[row]].name : "";
  const lines = [
    [(node === undefined ? "" : "in ") + cell(data, row) + ": " + kind.words],
    ["stage " + data.stage[row] + pipe + (microbatch && ", microbatch " + microbatch) + (phase && ", phase " + phase)],
    ["rank " + rankOf(data, row) + ", " + span(data.start[row], data.end[row])],
  ];
  if (node !== undefined)
    lines.unshift(
      [data.stage[row] + nodePath(data, row, node) + " on " + nodes.lanes[nodes.lane[node]]],
      [span(begin + nodes.start[node], begin + nodes.end[node])]);
  if (isMessage(kind)) lines.push([(kind.class === "send" ? "to" : "from") + " stage " + data.peer[row]]);
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
let width = 0, height = 0, strips = [], total = 0, pending = false, frames = 0;

const scale = () => (width - gutter - 8) / (view.to - view.from); // Pixels a unit of time.
const xOf = (time) => gutter + (time - view.from) * scale();
const timeOf = (x) => view.from + (x - gutter) / scale();
const showsNodes = (data) => data.nodes !== null && data.nodes.mean * scale() >= NODE;
const showsNodesOf = (data, row) => showsNodes(data) && data.nodes.order[row] !== NONE;

function widest(names) {
  context.font = FONT;
  return Math.min(Math.max(0, ...names.map((name) => context.measureText(name).width)), 120);
}

/// Pixels for names: those of ranks, and after them those of the lanes of nodes; the lanes beside have all of it.
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
  if (programs.length && programs[0].span) move(...programs[0].span, 0);
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
const chunkOf = (data, row) => data.pipes[data.pipe[row]].chunks[data.stage[row]];
const color = (data, row, kind = data.kind[row]) =>
  isDimmed(data, row) ? theme.dimmed : data.kinds[kind].colors[chunkOf(data, row)];

function fill(style, x, y, width, height) {
  context.fillStyle = style;
  context.fillRect(x, y, width, height);
}

function stroke(style, lineWidth, path) {
  context.strokeStyle = style;
  context.lineWidth = lineWidth;
  context.stroke(path);
}

function frame(style, lineWidth, x, y, width, height) {
  context.strokeStyle = style;
  context.lineWidth = lineWidth;
  context.strokeRect(x, y, width, height);
}

function draw() {
  fill(theme.paper, 0, 0, width, height);
  context.save();
  context.beginPath();
  context.rect(gutter, AXIS, width - gutter, height - AXIS);
  context.clip();
  const seen = strips.filter((strip) => yOf(strip) < height && yOf(strip) + strip.height > AXIS);
  drawRanks(seen);
  for (const strip of seen) if (strip.type === "memory") drawMemory(strip);
  for (const data of programs) {
    if (selected !== null) drawPath(data, chosenRows(data));
    if (shows.critical) drawPath(data, data.critical);
  }
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
      const member = half && isMember(data, row + 1) ? row + 1 : row;
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
  const least = 1 / scale(), wide = [], lines = [], ranks = seen.filter((strip) => strip.type === "rank");
  let halves = 0;
  for (const strip of ranks)
    for (const line of strip.lines) {
      lines.push({ strip, line, top: yOf(strip) + line.y, first: halves });
      halves += line.halves;
    }
  clearMeans(Math.max(1, halves));
  for (const { strip, line, first } of lines) {
    let hasNarrow = false;
    forEachVisible(line.data, line.list, view.from, view.to, least, (row, start, end) => {
      if (end - start < NARROW * least) hasNarrow = true;
      else wide.push({ strip, line, row });
    });
    if (hasNarrow) paintMeans(line, first);
  }
  means.context.putImageData(means.image, 0, 0);
  context.imageSmoothingEnabled = false;
  const columns = means.canvas.width;
  for (const { line, top, first } of lines)
    context.drawImage(means.canvas, 0, first, columns, line.halves, gutter, top, columns, line.height);
  context.font = FONT;
  context.textAlign = "center";
  context.textBaseline = "middle";
  chooseLabels(wide);
  for (const box of wide) drawBox(box);
  if (focused) drawFocus();
  if (shows.messages) for (const strip of ranks) drawMessages(strip);
}

/// Whether letters and digits fit, in one line or in two.
const fits = (text, room, size = 11) => room >= 0.6 * size * text.length + 2;
function fitsBoth(letters, digits, room, { size, stacked }) {
  return stacked ? fits(letters, room, size) && fits(digits, room, size) : fits(letters + digits, room, size);
}

/// The first of the ways in which all labels of actions fit that can be seen, else that in which most do.
function chooseLabels(boxes) {
  const styles = [11, 9].flatMap((size) => [false, true].map((stacked) => ({ size, stacked, count: 0 })));
  for (const { line: { data, lane }, row } of boxes) {
    if (lane !== undefined || showsNodesOf(data, row)) continue;
    const room = xOf(data.end[row]) - xOf(data.start[row]), digits = microbatchText(data, row), single = !isMember(data, row + 1);
    for (const style of styles)
      style.count += fitsBoth(kindOf(data, row).label, digits, room, { ...style, stacked: style.stacked && single });
  }
  labels = styles.reduce((best, style) => (style.count > best.count ? style : best));
}

function drawBox({ strip, line: { data, lane }, row }) {
  if (lane !== undefined) drawPart(strip, row, { words: [label(data, row), microbatchText(data, row)] });
  else if (showsNodesOf(data, row)) drawNodes(strip, row);
  else for (const member of members(data, row)) drawPart(strip, member, {});
}

/// The top and height of a lane of nodes in the row of its rank.
function laneAt(data, lane) {
  const height = data.box / data.nodes.lanes.length;
  return { top: height * lane, height };
}

function drawNodes(strip, row) {
  const { data } = strip, { nodes } = data, begin = data.start[row], left = xOf(begin);
  fill(theme.ground, left, yOf(strip), xOf(data.end[row]) - left, data.box);
  for (const list of nodes.orders[nodes.order[row]].lanes)
    forEachVisible(nodes, list, view.from - begin, view.to - begin, 1 / scale(), (node, start, end) => {
      const member = row + nodes.member[node], short = nodes.labels[nodes.name[node]];
      const words = [nodePath(data, member, node), nodeLabel(data, member, node) + "." + short, short];
      drawPart(strip, member, { node, start: begin + start, end: begin + end, words, kind: nodes.kind[node] });
    });
}

/// A box with the first of its words that fit; without words it has the label of the row.
function drawPart(strip, row, { node, words, kind = strip.data.kind[row], ...times }) {
  const { data } = strip, { start, end, top, height } = { ...areaOf(strip, row, node), ...times };
  const left = Math.max(xOf(start), gutter - 2), right = Math.min(xOf(end), width + 2), dimmed = isDimmed(data, row);
  const marked = (shows.critical || selected !== null) && !dimmed, pattern = patterns[data.kinds[kind].hatch];
  fill(color(data, row, kind), left, top, right - left, height);
  if (right - left < NARROW) return;
  if (pattern && !dimmed) fill(pattern, left, top, right - left, height);
  frame(marked ? theme.strong : "#555", marked ? 1.5 : 0.5, left, top, right - left, height);
  context.fillStyle = dimmed ? theme.faint : "#000";
  if (!dimmed) drawTicks(chunkOf(data, row), left, right, top);
  if (height < 9) return;
  if (!words) return drawLabel(data, row, left, right, top, height);
  const text = words.find((candidate) => fits(candidate, right - left));
  if (text) context.fillText(text, (left + right) / 2, top + height / 2 + 0.5);
}

/// One for chunk 1, two for chunk 2, so that chunks are distinct without colours.
function drawTicks(chunk, left, right, top) {
  if (chunk > MAX_MARKS || right - left < 2 * chunk + 3) return;
  for (let i = 0; i < chunk; ++i) context.fillRect(left + 1.5 + 2 * i, top, 1, TICK);
}

/// Around the action that the keys are at.
function drawFocus() {
  const strip = stripOf(focused.data, focused.row);
  if (!strip) return;
  const { start, end, top, height } = areaOf(strip, focused.row), left = xOf(start), wide = Math.max(xOf(end) - left, 1);
  frame(theme.paper, 4.5, left, top, wide, height);
  frame(theme.strong, 2.5, left, top, wide, height);
}

function drawMessages(strip) {
  const { data, track } = strip, top = yOf(strip) + strip.messages;
  forEachVisible(data, track.messages, view.from, view.to, 1 / scale(), (row, start, end) =>
    fill(color(data, row), xOf(start), top, Math.max(1, xOf(end) - xOf(start)), MESSAGE - 2));
}

/// The letters and the microbatch as all labels stand, or not at all. Only a box of a whole row has the height for two lines.
function drawLabel(data, row, left, right, top, height) {
  const letters = kindOf(data, row).label, digits = microbatchText(data, row), center = (left + right) / 2;
  const style = { size: labels.size, stacked: labels.stacked && height >= 20 && digits !== "" };
  if (!fitsBoth(letters, digits, right - left, style)) return;
  context.font = style.size + FAMILY;
  if (!style.stacked) return context.fillText(letters + digits, center, top + height / 2 + 0.5);
  context.fillText(letters, center, top + height / 4 + 1);
  context.fillText(digits, center, top + (3 * height) / 4);
}

/// Where an amount stands in a strip of memory.
const heightOf = ({ data }, amount) => (data.peak > 0 ? (amount / data.peak) * (MEMORY - 2) : 0);

function drawMemory(strip) {
  const { at, held, limit } = strip.track.memory, bottom = yOf(strip) + MEMORY, right = Math.min(xOf(strip.data.length), width);
  const path = new Path2D(), to = (x, amount) => path.lineTo(x, bottom - heightOf(strip, amount));
  let i = Math.max(firstAbove(at, view.from) - 1, 0);
  let level = at.length && at[i] <= view.from ? held[i] : 0;
  to(gutter, level);
  // Of the changes within a pixel, the highest and the last.
  while (i < at.length && at[i] <= view.to) {
    const x = Math.max(xOf(at[i]), gutter), first = i;
    to(x, level);
    while (++i < at.length && xOf(at[i]) < x + 1);
    const highest = largest(held.subarray(first, i));
    level = held[i - 1];
    to(x, highest);
    if (level !== highest) to(x, level);
  }
  to(right, level);
  stroke(theme.memory, 1, path);
  to(right, 0);
  to(gutter, 0);
  context.fillStyle = theme.memory + "33";
  context.fill(path);
  stroke(theme.line, 0.5, pathOf([[gutter, bottom, width, bottom]]));
  if (limit === undefined) return;
  const high = bottom - heightOf(strip, limit);
  context.setLineDash([4, 3]);
  stroke(theme.limit, 1, pathOf([[gutter, high, width, high]]));
  context.setLineDash([]);
}

/// The rows of the selected microbatch that hand something on, in order of time.
function chosenRows(data) {
  if (data.path && data.path.microbatch === selected) return data.path.rows;
  const rows = [];
  for (let row = 0; row < data.start.length; ++row)
    if (data.microbatch[row] === selected && kindOf(data, row).moves) rows.push(row);
  rows.sort((a, b) => data.start[a] - data.start[b] || a - b);
  data.path = { microbatch: selected, rows };
  return rows;
}

/// Lines from the end of each row to the start of the next, where that is on another rank.
function drawPath(data, rows) {
  const middles = new Map(), lines = [];
  for (const strip of strips)
    if (strip.data === data && strip.type === "rank") middles.set(strip.track.rank, yOf(strip) + data.box / 2);
  let before = null;
  for (const row of rows) {
    if (!isCompute(data, row)) continue;
    const x = xOf(data.start[row]), y = middles.get(rankOf(data, row));
    if (before && before.y !== y && x > gutter && before.x < width) lines.push([before.x, before.y, x, y]);
    before = { x: xOf(data.end[row]), y };
  }
  stroke(theme.strong, 1, pathOf(lines));
}

function drawNames(seen) {
  const drawName = { title: drawTitle, rank: drawRankNames, memory: drawMemoryAxis };
  context.textBaseline = "middle";
  fill(theme.paper, 0, 0, gutter, height);
  for (const strip of seen) {
    context.fillStyle = theme.text;
    context.textAlign = "right";
    context.font = FONT;
    drawName[strip.type](strip);
  }
}

function drawTitle(strip) {
  context.textAlign = "left";
  context.font = "bold 13" + FAMILY;
  context.fillText(strip.data.title, 8, yOf(strip) + TITLE / 2);
}

/// Nothing, and the limit or the most that the rank holds.
function drawMemoryAxis(strip) {
  const { limit, peak } = strip.track.memory, bottom = yOf(strip) + MEMORY, most = limit ?? peak, y = bottom - heightOf(strip, most);
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
  fill(theme.paper, 0, 0, width, AXIS);
  context.fillStyle = theme.text;
  context.font = FONT;
  context.textAlign = "center";
  const step = roundUp(80 / scale()), lines = [[gutter, AXIS - 0.5, width, AXIS - 0.5]];
  for (let i = Math.ceil(view.from / step); i * step <= view.to; ++i) {
    const x = xOf(i * step);
    lines.push([x, AXIS - 6, x, AXIS]);
    context.fillText(number(i * step), x, 10);
  }
  stroke(theme.line, 1, pathOf(lines));
}

// ---- Pointer and keys -----------------------------------------------------------------------------------------------

/// The strip of this type at a place of the canvas, if there is one.
function stripAt(type, x, y) {
  if (x < gutter || y < AXIS) return undefined;
  return strips.find((strip) => strip.type === type && y >= yOf(strip) && y < yOf(strip) + strip.height);
}

/// The row at a place of the canvas, with its program, and where nodes show the node and when its box begins; nothing elsewhere.
function rowAt(x, y) {
  const strip = stripAt("rank", x, y);
  if (!strip) return null;
  const { data, track } = strip, inside = y - yOf(strip), time = timeOf(x);
  const line = strip.lines.find((candidate) => inside >= candidate.y && inside < candidate.y + candidate.height);
  if (!line && !(shows.messages && inside >= strip.messages)) return null;
  const row = itemAt(data, line ? line.list : track.messages, time);
  if (row === null || !line || line.lane !== undefined) return row === null ? null : { data, row };
  if (showsNodesOf(data, row)) return nodeAt(data, row, time, inside);
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
  const strip = stripAt("memory", x, y);
  if (!strip) return null;
  const { at, held, limit } = strip.track.memory, i = firstAbove(at, timeOf(x)) - 1;
  const of = limit === undefined ? "" : ", of at most " + number(limit);
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

/// Chooses the microbatch of a row, or, when it is chosen, none.
function choose(data, row) {
  select(data.microbatch[row] === selected ? null : data.microbatch[row]);
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
      if (found) choose(found.data, found.row);
      else select(null);
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
  const keys = new Map(Object.entries({
    ArrowLeft: () => step(-1), ArrowRight: () => step(1), ArrowUp: () => cross(-1), ArrowDown: () => cross(1),
    Home: () => step(-Infinity), End: () => step(Infinity),
    Enter: () => focused && choose(focused.data, focused.row),
    "+": () => zoom(0.8, middle()), "=": () => zoom(0.8, middle()), "-": () => zoom(1.25, middle()),
    0: fit, c: () => toggle("critical"), m: () => toggle("memory"), s: () => toggle("messages"), Escape: () => select(null),
  }));
  const shifted = new Map(Object.entries({
    ArrowLeft: () => pan(-0.1), ArrowRight: () => pan(0.1),
    ArrowUp: () => move(view.from, view.to, view.top - 60), ArrowDown: () => move(view.from, view.to, view.top + 60),
  }));
  window.addEventListener("keydown", (event) => {
    const isTyping = event.target.tagName === "INPUT" && event.key !== "Escape";
    const isPressing = event.target.tagName === "BUTTON" && event.key === "Enter";
    const does = (event.shiftKey && shifted.get(event.key)) || keys.get(event.key);
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
  strip.type === "rank" && strip.data === data && strip.track.rank === rankOf(data, row));

/// When a row, or a node of it, runs, and where it is on the canvas.
function areaOf(strip, row, node) {
  const { data } = strip, { nodes } = data, y = yOf(strip), group = groupOf(data, row), begin = data.start[group[0]];
  if (node !== undefined) {
    const { top, height } = laneAt(data, nodes.lane[node]);
    return { start: begin + nodes.start[node], end: begin + nodes.end[node], top: y + top, height };
  }
  const kind = kindOf(data, row), times = { start: data.start[row], end: data.end[row] };
  const line = kind.class === "beside" && strip.lines.find((candidate) => candidate.lane === kind.lane);
  if (line) return { ...times, top: y + line.y, height: LANE };
  if (!isCompute(data, row)) return { ...times, top: y + strip.messages - 1, height: MESSAGE };
  const height = data.box / group.length;
  return { ...times, top: y + height * (row - group[0]), height };
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
  const lines = describe(focused), area = areaOf(strip, row), at = canvas.getBoundingClientRect(), below = at.top + area.top;
  showTooltip(lines, { clientX: at.left + Math.max(xOf(start), gutter), clientY: below + area.height, top: below });
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
  const kinds = new Map(), chunks = new Map();
  for (const { kinds: all, kind, nodes, chunks: words } of programs) {
    for (const index of new Set([...kind, ...(nodes ? nodes.kind : [])]))
      if (!isMessage(all[index]) && !kinds.has(all[index].mnemonic)) kinds.set(all[index].mnemonic, all[index]);
    words.forEach((text, chunk) => chunk > MAX_MARKS || chunks.has(chunk) || chunks.set(chunk, { text, color: all[0].colors[chunk] }));
  }
  byId("legend").replaceChildren();
  const add = (text, styles, ticks = 0) => {
    const entry = document.createElement("span"), swatch = document.createElement("canvas"), on = swatch.getContext("2d");
    [swatch.width, swatch.height] = [16, 12];
    swatch.setAttribute("aria-hidden", "true");
    for (const style of styles) {
      on.fillStyle = style;
      on.fillRect(0, 0, 16, 12);
    }
    on.fillStyle = "#000";
    for (let i = 0; i < ticks; ++i) on.fillRect(2 + 2 * i, 0, 1, TICK);
    on.strokeStyle = "#555";
    on.strokeRect(0.5, 0.5, 15, 11);
    entry.append(swatch, text);
    byId("legend").append(entry);
  };
  for (const { label, mnemonic, words, colors, hatch } of kinds.values())
    add([...new Set([label, mnemonic]), words].join(" "), patterns[hatch] ? [colors[0], patterns[hatch]] : [colors[0]]);
  for (const [chunk, { text, color }] of chunks) add(text, [color], chunk);
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
    const data = programs[program], { start, end, top, height } = areaOf(stripOf(data, row), row, node);
    const { left, top: above } = canvas.getBoundingClientRect();
    return { x: left + (xOf(start) + Math.max(xOf(end), xOf(start) + 1)) / 2, y: above + top + height / 2 };
  },
};

readTheme();
listen();
show(Array.from(document.querySelectorAll('script[type="application/json"]'), (element) => element.textContent));
