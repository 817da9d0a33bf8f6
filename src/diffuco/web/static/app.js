// The page: a graph, a problem, a solve that is watched while it runs and played again afterwards.

import { bit, get, post, postForEvents, unpack } from "./api.js";
import { compact, drawChart } from "./chart.js";
import { Drawing } from "./drawing.js";
import { PROBLEMS, pointedOut } from "./problems.js";
import { GraphView, drawThumb } from "./view.js";

const $ = (id) => document.getElementById(id);

const GENERATORS = {
  rb: { first: ["Cliques", "num_cliques", 12, 2], second: ["Nodes in each", "clique_size", 7, 2] },
  ba: { first: ["Nodes", "num_nodes", 150, 2], second: ["Edges each", "attachments", 2, 1] },
  er: { first: ["Nodes", "num_nodes", 120, 1], second: ["Edge probability", "edge_probability", 0.05, 0, 0.01] },
  "random-qubo": { first: ["Variables", "num_nodes", 80, 1], second: ["Density", "density", 0.1, 0, 0.01] },
};

const MOST_DRAWN = 5000; // a graph of more nodes is shown by dots that stand for several nodes each
const MOST_DOTS = 2000;
const QUICKLY_PROVEN = 100; // most nodes of a graph whose optimum is asked for beside the samples of a model
const SAMPLED_PARTS = 300000; // nodes and edges, times samples, that a CPU denoises well within the time of a request

const state = {
  about: null,
  models: [],
  problem: "mis",
  file: null, // the file that was chosen last, as it is sent to the server
  source: null, // the graph as it is sent to the server
  isGeneratorChosen: false, // by hand, not by what suits the problem
  areSamplesChosen: false, // by hand, not by the size of the graph
  graph: null,
  picture: null, // what is drawn: the graph, or groups of its nodes once they are known
  positions: null,
  frames: [], // the noise and the states after every step
  decoded: null, // the last frame: the decoded and refined samples
  answer: null,
  numSteps: 0,
  frame: 0,
  selected: 0,
  isPlaying: false,
  solving: null, // AbortController of the running solve
  proof: null, // what another method has proven of the graph
  proving: null, // AbortController of that method
};

const drawing = new Drawing();
const view = new GraphView($("graph"), { onHover: showTip, onClick: clickDrawing, onJoin: (u, v) => changeDrawing("join", u, v) });
let layoutWorker = null;
let layoutId = 0;
let graphRequest = 0;

start();

async function start() {
  makeProblems();
  chooseGenerator();
  listen();
  drawEnergies();
  try {
    [state.about, { models: state.models }] = await Promise.all([get("api/about"), get("api/models")]);
    describeServer();
    listModels();
    await drawGraph();
  } catch (error) {
    say(error);
  }
}

function describeServer() {
  const { version, device, limits, formats } = state.about;
  $("server").textContent = `diffuco ${version} on ${device}`;
  const suffixes = Object.values(formats).map((format) => format.suffixes);
  $("formats").textContent = `${suffixes.map(([first]) => first).join(" ")}; up to ${limits.max_nodes.toLocaleString("en")} nodes`;
  $("formats").title = suffixes.flat().join(" ");
  $("format").append(new Option("automatic, by its name", ""), ...Object.keys(formats).map((name) => new Option(name)));
  $("samples").max = limits.max_samples;
  $("factor").max = limits.max_step_factor;
}

// --- what to solve ---------------------------------------------------------------------------------------------------

function makeProblems() {
  for (const [name, { short }] of Object.entries(PROBLEMS)) {
    const label = document.createElement("label");
    const input = Object.assign(document.createElement("input"), { type: "radio", name: "problem", value: name });
    input.checked = name === state.problem;
    input.addEventListener("change", () => chooseProblem(name));
    label.append(input, short);
    $("problems").append(label);
  }
  chooseProblem(state.problem);
}

function chooseProblem(name) {
  state.problem = name;
  $("explanation").textContent = PROBLEMS[name].text;
  listModels();
  forgetSolve();
  const { suits } = PROBLEMS[name];
  // A QUBO needs coefficients; the other problems need only edges.
  const isWrongKind = (suits === "random-qubo") !== ($("generator").value === "random-qubo");
  if (state.graph && !["text", "edges"].includes(state.source.kind) && (isWrongKind || (!state.isGeneratorChosen && suits !== $("generator").value))) {
    $("generator").value = suits;
    chooseGenerator();
    drawGraph();
  }
}

function listModels() {
  const models = state.models.filter((model) => model.problem === state.problem);
  $("model").replaceChildren(new Option("automatic", ""), ...models.map(({ name }) => new Option(name)));
  describeModel();
}

function describeModel() {
  const model = state.models.find(({ name }) => name === $("model").value);
  $("about-model").textContent = model ? `Trained on ${model.trained_on}.` : "Chosen to suit the graph; the answer names it.";
  $("about-model").title = model ? `Choose it for ${model.choose_it_for}.` : "";
}

function chooseGenerator() {
  const chosen = GENERATORS[$("generator").value];
  for (const place of ["first", "second"]) {
    const [text, , value, least, step] = chosen[place];
    $(`${place}-label`).firstChild.textContent = text;
    Object.assign($(place), { value, min: least, step: step ?? 1 });
  }
}

function drawGraph() {
  const kind = $("generator").value;
  const source = { kind, seed: number("graph-seed") };
  for (const place of ["first", "second"]) source[GENERATORS[kind][place][1]] = number(place);
  return loadGraph(source);
}

async function readFile(file) {
  try {
    if (file.size > state.about.limits.max_body_bytes) throw new Error(`${file.name}: larger than this server accepts`);
    const isPacked = /\.gz$/i.test(file.name);
    const stream = isPacked ? file.stream().pipeThrough(new DecompressionStream("gzip")) : file.stream();
    state.file = { kind: "text", name: file.name, text: await new Response(stream).text() };
    $("format").value = "";
    await loadGraph(state.file);
  } catch (error) {
    forgetGraph();
    say(error instanceof TypeError ? new Error(`${file.name}: the file cannot be unpacked`) : error, "graph-message");
  }
}

function readPasted() {
  state.file = { kind: "text", name: "pasted.txt", text: $("pasted").value };
  $("format").value = "";
  return loadGraph(state.file);
}

/** Let the format be chosen where the name of a file does not tell it: it told the wrong one, or a .txt, which may be in any. */
function offerFormats(source, isRead) {
  const isTold = isRead && !source.format && !/\.txt(\.gz)?$/i.test(source.name);
  $("format-choice").hidden = source.kind !== "text" || isTold;
  $("format-of").textContent = `Read ${source.name} as`;
  $("about-format").textContent = state.about.formats[source.format]?.description ?? "";
}

async function loadGraph(source) {
  const request = ++graphRequest;
  say("", "graph-message");
  busy("reading the graph");
  $("solve").disabled = $("play").disabled = true;
  try {
    const shown = await post("api/graph", { graph: source });
    if (request !== graphRequest) return;
    $("drawing").hidden = true;
    state.source = source;
    showGraph({
      name: shown.name || "graph",
      numNodes: shown.nodes,
      edges: Int32Array.from(shown.edges),
      edgeWeights: shown.edge_weights,
      labels: shown.labels,
    });
    layOut();
    if (shown.notes.length) say(shown.notes.join("; "), "graph-message", "note");
    offerFormats(source, true);
    if (source.kind === "text") $("graph").scrollIntoView({ block: "nearest" }); // on a phone the picture is not beside the file
  } catch (error) {
    if (request !== graphRequest) return;
    forgetGraph();
    say(error, "graph-message");
    offerFormats(source, false);
  } finally {
    if (request === graphRequest) busy();
  }
}

function showGraph(graph) {
  const { name, numNodes, edges } = graph;
  const isDrawn = !$("drawing").hidden;
  state.graph = graph;
  state.picture = null;
  if (isCoarse()) view.clear();
  else showPicture(graph, isDrawn);
  forgetSolve();
  const text = `${counted(numNodes, "node")}, ${counted(edges.length / 2, "edge")}`;
  $("about-graph").replaceChildren(bold(name), ` ${text}`);
  $("graph").setAttribute("aria-label", `Graph ${name}: ${text}`);
  $("solve").disabled = $("play").disabled = numNodes === 0;
  const affordable = Math.floor(SAMPLED_PARTS / (numNodes + edges.length / 2));
  if (!state.areSamplesChosen) $("samples").value = Math.max(1, Math.min($("samples").defaultValue, affordable));
}

function isCoarse() {
  return state.graph?.numNodes > MOST_DRAWN;
}

function showPicture(picture, isDrawn) {
  state.picture = picture;
  view.show(picture, isDrawn);
}

/** After an error, neither the graph before nor its answer may look as if they were asked for. */
function forgetGraph() {
  stopLayout();
  $("drawing").hidden = true;
  Object.assign(state, { graph: null, picture: null, positions: null, source: null });
  view.clear();
  forgetSolve();
  $("about-graph").replaceChildren();
  $("graph").setAttribute("aria-label", "No graph");
  $("solve").disabled = $("play").disabled = true;
}

/** Where the nodes are, for tests. */
export const positions = () => state.positions;

function stopLayout() {
  layoutWorker?.terminate();
  layoutId++;
}

function layOut() {
  stopLayout();
  layoutWorker = new Worker("static/layout.js");
  const id = layoutId;
  const { numNodes, edges } = state.graph;
  layoutWorker.onmessage = ({ data }) => {
    if (data.id !== layoutId) return;
    if (data.coarse) {
      showPicture(data.coarse);
      $("about-graph").append(`; a dot is about ${counted(Math.round(numNodes / data.coarse.numNodes), "node")}`);
      if (frameAt(state.frame)) showStates();
      return;
    }
    state.positions = data.positions;
    view.move(data.positions, data.isFinal);
    if (data.isFinal) {
      drawThumbs();
      document.documentElement.dataset.layout = id; // tests wait for this
    }
  };
  layoutWorker.postMessage({ id, numNodes, edges, mostDots: isCoarse() ? MOST_DOTS : null });
}

// --- drawing by hand -------------------------------------------------------------------------------------------------

function startDrawing() {
  graphRequest++; // a graph that is still on its way is no longer wanted
  say("", "graph-message");
  $("format-choice").hidden = true;
  $("drawing").hidden = false;
  showDrawing();
  $("graph").scrollIntoView({ block: "nearest" });
}

function showDrawing() {
  const { places, edges, before } = drawing;
  stopLayout();
  state.source = { kind: "edges", edges, num_nodes: places.length };
  showGraph({ name: "drawing", numNodes: places.length, edges: Int32Array.from(edges.flat()), edgeWeights: null, labels: null });
  state.positions = Float32Array.from(places.flat());
  view.move(state.positions, true);
  $("undo").disabled = !before.length;
  $("clear").disabled = !places.length;
  $("how-to-draw").hidden = edges.length > 0;
  pick(drawing.picked);
}

function pick(node) {
  drawing.picked = node;
  view.pick(node);
  $("remove").disabled = node < 0;
}

function clickDrawing(node, place) {
  const { picked } = drawing;
  if (node < 0) changeDrawing("add", place);
  else if (picked >= 0 && picked !== node) changeDrawing("join", picked, node);
  else pick(picked === node ? -1 : node);
}

function changeDrawing(how, ...what) {
  drawing[how](...what);
  showDrawing();
}

// --- solving ---------------------------------------------------------------------------------------------------------

async function solve() {
  if (state.solving) {
    state.solving.abort();
    return;
  }
  forgetSolve();
  const control = new AbortController();
  state.solving = control;
  $("solve").textContent = "Stop";
  const method = $("method").value;
  busy(method ? "solving" : "waiting for the first step");
  const common = { problem: state.problem, graph: state.source, seed: number("seed") };
  const body = {
    ...common,
    model: $("model").value || null,
    samples: number("samples"),
    step_factor: number("factor"),
    refine: $("refine").checked ? null : 0,
  };
  try {
    if (method) takeAtOnce(await post("api/solve", { ...common, method }, control.signal), control);
    else await postForEvents("api/solve/stream", body, (kind, content) => take(kind, content, control), control.signal);
    if (state.solving === control && !state.answer) throw new Error("the stream ended before the answer");
    if (state.solving === control && !method && state.graph.numNodes <= QUICKLY_PROVEN) askForProof(common);
  } catch (error) {
    if (state.solving === control && error.name !== "AbortError") say(error);
  } finally {
    if (state.solving === control) {
      state.solving = null;
      nameSolve();
      busy();
    }
  }
}

/** The answer of a method that has no steps to watch. */
function takeAtOnce(answer, control) {
  if (state.solving !== control) return;
  const { labels, numNodes } = state.graph;
  const chosen = new Set(answer.solution);
  const bytes = new Uint8Array(Math.ceil(numNodes / 8));
  for (let i = 0; i < numNodes; i++) if (chosen.has(labels ? labels[i] : i)) bytes[i >> 3] |= 128 >> (i & 7);
  state.answer = { ...answer, states: [""], chosen: "" };
  state.decoded = { states: [bytes], energies: [Math.min(...answer.energies)] };
  showFrame(1);
}

/** Learn from another method how good the best sample of a model is. */
async function askForProof(request) {
  const { answer } = state;
  state.proving = new AbortController();
  try {
    const { optimal, bound, objective } = await post("api/solve", request, state.proving.signal);
    const isReached = answer.feasible && Math.abs(objective - answer.objective) <= 1e-9 * Math.abs(objective);
    const gap = Math.abs(bound - answer.objective) / Math.abs(answer.objective);
    state.proof = { optimal: optimal && isReached, bound, gap: bound === null || !answer.objective ? null : gap };
    if ($("proof")) showProof();
  } catch (error) {
    if (error.name !== "AbortError") say(error);
  }
}

function nameSolve() {
  $("solve").textContent = $("method").value ? "Solve" : "Solve and watch";
  for (const one of document.querySelectorAll("[data-model]")) one.hidden = Boolean($("method").value);
}

function take(kind, content, control) {
  if (state.solving !== control) return;
  if (kind === "error") throw new Error(content.error);
  if (kind === "start") {
    state.numSteps = content.num_steps;
    $("scrub").max = content.num_steps + 1;
    makeThumbs(content.samples);
    if (content.ahead) busy(`waiting, ${content.ahead} ahead of you`);
  }
  if (kind === "step") {
    state.frames.push({ states: content.states.map(unpack), energies: content.energies });
    if (content.index === 0) {
      busy();
      for (const id of ["back", "forward", "scrub"]) $(id).disabled = false;
      showFrame(0);
      play(true);
    } else {
      drawEnergies();
    }
  }
  if (kind === "solution") {
    state.answer = content;
    state.decoded = { states: content.states.map(unpack), energies: content.energies };
    drawEnergies();
    if (!state.isPlaying) play(true);
  }
}

/** Stop what runs and clear what was found. */
function forgetSolve() {
  state.solving?.abort();
  state.proving?.abort();
  state.solving = state.proving = null;
  nameSolve();
  play(false);
  say("");
  Object.assign(state, { frames: [], decoded: null, answer: null, proof: null, numSteps: 0, frame: 0, selected: 0 });
  for (const id of ["back", "forward", "scrub"]) $(id).disabled = true;
  Object.assign($("scrub"), { value: 0, max: 1 });
  $("step").textContent = "not solved yet";
  $("live").textContent = "";
  $("thumbs").replaceChildren();
  $("answer").replaceChildren(Object.assign(document.createElement("p"), { className: "hint", textContent: "The best sample, once the noise is gone." }));
  delete document.documentElement.dataset.answer;
  showLegend();
  if (state.picture) view.setStates(state.problem, null);
  drawEnergies();
  busy();
}

// --- playing ---------------------------------------------------------------------------------------------------------

const lastFrame = () => (state.decoded ? state.numSteps + 1 : state.frames.length - 1);
const frameAt = (index) => (index > state.numSteps ? state.decoded : state.frames[index]);

function play(isPlaying) {
  state.isPlaying = isPlaying && state.frames.length > 0;
  $("play").classList.toggle("playing", state.isPlaying);
  $("play").setAttribute("aria-label", state.isPlaying ? "Pause" : "Play");
  clearTimeout(play.timer);
  if (state.isPlaying) play.timer = setTimeout(advance, 1000 / Number($("speed").value));
}

function advance() {
  const isEnd = state.decoded && state.frame === lastFrame();
  if (state.frame < lastFrame()) showFrame(state.frame + 1);
  play(!isEnd && !(state.decoded && state.frame === lastFrame()));
}

function togglePlay() {
  if (!state.frames.length) {
    if (state.graph && !state.solving) solve();
    return;
  }
  if (!state.isPlaying && state.decoded && state.frame === lastFrame()) showFrame(0);
  play(!state.isPlaying);
}

function showFrame(index) {
  state.frame = Math.max(0, Math.min(index, lastFrame()));
  const isDecoded = state.frame > state.numSteps;
  $("scrub").value = state.frame;
  $("step").textContent = isDecoded ? (state.numSteps ? "decoded" : "solved") : state.frame === 0 ? "noise" : `step ${state.frame} of ${state.numSteps}`;
  $("scrub").setAttribute("aria-valuetext", $("step").textContent);
  if (isDecoded && !document.documentElement.dataset.answer) {
    state.selected = bestSample();
    showAnswer();
  }
  showStates();
  drawThumbs();
  drawEnergies();
}

function showStates() {
  const frame = frameAt(state.frame);
  const on = expand(frame.states[state.selected]);
  const { broken, ...marks } = pointedOut(state.problem, state.graph, on);
  if (state.picture) view.setStates(state.problem, shadesOf(on), state.picture.groups ? undefined : marks);
  const size = on.reduce((sum, value) => sum + value, 0);
  const parts = [`energy ${compact(frame.energies[state.selected])}`, `${size.toLocaleString("en")} ${PROBLEMS[state.problem].on}`];
  if (!["max-cut", "qubo"].includes(state.problem)) parts.push(`${broken.toLocaleString("en")} broken`);
  $("live").textContent = parts.join(" · ");
}

function expand(bytes) {
  return Uint8Array.from({ length: state.graph.numNodes }, (_, i) => bit(bytes, i));
}

/** How the dots of the picture are shaded: by whether their node is chosen, or by how many nodes of their group are. */
function shadesOf(on) {
  const { groups, sizes } = state.picture;
  if (!groups) return on;
  const shades = new Float32Array(sizes.length);
  groups.forEach((group, i) => { shades[group] += on[i]; });
  sizes.forEach((size, group) => { shades[group] /= size; });
  if (state.problem === "max-cut") return shades;
  const most = shades.reduce((a, b) => Math.max(a, b)) || 1;
  return shades.map((value) => value / most); // or the few nodes of a clique would not be seen
}

/** The sample that became the answer. */
function bestSample() {
  return Math.max(0, state.answer.states.indexOf(state.answer.chosen));
}

function choose(sample) {
  if (sample >= (state.frames[0]?.energies.length ?? 0)) return;
  state.selected = sample;
  showStates();
  drawThumbs();
  drawEnergies();
}

function makeThumbs(count) {
  const thumbs = Array.from({ length: count }, (_, sample) => {
    const thumb = document.createElement("button");
    Object.assign(thumb, { type: "button", className: "thumb" });
    thumb.setAttribute("role", "radio");
    thumb.append(document.createElement("canvas"), document.createElement("span"));
    thumb.addEventListener("click", () => choose(sample));
    return thumb;
  });
  $("thumbs").replaceChildren(...thumbs);
}

function drawThumbs() {
  const frame = frameAt(state.frame);
  if (!frame || !state.picture) return;
  [...$("thumbs").children].forEach((thumb, sample) => {
    const isBest = state.answer && state.frame > state.numSteps && sample === bestSample();
    const isSelected = sample === state.selected;
    thumb.classList.toggle("best", Boolean(isBest));
    thumb.setAttribute("aria-checked", isSelected);
    thumb.tabIndex = isSelected ? 0 : -1;
    thumb.lastChild.textContent = compact(frame.energies[sample]);
    thumb.setAttribute("aria-label", `Sample ${sample + 1}, energy ${compact(frame.energies[sample])}${isBest ? ", the answer" : ""}`);
    drawThumb(thumb.firstChild, state.positions, shadesOf(expand(frame.states[sample])), view.colours, state.problem === "max-cut");
  });
}

function drawEnergies() {
  const { frames, numSteps, decoded, frame, selected } = state;
  drawChart($("chart"), { frames, numSteps, decoded: frames.length ? decoded : null, frame, selected }); // no steps, no chart
}

// --- the answer ------------------------------------------------------------------------------------------------------

function showAnswer() {
  const { answer } = state;
  const { unit } = PROBLEMS[state.problem];
  const isWeight = unit === "node" && answer.objective !== answer.solution.length;
  const noun = isWeight ? "weight" : unit === "node" ? plural(answer.objective, unit) : unit;
  const value = document.createElement("p");
  value.className = "value";
  value.append(Object.assign(document.createElement("output"), { id: "objective", textContent: plain(answer.objective) }), ` ${noun}`);
  const verdict = document.createElement("p");
  verdict.id = "feasible";
  verdict.className = answer.feasible ? "verdict good" : "verdict bad";
  verdict.textContent = answer.feasible ? "feasible, checked independently" : `${counted(answer.violations, "constraint")} broken`;
  const proof = document.createElement("p");
  proof.id = "proof";

  const mean = answer.objectives.reduce((sum, one) => sum + one, 0) / answer.objectives.length;
  const bars = document.createElement("dl");
  bars.className = "bars";
  const samples = answer.objectives.length > 1 && state.numSteps ? [["mean sample", mean, ""]] : [];
  const rows = [["diffuco", answer.objective, "ours"], ...samples, ["greedy", answer.greedy.objective, ""]];
  const most = Math.max(...rows.map(([, one]) => Math.abs(one)), 1e-9);
  for (const [name, one, kind] of rows) {
    const bar = Object.assign(document.createElement("meter"), { min: 0, max: most, value: Math.abs(one), className: kind });
    bar.setAttribute("aria-hidden", "true");
    const cell = document.createElement("dd");
    cell.append(bar, Object.assign(document.createElement("b"), { textContent: plain(Number(one.toFixed(2))) }));
    bars.append(Object.assign(document.createElement("dt"), { textContent: name }), cell);
  }
  const words = { better: "better than greedy", equal: "as good as greedy", worse: "not as good as greedy: this model does not suit the graph" };
  const comparison = document.createElement("p");
  comparison.id = "comparison";
  comparison.className = `tag ${answer.greedy.comparison}`;
  comparison.textContent = words[answer.greedy.comparison];
  if (answer.greedy.comparison === "worse" && !state.numSteps) comparison.textContent = "not as good as greedy";
  const alone = document.createElement("p");
  Object.assign(alone, { id: "alone", className: "hint" });
  if (answer.greedy.comparison !== "worse" && state.numSteps && answer.sweeps && areSamplesPoor()) alone.textContent = "The samples alone are not as good as greedy; the refinement found this answer.";

  const seconds = Object.values(answer.seconds).reduce((sum, one) => sum + one, 0);
  const facts = document.createElement("p");
  facts.className = "hint";
  const drawn = state.numSteps ? `, ${counted(answer.objectives.length, "sample")}` : "";
  facts.textContent = `found by ${answer.found_by}${drawn}, ${seconds.toFixed(1)} s`;

  const actions = document.createElement("p");
  actions.className = "actions";
  const { states, chosen, ...record } = answer;
  actions.append(
    button("Download JSON", () => save(new Blob([JSON.stringify(record, null, 1)], { type: "application/json" }), "json")),
    button("Picture", async () => save(await view.png(), "png")),
    button("Copy nodes", async (event) => {
      await navigator.clipboard.writeText(answer.solution.join("\n"));
      event.target.textContent = "Copied";
    }),
  );
  $("answer").replaceChildren(value, verdict, proof, comparison, alone, bars, facts, actions);
  showProof();
  document.documentElement.dataset.answer = answer.objective; // tests wait for this
}

function showProof() {
  const { optimal, bound, gap } = state.proof ?? state.answer;
  $("proof").className = optimal ? "verdict good" : "hint";
  if (optimal) $("proof").textContent = "proven optimal";
  else if (bound !== null) $("proof").textContent = `nothing is better than ${plain(bound)}${gap === null ? "" : `, at most ${plain(100 * gap)} % better`}`;
}

/** Whether every sample of the last step, before it is refined, has more energy than the greedy solution. */
function areSamplesPoor() {
  const sign = state.about.senses[state.problem] === "max" ? -1 : 1;
  return Math.min(...state.frames.at(-1).energies) > sign * state.answer.greedy.objective;
}

function save(blob, suffix) {
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: `${state.graph.name}-${state.problem}.${suffix}` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function button(text, onClick) {
  const made = Object.assign(document.createElement("button"), { type: "button", textContent: text });
  made.addEventListener("click", onClick);
  return made;
}

// --- small things ----------------------------------------------------------------------------------------------------

const number = (id) => Number($(id).value);
const plain = (value) => value.toLocaleString("en", { maximumFractionDigits: 2 }).replace("-", "−");
const counted = (value, noun) => `${value.toLocaleString("en")} ${plural(value, noun)}`;
const plural = (value, noun) => (value === 1 ? noun : `${noun}s`);
const bold = (text) => Object.assign(document.createElement("b"), { textContent: text });

function say(message, place = "message", kind = "problem") {
  $(place).textContent = message.message ?? message;
  $(place).className = `message ${kind}`;
}

function busy(text = "") {
  clearTimeout(busy.timer);
  $("busy-text").textContent = text;
  if (!text) $("busy").hidden = true;
  else busy.timer = setTimeout(() => ($("busy").hidden = false), 250); // quick work needs no sign
}

function showLegend() {
  const { on, off, good, wrong, dominates } = PROBLEMS[state.problem];
  const marks = [[dominates ? "ring" : "line wrong", wrong], ["line good", good]];
  const nodes = [["node on", on], ["node other", off]];
  const entries = isCoarse() ? nodes.map(([kind, text]) => [kind, text && `more nodes: ${text}`]) : [...nodes, ...marks];
  $("legend").replaceChildren(...entries.filter(([, text]) => text).map(([kind, text]) => {
    const entry = document.createElement("li");
    entry.append(Object.assign(document.createElement("i"), { className: kind }), text);
    return entry;
  }));
}

function showTip(node, x, y) {
  const tip = $("tip");
  tip.hidden = node < 0;
  if (node < 0) return;
  const { edges, labels } = state.graph;
  tip.style.left = `${x}px`;
  tip.style.top = `${y}px`;
  if (state.picture.groups) {
    tip.textContent = counted(state.picture.sizes[node], "node");
    return;
  }
  let degree = 0;
  for (const end of edges) degree += end === node;
  tip.textContent = `${labels ? labels[node] : node}: ${counted(degree, "neighbour")}`;
}

function listen() {
  $("solve").addEventListener("click", solve);
  $("draw").addEventListener("click", drawGraph);
  $("use-pasted").addEventListener("click", readPasted);
  $("by-hand").addEventListener("click", startDrawing);
  for (const how of ["undo", "remove", "clear"]) $(how).addEventListener("click", () => changeDrawing(how));
  $("samples").addEventListener("input", () => (state.areSamplesChosen = true));
  $("method").addEventListener("change", forgetSolve);
  $("generator").addEventListener("change", () => {
    state.isGeneratorChosen = true;
    chooseGenerator();
    drawGraph();
  });
  for (const id of ["first", "second", "graph-seed"]) $(id).addEventListener("change", drawGraph);
  $("model").addEventListener("change", () => {
    describeModel();
    forgetSolve();
  });
  $("format").addEventListener("change", () => loadGraph({ ...state.file, format: $("format").value || null }));
  $("file").addEventListener("change", () => { if ($("file").files[0]) readFile($("file").files[0]); $("file").value = ""; });
  $("play").addEventListener("click", togglePlay);
  $("back").addEventListener("click", () => { play(false); showFrame(state.frame - 1); });
  $("forward").addEventListener("click", () => { play(false); showFrame(state.frame + 1); });
  $("scrub").addEventListener("input", () => { play(false); showFrame(Number($("scrub").value)); });
  document.querySelectorAll("[data-zoom]").forEach((one) => one.addEventListener("click", () => zoom(one.dataset.zoom)));
  $("theme").addEventListener("click", () => {
    const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    localStorage.setItem("theme", theme);
    view.readColours();
    drawThumbs();
  });
  addEventListener("keydown", onKey);
  new ResizeObserver(drawEnergies).observe($("chart"));
  for (const kind of ["dragenter", "dragover"]) addEventListener(kind, (event) => {
    event.preventDefault();
    document.body.classList.add("dropping");
  });
  addEventListener("dragleave", (event) => { if (!event.relatedTarget) document.body.classList.remove("dropping"); });
  addEventListener("drop", (event) => {
    event.preventDefault();
    document.body.classList.remove("dropping");
    if (event.dataTransfer.files[0]) readFile(event.dataTransfer.files[0]);
  });
}

function zoom(kind) {
  view.zoom({ in: 1.4, out: 1 / 1.4, fit: "fit" }[kind]);
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const isThumb = event.target.classList?.contains("thumb");
  if (event.target.matches("input, select, textarea")) return;
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (event.key === " " && !event.target.matches("button, a")) togglePlay();
  else if (step && isThumb) {
    const count = $("thumbs").children.length;
    choose((state.selected + step + count) % count);
    $("thumbs").children[state.selected].focus();
  } else if (step && state.frames.length) { play(false); showFrame(state.frame + step); }
  else if (/^[1-9]$/.test(event.key)) choose(Number(event.key) - 1);
  else if (event.key === "+" || event.key === "=") zoom("in");
  else if (event.key === "-") zoom("out");
  else if (event.key === "0") zoom("fit");
  else if (["Delete", "Backspace"].includes(event.key) && view.picked >= 0) changeDrawing("remove");
  else return;
  event.preventDefault();
}
