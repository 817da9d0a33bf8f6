// The graph on a canvas: edges on a layer of their own, nodes that fade between states, zoom and pan.

const LEVELS = 8; // shades between off and on
const EDGES_WHILE_MOVING = 12000;
const LABELLED_NODES = 40; // most nodes of a graph whose names fit beside them
const LABEL_LENGTH = 16;
const CLICK_REACH = 6; // pixels that a click may move
const NO_MARKS = { good: [], wrong: [], lonely: [] };

export class GraphView {
  /** `onHover(node, x, y)` for any graph; for one that is drawn by hand, `onClick(node, place)` and `onJoin(from, to)`. */
  constructor(canvas, { onHover, onClick, onJoin }) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.edgeLayer = document.createElement("canvas");
    Object.assign(this, { onHover, onClick, onJoin });
    this.graph = null;
    this.positions = null;
    this.user = { scale: 1, x: 0, y: 0 };
    this.marks = NO_MARKS;
    this.isMoving = false;
    this.isDrawn = false; // by hand
    this.picked = -1; // a node with a ring around it
    this.press = null; // where a pointer went down on a drawing
    this.needsEdges = true;
    new ResizeObserver(() => this.resize()).observe(canvas);
    this.listen();
    this.readColours();
  }

  readColours() {
    const style = getComputedStyle(document.documentElement);
    const read = (name) => style.getPropertyValue(`--${name}`).trim();
    this.colours = Object.fromEntries(["on", "off", "other", "wrong", "edge", "ink", "card"].map((name) => [name, read(name)]));
    this.redraw(true);
  }

  show(graph, isDrawn = false) {
    if (!isDrawn || !this.isDrawn) this.user = { scale: 1, x: 0, y: 0 };
    Object.assign(this, { isDrawn, picked: -1, press: null });
    this.graph = graph;
    this.positions = null;
    this.shade = new Float32Array(graph.numNodes);
    this.target = new Float32Array(graph.numNodes);
    this.isCut = false;
    this.marks = NO_MARKS;
    this.redraw(true);
  }

  clear() {
    Object.assign(this, { graph: null, positions: null, screen: null, isDrawn: false, picked: -1 });
    this.redraw(true);
  }

  move(positions, isFinal) {
    this.positions = positions;
    this.isMoving = !isFinal;
    this.place(); // a click may come before the next frame
    this.redraw(true);
  }

  pick(node) {
    this.picked = node;
    this.redraw();
  }

  /** Fade to these shades (from 0 to 1 per node) and marks; null for a graph without any. */
  setStates(problem, shades, marks = NO_MARKS) {
    this.isCut = problem === "max-cut" && shades !== null;
    this.target = shades ?? new Float32Array(this.graph.numNodes);
    this.marks = marks;
    this.redraw();
  }

  zoom(factor, x = this.width / 2, y = this.height / 2) {
    if (factor === "fit") {
      this.user = { scale: 1, x: 0, y: 0 };
    } else {
      const scale = Math.min(30, Math.max(0.5, this.user.scale * factor));
      const change = scale / this.user.scale;
      const [cx, cy] = [this.width / 2, this.height / 2];
      this.user.x = (this.user.x + cx - x) * change - cx + x;
      this.user.y = (this.user.y + cy - y) * change - cy + y;
      this.user.scale = scale;
    }
    this.redraw(true);
  }

  resize() {
    const ratio = Math.min(devicePixelRatio || 1, 2);
    this.width = this.canvas.clientWidth;
    this.height = this.canvas.clientHeight;
    for (const canvas of [this.canvas, this.edgeLayer]) {
      canvas.width = Math.round(this.width * ratio);
      canvas.height = Math.round(this.height * ratio);
      canvas.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
    }
    this.ratio = ratio;
    this.redraw(true);
  }

  redraw(withEdges = false) {
    this.needsEdges ||= withEdges;
    if (this.pending) return;
    this.pending = requestAnimationFrame((now) => {
      this.pending = null;
      this.draw(now);
    });
  }

  draw(now) {
    const { context } = this;
    context.clearRect(0, 0, this.width, this.height);
    if (!this.graph || !this.positions || !this.width) return;
    this.place();
    if (this.needsEdges) this.drawEdges();
    this.needsEdges = false;
    context.drawImage(this.edgeLayer, 0, 0, this.width, this.height);
    this.drawMarks();
    const settled = this.fade(now);
    this.drawNodes();
    if (this.isDrawn) this.drawHand();
    if (!settled) this.redraw();
  }

  /** Positions on the canvas, fitted with room for the texts that lie over it. A drawing stays where it was drawn. */
  place() {
    const { positions, graph } = this;
    let [scale, x, y] = [this.user.scale, 0, 0];
    if (!this.isDrawn) {
      let [left, right, top, bottom] = [Infinity, -Infinity, Infinity, -Infinity];
      for (let i = 0; i < positions.length; i += 2) {
        left = Math.min(left, positions[i]); right = Math.max(right, positions[i]);
        top = Math.min(top, positions[i + 1]); bottom = Math.max(bottom, positions[i + 1]);
      }
      const [padX, padY] = [Math.min(40, this.width * 0.06), this.width < 600 ? 46 : 44];
      const span = [Math.max(right - left, 1), Math.max(bottom - top, 1)];
      scale *= Math.min((this.width - 2 * padX) / span[0], (this.height - 2 * padY) / span[1], 6);
      [x, y] = [(left + right) / 2, (top + bottom) / 2];
    }
    const shiftX = this.width / 2 + this.user.x - scale * x;
    const shiftY = this.height / 2 + this.user.y - scale * y;
    this.screen = new Float32Array(positions.length);
    for (let i = 0; i < positions.length; i += 2) {
      this.screen[i] = positions[i] * scale + shiftX;
      this.screen[i + 1] = positions[i + 1] * scale + shiftY;
    }
    const room = Math.sqrt((this.width * this.height) / Math.max(graph.numNodes, 1));
    this.radius = Math.min(9, Math.max(1.7, room * 0.15)) * Math.sqrt(Math.min(this.user.scale, 6));
  }

  drawEdges() {
    const layer = this.edgeLayer.getContext("2d");
    layer.clearRect(0, 0, this.width, this.height);
    const { edges } = this.graph;
    const count = edges.length / 2;
    const stride = 2 * Math.max(1, this.isMoving ? Math.ceil(count / EDGES_WHILE_MOVING) : 1);
    layer.strokeStyle = this.colours.edge;
    layer.lineWidth = 1;
    layer.globalAlpha = Math.min(0.5, Math.max(0.04, 9 / Math.sqrt(count + 1)));
    for (let start = 0; start < edges.length; start += 4000 * stride) {
      layer.beginPath();
      for (let e = start; e < Math.min(edges.length, start + 4000 * stride); e += stride) this.line(layer, e);
      layer.stroke();
    }
    layer.globalAlpha = 1;
  }

  line(context, e) {
    const { edges } = this.graph;
    context.moveTo(this.screen[2 * edges[e]], this.screen[2 * edges[e] + 1]);
    context.lineTo(this.screen[2 * edges[e + 1]], this.screen[2 * edges[e + 1] + 1]);
  }

  drawMarks() {
    const { context } = this;
    for (const kind of ["good", "wrong"]) {
      const marked = this.marks[kind];
      if (!marked.length) continue;
      context.strokeStyle = kind === "good" ? this.colours.on : this.colours.wrong;
      context.globalAlpha = Math.min(kind === "good" ? 0.5 : 0.75, Math.max(0.12, 14 / Math.sqrt(marked.length)));
      context.lineWidth = marked.length > 3000 ? 0.8 : 1.4;
      context.beginPath();
      for (const e of marked) this.line(context, e);
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  fade(now) {
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const part = still ? 1 : 1 - Math.exp(-(Math.min(now - (this.lastFade ?? now), 60) + 1) / 55);
    this.lastFade = now;
    let settled = true;
    for (let i = 0; i < this.shade.length; i++) {
      const gap = this.target[i] - this.shade[i];
      if (gap === 0) continue;
      this.shade[i] = Math.abs(gap) < 0.03 ? this.target[i] : this.shade[i] + gap * part;
      settled &&= this.shade[i] === this.target[i];
    }
    return settled;
  }

  drawNodes() {
    const { context, screen, radius } = this;
    const outline = radius > 3.2;
    context.strokeStyle = this.colours.card;
    context.lineWidth = Math.min(1.5, radius / 4);
    for (const { nodes, share, colour } of layersOf(this.shade, this.colours, this.isCut)) {
      context.fillStyle = colour;
      context.beginPath();
      for (const i of nodes) {
        const size = radius * (1 + 0.3 * share);
        context.moveTo(screen[2 * i] + size, screen[2 * i + 1]);
        context.arc(screen[2 * i], screen[2 * i + 1], size, 0, 2 * Math.PI);
      }
      context.fill();
      if (outline) context.stroke();
    }
    context.strokeStyle = this.colours.wrong;
    context.lineWidth = Math.max(1.2, radius / 3);
    context.beginPath();
    for (const i of this.marks.lonely) {
      context.moveTo(screen[2 * i] + radius * 1.5, screen[2 * i + 1]);
      context.arc(screen[2 * i], screen[2 * i + 1], radius * 1.5, 0, 2 * Math.PI);
    }
    context.stroke();
    if (this.graph.numNodes <= LABELLED_NODES) this.drawLabels();
  }

  /** The names of the nodes, above them. */
  drawLabels() {
    const { context, screen, radius, graph } = this;
    context.fillStyle = this.colours.ink;
    context.font = "12px ui-sans-serif, system-ui, sans-serif";
    context.textAlign = "center";
    for (let i = 0; i < graph.numNodes; i++) {
      const label = String(graph.labels ? graph.labels[i] : i);
      const text = label.length > LABEL_LENGTH ? `${label.slice(0, LABEL_LENGTH - 1)}…` : label;
      context.fillText(text, screen[2 * i], screen[2 * i + 1] - radius * 1.3 - 4);
    }
  }

  /** What is being drawn: the ring of the node that is picked, the line that is dragged. */
  drawHand() {
    const { context, screen, press } = this;
    context.strokeStyle = this.colours.other;
    context.lineWidth = 2;
    context.beginPath();
    if (this.picked >= 0) {
      const [x, y] = screen.subarray(2 * this.picked);
      context.moveTo(x + this.radius + 4, y);
      context.arc(x, y, this.radius + 4, 0, 2 * Math.PI);
    }
    if (press?.isDragged && press.node >= 0) {
      context.moveTo(...screen.subarray(2 * press.node, 2 * press.node + 2));
      context.lineTo(press.toX, press.toY);
    }
    context.stroke();
  }

  /** The picture with its background, as a PNG. */
  png() {
    const copy = document.createElement("canvas");
    copy.width = this.canvas.width;
    copy.height = this.canvas.height;
    const context = copy.getContext("2d");
    context.fillStyle = this.colours.card;
    context.fillRect(0, 0, copy.width, copy.height);
    context.drawImage(this.canvas, 0, 0);
    return new Promise((resolve) => copy.toBlob(resolve, "image/png"));
  }

  nodeAt(x, y) {
    if (!this.screen) return -1;
    let [best, nearest] = [-1, (this.radius + 5) ** 2];
    for (let i = 0; i < this.screen.length / 2; i++) {
      const distance = (this.screen[2 * i] - x) ** 2 + (this.screen[2 * i + 1] - y) ** 2;
      if (distance < nearest) [best, nearest] = [i, distance];
    }
    return best;
  }

  listen() {
    const { canvas } = this;
    const fingers = new Map();
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey && document.activeElement !== canvas) return; // the page scrolls
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY / 400), event.offsetX, event.offsetY);
    }, { passive: false });
    canvas.addEventListener("pointerdown", ({ pointerId, offsetX: x, offsetY: y }) => {
      canvas.setPointerCapture(pointerId);
      fingers.set(pointerId, [x, y]);
      this.press = this.isDrawn && fingers.size === 1 ? { node: this.nodeAt(x, y), x, y, isDragged: false } : null;
    });
    canvas.addEventListener("pointermove", (event) => {
      const before = fingers.get(event.pointerId);
      if (!before) {
        this.onHover(this.nodeAt(event.offsetX, event.offsetY), event.offsetX, event.offsetY);
        return;
      }
      const after = [event.offsetX, event.offsetY];
      if (this.press && !this.drag(...after)) return;
      if (fingers.size === 2) {
        const [[, other]] = [...fingers].filter(([id]) => id !== event.pointerId);
        const spread = (point) => Math.hypot(point[0] - other[0], point[1] - other[1]);
        this.zoom(spread(after) / Math.max(spread(before), 1), other[0], other[1]);
      } else {
        this.user.x += after[0] - before[0];
        this.user.y += after[1] - before[1];
        this.redraw(true);
      }
      fingers.set(event.pointerId, after);
    });
    for (const kind of ["pointerup", "pointercancel", "pointerleave"]) {
      canvas.addEventListener(kind, (event) => {
        fingers.delete(event.pointerId);
        if (kind === "pointerleave") this.onHover(-1);
        const { press } = this;
        this.press = null;
        if (press && kind === "pointerup") this.release(press, event.offsetX, event.offsetY);
        else if (press) this.redraw();
      });
    }
    canvas.addEventListener("dblclick", () => { if (!this.isDrawn) this.zoom("fit"); });
  }

  /** Follow a pointer that went down on a drawing; whether the whole drawing moves with it. */
  drag(x, y) {
    const { press } = this;
    press.isDragged ||= Math.hypot(x - press.x, y - press.y) > CLICK_REACH;
    Object.assign(press, { toX: x, toY: y });
    this.redraw();
    return press.isDragged && press.node < 0;
  }

  /** A press on a drawing ends: a click on a node or a place, a line between two nodes, or a move of the drawing. */
  release(press, x, y) {
    this.redraw();
    if (!press.isDragged) {
      const { user } = this;
      this.onClick(press.node, [(x - this.width / 2 - user.x) / user.scale, (y - this.height / 2 - user.y) / user.scale]);
      return;
    }
    const to = this.nodeAt(x, y);
    if (press.node >= 0 && to >= 0 && to !== press.node) this.onJoin(press.node, to);
  }
}

/** Nodes of about the same shade, from off to on, with the colour of each such layer. */
function layersOf(shades, colours, isCut) {
  const layers = Array.from({ length: LEVELS + 1 }, (_, level) => {
    const share = level / LEVELS;
    const colour = `color-mix(in oklab, ${colours.on} ${Math.round(100 * share)}%, ${isCut ? colours.other : colours.off})`;
    return { nodes: [], share, colour };
  });
  shades.forEach((value, i) => layers[Math.round(value * LEVELS)].nodes.push(i));
  return layers;
}

/** A small picture of one sample: dots only. */
export function drawThumb(canvas, positions, shades, colours, isCut) {
  const ratio = 2; // thumbnails lie between pixels and would blur at a ratio of 1
  const size = canvas.clientWidth;
  if (!size || !positions?.length) return;
  if (canvas.width !== Math.round(size * ratio)) canvas.width = canvas.height = Math.round(size * ratio);
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, size, size);
  let reach = 1;
  for (const value of positions) reach = Math.max(reach, Math.abs(value));
  const scale = (size / 2 - 4) / reach;
  const dot = Math.min(5, Math.max(1.1, size / Math.sqrt(positions.length / 2) / 3.2));
  for (const { nodes, share, colour } of layersOf(shades, colours, isCut)) {
    context.fillStyle = colour;
    const side = dot * (1 + 0.35 * share);
    for (const i of nodes) {
      context.fillRect(size / 2 + positions[2 * i] * scale - side / 2, size / 2 + positions[2 * i + 1] * scale - side / 2, side, side);
    }
  }
}
