// The energies of all samples over the steps, as SVG.

const NAMESPACE = "http://www.w3.org/2000/svg";
const MARGIN = { left: 46, right: 14, top: 10, bottom: 24 };

/** Draw `frames` (each with `energies`), of which the last may be the decoded answer. */
export function drawChart(host, { frames, numSteps, decoded, frame, selected }) {
  const width = Math.max(host.clientWidth, 200), height = Math.max(host.clientHeight, 130);
  const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
  const values = [...frames, ...(decoded ? [decoded] : [])].flatMap(({ energies }) => energies);
  svg.setAttribute("aria-label", describe(frames, decoded, selected));
  host.replaceChildren(svg);
  if (!values.length) {
    const text = element("text", { x: width / 2, y: height / 2, "text-anchor": "middle", class: "tick" });
    text.textContent = "nothing solved yet";
    svg.append(text);
    return;
  }
  let [low, high] = values.reduce(([a, b], value) => [Math.min(a, value), Math.max(b, value)], [Infinity, -Infinity]);
  if (low === high) [low, high] = [low - 1, high + 1];
  const last = numSteps + 1;
  const x = (step) => MARGIN.left + ((width - MARGIN.left - MARGIN.right) * step) / last;
  // Noise has so much energy that a linear scale would show the interesting end as one flat line.
  const unit = (high - low) / 40;
  const lift = (value) => Math.log1p((value - low) / unit) / Math.log1p(40);
  const y = (value) => height - MARGIN.bottom - (height - MARGIN.top - MARGIN.bottom) * lift(value);

  for (const value of ticks(low, high, y)) {
    svg.append(element("line", { x1: MARGIN.left, x2: width - MARGIN.right, y1: y(value), y2: y(value), class: "grid" }));
    svg.append(label(MARGIN.left - 7, y(value) + 3.5, "end", compact(value)));
  }
  svg.append(label(x(0), height - 7, "start", "noise"));
  svg.append(label(x(numSteps / 2), height - 7, "middle", "reverse steps"));
  svg.append(label(x(last) + 6, height - 7, "end", "decoded"));
  svg.append(element("line", { x1: x(frame), x2: x(frame), y1: MARGIN.top, y2: height - MARGIN.bottom, class: "cursor" }));

  const order = frames[0].energies.map((_, sample) => sample).sort((a, b) => (a === selected) - (b === selected));
  for (const sample of order) {
    const kind = sample === selected ? "path selected" : "path";
    const points = frames.map(({ energies }, step) => `${x(step).toFixed(1)},${y(energies[sample]).toFixed(1)}`);
    svg.append(element("polyline", { points: points.join(" "), class: kind }));
    if (decoded) {
      const from = frames.length - 1;
      const ends = { x1: x(from), y1: y(frames[from].energies[sample]), x2: x(last), y2: y(decoded.energies[sample]) };
      svg.append(element("line", { ...ends, class: `${kind} dashed` }));
      svg.append(element("circle", { cx: x(last), cy: y(decoded.energies[sample]), r: sample === selected ? 4.5 : 2.5, class: kind }));
    }
  }
  const shown = frame > numSteps ? decoded : frames[frame];
  if (shown) svg.append(element("circle", { cx: x(frame), cy: y(shown.energies[selected]), r: 5, class: "now" }));
}

function describe(frames, decoded, selected) {
  if (!frames.length) return "No energies yet";
  const start = frames[0].energies[selected], end = (decoded ?? frames.at(-1)).energies[selected];
  return `Energy of sample ${selected + 1}: from ${compact(start)} at the start to ${compact(end)}`;
}

/** Round numbers between the two that lie apart on the scale. */
function ticks(low, high, y) {
  const found = [];
  for (let power = 10 ** Math.floor(Math.log10(high - low)); found.length < 4 && power > (high - low) / 200; power /= 10) {
    for (const step of [5 * power, 2 * power, power]) {
      for (let value = Math.ceil(low / step) * step; value <= high; value += step) {
        if (found.every((other) => Math.abs(y(other) - y(value)) > 24)) found.push(value);
      }
    }
  }
  return found;
}

export function compact(value) {
  const size = Math.abs(value);
  if (size >= 10000) return `${(value / 1000).toFixed(size >= 100000 ? 0 : 1)}k`.replace("-", "−");
  return String(Number(value.toFixed(size >= 100 ? 0 : 1))).replace("-", "−");
}

function label(x, y, anchor, text) {
  const node = element("text", { x, y, "text-anchor": anchor, class: "tick" });
  node.textContent = text;
  return node;
}

function element(name, attributes) {
  const node = document.createElementNS(NAMESPACE, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
}
