// A canvas on which a graph is panned and zoomed. What is outside is not drawn; what would be too small to read is a block of colour.
const ZOOM = { least: 0.01, most: 3 }, LEGIBLE = 0.4, BLOCKS = 0.16, MARGIN = 16;

class View {
  constructor(canvas, graph, on) {
    Object.assign(this, { canvas, graph, on, scale: 1, left: 0, top: 0, hovered: -1, selected: -1, mates: new Set(), lit: null, byCost: false });
    this.context = canvas.getContext("2d");
    this.pointers = new Map();
    canvas.dataset.nodes = graph.size;
    this.listen();
  }

  listen() {
    const { canvas } = this;
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => this.release(event));
    canvas.addEventListener("pointerleave", () => this.hover(-1));
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      const [x, y] = this.offset(event);
      this.zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0016)), x, y);
    }, { passive: false });
    canvas.addEventListener("dblclick", (event) => this.zoom(2, ...this.offset(event)));
    canvas.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.resized()).observe(canvas);
    window.addEventListener("recolor", () => this.redraw());
  }

  offset(event) {
    const box = this.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }
  toGraph(x, y) { return [(x - this.left) / this.scale, (y - this.top) / this.scale]; }
  center() { return this.toGraph(this.width / 2, this.height / 2); }

  press(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, this.offset(event));
    this.dragged = 0;
  }

  move(event) {
    const here = this.offset(event), before = this.pointers.get(event.pointerId);
    if (!before) return this.hover(this.graph.at(...this.toGraph(...here)));
    const others = [...this.pointers].filter(([id]) => id !== event.pointerId).map(([, at]) => at);
    this.pointers.set(event.pointerId, here);
    this.dragged += Math.hypot(here[0] - before[0], here[1] - before[1]);
    if (others.length) { // two fingers
      const [other] = others, span = (at) => Math.max(1, Math.hypot(at[0] - other[0], at[1] - other[1]));
      return this.zoom(span(here) / span(before), (here[0] + other[0]) / 2, (here[1] + other[1]) / 2);
    }
    this.left += here[0] - before[0];
    this.top += here[1] - before[1];
    this.moved();
  }

  release(event) {
    if (!this.pointers.delete(event.pointerId) || event.type === "pointercancel") return;
    if (this.dragged < 4) this.on.select(this.graph.at(...this.toGraph(...this.offset(event))));
  }

  key(event) {
    const pan = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] }[event.key];
    if (pan) { this.left += pan[0]; this.top += pan[1]; this.moved(); }
    else if (event.key === "+" || event.key === "=") this.zoom(1.3, this.width / 2, this.height / 2);
    else if (event.key === "-") this.zoom(1 / 1.3, this.width / 2, this.height / 2);
    else if (event.key === "0") { this.fit(); this.on.move(); }
    else return;
    event.preventDefault();
  }

  hover(node) {
    if (node === this.hovered) return;
    this.hovered = node;
    this.canvas.style.cursor = node < 0 ? "grab" : "pointer";
    this.on.hover(node);
  }

  zoom(factor, x, y) {
    const scale = Math.min(ZOOM.most, Math.max(ZOOM.least, this.scale * factor)), ratio = scale / this.scale;
    this.left = x - (x - this.left) * ratio;
    this.top = y - (y - this.top) * ratio;
    this.scale = scale;
    this.moved();
  }

  moved() { this.redraw(); this.on.move(); }

  fit() {
    const { width, height } = this.graph.data;
    this.scale = Math.min(1, (this.width - 2 * MARGIN) / Math.max(1, width), (this.height - 2 * MARGIN) / Math.max(1, height));
    this.left = (this.width - width * this.scale) / 2;
    this.top = Math.max(MARGIN, (this.height - height * this.scale) / 2);
    this.fitted = true;
    this.redraw();
  }

  place(node, x, y, scale) { // put a node at a point of the canvas
    this.scale = scale;
    this.left = x - (this.graph.x[node] + NODE.width / 2) * scale;
    this.top = y - (this.graph.y[node] + NODE.height / 2) * scale;
    this.redraw();
  }

  where(node) {
    const { x, y } = this.graph;
    return [this.left + (x[node] + NODE.width / 2) * this.scale, this.top + (y[node] + NODE.height / 2) * this.scale];
  }

  reveal(node) { this.place(node, this.width / 2, this.height / 2, Math.max(this.scale, 0.85)); this.on.move(); }

  resized() {
    const box = this.canvas.getBoundingClientRect(), ratio = window.devicePixelRatio || 1, first = this.width === undefined;
    if (!box.width || !box.height) return;
    this.width = box.width;
    this.height = box.height;
    this.canvas.width = Math.round(box.width * ratio);
    this.canvas.height = Math.round(box.height * ratio);
    this.ratio = ratio;
    if (first) this.fit(); else this.redraw();
  }

  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; if (this.width) this.draw(); });
  }

  draw() {
    const { context, ratio, scale, left, top } = this;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    context.setTransform(ratio * scale, 0, 0, ratio * scale, ratio * left, ratio * top);
    const seen = [...this.toGraph(0, 0), ...this.toGraph(this.width, this.height)];
    const focus = new Set([this.hovered, this.selected].filter((node) => node >= 0));
    this.drawEdges(seen, focus);
    for (let node = 0; node < this.graph.size; node++) {
      const x = this.graph.x[node], y = this.graph.y[node];
      if (x <= seen[2] && x + NODE.width >= seen[0] && y <= seen[3] && y + NODE.height >= seen[1]) this.drawNode(node, x, y);
    }
    for (const node of this.mates) this.outline(node, 2.5);
    for (const node of focus) this.outline(node, 3);
    this.canvas.dataset.scale = scale.toFixed(4);
    this.canvas.dataset.selected = this.selected;
    this.drawn = true;
    this.on.drawn();
  }

  drawEdges(seen, focus) {
    const { context, scale } = this, plain = new Path2D(), ends = new Path2D(), bright = new Path2D();
    for (const edge of this.graph.edges) {
      const [x0, y0, x1, y1] = edge.box, lit = focus.has(edge.source) || focus.has(edge.target);
      if (!lit && (x0 > seen[2] || x1 < seen[0] || y0 > seen[3] || y1 < seen[1])) continue;
      if (lit) trace(bright, edge);
      else if (!edge.far) trace(plain, edge);
      else if (scale >= BLOCKS) stubs(ends, edge);
    }
    context.lineWidth = Math.max(1, 0.6 / scale);
    context.strokeStyle = COLORS.edge;
    context.globalAlpha = this.lit ? 0.35 : scale < BLOCKS ? 0.55 : 0.85;
    context.stroke(plain);
    context.setLineDash([3, 3]);
    context.stroke(ends);
    context.setLineDash([]);
    context.globalAlpha = 1;
    context.lineWidth = Math.max(1.6, 1.4 / scale);
    context.strokeStyle = COLORS.accent;
    context.stroke(bright);
  }

  drawNode(node, x, y) {
    const { context, scale, graph } = this, color = this.color(node), input = graph.opOf(node) === "builtin.input";
    context.globalAlpha = this.lit && !this.lit.has(node) ? 0.16 : 1;
    if (scale < BLOCKS) {
      context.fillStyle = color;
      if (graph.state[node] === "removed" && !this.byCost) context.globalAlpha *= 0.7; // most of a picture may be
      context.fillRect(x, y - 5, NODE.width, NODE.height + 10);
      context.globalAlpha = 1;
      return;
    }
    context.beginPath();
    context.roundRect(x, y, NODE.width, NODE.height, input ? 17 : 5);
    context.fillStyle = COLORS.node;
    context.fill();
    context.save();
    context.clip();
    context.fillStyle = color;
    const plain = graph.state[node] === "kept" && !this.byCost;
    context.globalAlpha *= scale < LEGIBLE ? (plain ? 0.6 : 0.8) : this.byCost ? 0.3 : plain ? 0.12 : 0.16;
    context.fillRect(x, y, NODE.width, NODE.height);
    context.globalAlpha = this.lit && !this.lit.has(node) ? 0.16 : 1;
    context.fillRect(x, y, 4, NODE.height);
    context.fillStyle = COLORS.cost;
    context.fillRect(x + 4, y + NODE.height - 2.5, (NODE.width - 4) * Math.sqrt(graph.seconds[node] / graph.dearest), 2.5);
    context.restore();
    context.lineWidth = 1;
    context.strokeStyle = color;
    context.stroke();
    if (scale >= LEGIBLE) this.write(node, x, y, input);
    context.globalAlpha = 1;
  }

  write(node, x, y, input) {
    const { context, graph } = this, marks = Math.min(4, graph.constants[node].length);
    const name = graph.name[node] || graph.outputs[node].join(", "), room = NODE.width - 18 - marks * 6;
    context.fillStyle = COLORS.ink;
    context.font = `600 11.5px ${COLORS.sans}`;
    const title = fitted(context, input ? "input" : graph.titleOf(node), room), left = Math.floor(room - context.measureText(title).width - 6);
    context.fillText(title, x + 10, y + (name ? 14 : 21));
    context.fillStyle = COLORS.muted;
    context.font = `10px ${COLORS.mono}`;
    if (graph.kindOf(node).toLowerCase() !== short(graph.opOf(node)) && graph.kindOf(node) && left > 24) context.fillText(fitted(context, short(graph.opOf(node)), left, true), x + 10 + room - left, y + (name ? 14 : 21));
    if (name) context.fillText(fitted(context, name, NODE.width - 18, true), x + 10, y + 27);
    for (let mark = 0; mark < marks; mark++) context.fillRect(x + NODE.width - 9 - mark * 6, y + 6, 4, 4);
    if (graph.host[node]) context.fillText("host", x + NODE.width - 30, y - 3);
    if (graph.outputs[node].length) {
      context.fillStyle = COLORS.ink;
      context.fillRect(x + NODE.width / 2 - 14, y + NODE.height + 2, 28, 3);
    }
  }

  color(node) {
    const { graph } = this;
    if (!this.byCost) return COLORS[graph.state[node]] || COLORS.kept;
    const share = Math.sqrt(graph.seconds[node] / graph.dearest);
    return `color-mix(in srgb, ${COLORS.cost} ${Math.round(share * 20) * 5}%, ${COLORS.kept})`;
  }

  outline(node, width) {
    const { context, graph } = this, wide = Math.max(width, width / this.scale), space = wide / 2;
    context.beginPath();
    context.roundRect(graph.x[node] - space, graph.y[node] - space, NODE.width + 2 * space, NODE.height + 2 * space, 5 + space);
    context.lineWidth = wide;
    context.strokeStyle = COLORS.accent;
    context.stroke();
  }
}

function trace(path, edge) {
  let [x, y] = edge.points[0];
  path.moveTo(x, y);
  for (const [toX, toY] of edge.points.slice(1)) {
    const middle = (y + toY) / 2;
    path.bezierCurveTo(x, middle, toX, middle, toX, toY);
    [x, y] = [toX, toY];
  }
}

function stubs(path, edge) { // the ends of an edge that goes far; it is drawn in full where one of its nodes is pointed at
  const [x0, y0] = edge.points[0], [x1, y1] = edge.points[edge.points.length - 1];
  path.moveTo(x0, y0);
  path.lineTo(x0, y0 + 16);
  path.moveTo(x1, y1);
  path.lineTo(x1, y1 - 16);
}

const widths = new Map();
function fitted(context, text, room, ending) { // as much of a text as there is room for; of a name the end says most
  const key = `${context.font} ${room} ${text}`;
  if (widths.has(key)) return widths.get(key);
  let shown = text.length > 200 ? (ending ? text.slice(-200) : text.slice(0, 200)) : text;
  const whole = shown.length === text.length;
  if (!whole || context.measureText(shown).width > room) {
    let low = 0, high = shown.length;
    while (low < high) {
      const many = Math.ceil((low + high) / 2), part = ending ? `…${shown.slice(-many)}` : `${shown.slice(0, many)}…`;
      if (context.measureText(part).width <= room) low = many; else high = many - 1;
    }
    shown = ending ? `…${low ? shown.slice(-low) : ""}` : `${shown.slice(0, low)}…`;
  }
  widths.set(key, shown);
  return shown;
}

const COLORS = {};
function readColors() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["ink", "muted", "edge", "node", "accent", "cost", "sans", "mono", ...STATES]) COLORS[name] = style.getPropertyValue(`--${name}`).trim();
}
