// The page: its head, the two graphs with what links them, a card below each, and the sections.
const DATA = JSON.parse(document.getElementById("data").textContent);
const REPORT = DATA.report, DIFF = DATA.kind === "diff", TITLES = DIFF ? ["First", "Second"] : ["Before", "After"];
const WORDS = DIFF
  ? { kept: "same", changed: "equal", new: "second only", removed: "first only" }
  : { kept: "kept", changed: "changed", new: "new", removed: "removed" };
const MEANING = DIFF
  ? { kept: "in both programs", changed: "in both, computed otherwise there", new: "only in the second", removed: "only in the first" }
  : WORDS;

function header() {
  const figure = (name, value, note, kind) => el("div", { class: "figure" }, el("dt", {}, name), el("dd", { class: kind }, value, note ? el("small", {}, note) : null));
  const figures = [], { nodes, cost, check, egraph } = REPORT;
  if (nodes) figures.push(figure("nodes", `${count(nodes.before)} → ${count(nodes.after)}`, change(nodes.before, nodes.after)));
  if (cost) figures.push(figure("predicted", `${seconds(cost.input)} → ${seconds(cost.output)}`, change(cost.input, cost.output)));
  if (egraph) figures.push(figure("searched", `${count(egraph.enodes)}`, "e-nodes"));
  if (check) figures.push(figure("outputs", check.ok ? "equal" : "different", check.ok ? `on ${plural((check.inputs || []).length, "input")}` : "", check.ok ? "good" : "bad"));
  if (REPORT.seconds && REPORT.seconds.total !== undefined) figures.push(figure("made in", seconds(REPORT.seconds.total)));
  const facts = DIFF ? ["two programs, side by side"] : [REPORT.target && `for ${REPORT.target}`, REPORT.numerics && `numerics ${REPORT.numerics}`, REPORT.output && `written to ${REPORT.output}`];
  return [el("div", { class: "head-title" }, el("h1", {}, DATA.title), el("div", { class: "subtitle" }, facts.filter(Boolean).join(" · "))), el("dl", { class: "figures" }, figures)];
}

class Pair {
  constructor(data) {
    this.graphs = [new Graph(data.before), new Graph(data.after)];
    this.follow = true;
    this.state = null;
    this.query = "";
    this.found = [];
    this.step = -1;
    this.box = el("div", { class: "pair" });
    this.sides = this.graphs.map((graph, side) => this.side(graph, side, data));
    this.views = this.sides.map(({ canvas }, side) => new View(canvas, this.graphs[side], {
      select: (node) => this.select(side, node), hover: (node) => this.hover(side, node), move: () => this.moved(side), drawn: () => this.ready(),
    }));
    this.cards();
  }

  side(graph, side, data) {
    const nodes = plural(graph.size, "node"), hover = el("span", { class: "hover" }), card = el("div", { class: "card" });
    const label = `${TITLES[side]}: ${nodes}. Arrow keys pan, plus and minus zoom, 0 shows all.`;
    const canvas = el("canvas", { tabindex: 0, role: "img", "aria-label": label, id: `graph-${side ? "after" : "before"}` });
    const views = data[side ? "after" : "before"].folded;
    this.box.append(el("div", { class: "side" },
      el("div", { class: "side-head" }, el("b", {}, TITLES[side]), el("span", { class: "muted", title: views ? `${plural(views, "broadcast")} and all weights are folded into their users` : "" }, nodes), hover),
      el("div", { class: "canvas-box" }, canvas), card));
    return { canvas, hover, card };
  }

  mates(side, node) { return node < 0 ? [] : this.graphs[1 - side].byClass.get(this.graphs[side].class[node]) || []; }

  hover(side, node) {
    const graph = this.graphs[side], words = node < 0 ? "" : [graph.titleOf(node), graph.name[node], graph.typeOf(node), graph.seconds[node] ? seconds(graph.seconds[node]) : ""].filter(Boolean).join("  ·  ");
    this.sides[side].hover.textContent = words;
    this.sides[side].hover.title = words;
    this.views[1 - side].mates = new Set([...this.mates(side, node), ...this.mates(side, this.views[side].selected)]);
    for (const view of this.views) view.redraw();
  }

  select(side, node) {
    const mates = this.mates(side, node), [own, other] = [this.views[side], this.views[1 - side]];
    own.selected = node;
    own.mates = new Set();
    other.selected = mates.length ? mates[0] : -1;
    other.mates = new Set(mates);
    if (this.follow && mates.length) other.place(mates[0], ...own.where(node), own.scale);
    for (const view of this.views) view.redraw();
    this.cards(side, node >= 0 && !mates.length);
  }

  moved(side) { // the other graph shows what equals the middle of this one
    if (!this.follow) return;
    const [own, other] = [this.views[side], this.views[1 - side]];
    const node = own.graph.nearest(...own.center(), (each) => this.mates(side, each).length > 0);
    if (node >= 0) other.place(this.mates(side, node)[0], ...own.where(node), own.scale);
  }

  cards(from, alone) {
    this.sides.forEach(({ card }, side) => {
      const node = this.views[side].selected;
      if (node >= 0) return card.replaceChildren(...this.details(side, node));
      if (alone && side !== from) return card.replaceChildren(el("p", { class: "empty" }, "Nothing here is equal to it."));
      return card.replaceChildren(...this.dearest(side));
    });
  }

  dearest(side) { // what to look at first
    const graph = this.graphs[side], words = DIFF ? "Click a node for its details, and for its equal in the other program." : "Click a node for its details, and for its equal on the other side.";
    const every = Array.from({ length: graph.size }, (_, node) => node);
    const nodes = (DIFF ? every.filter((node) => ["new", "removed"].includes(graph.state[node])) : every.filter((node) => graph.seconds[node] > 0).sort((a, b) => graph.seconds[b] - graph.seconds[a])).slice(0, 5);
    const rows = nodes.flatMap((node) => [el("dt", {}, DIFF ? WORDS[graph.state[node]] : seconds(graph.seconds[node])), el("dd", {}, el("button", { class: "link", onclick: () => this.goTo(side, node) }, graph.name[node] || graph.titleOf(node)), el("span", { class: "muted" }, graph.titleOf(node)))]);
    return [el("p", { class: "empty" }, words, nodes.length ? (DIFF ? " The first that only this one has:" : " The dearest:") : ""), el("dl", { class: "facts" }, rows)];
  }

  details(side, node) {
    const graph = this.graphs[side], state = graph.state[node], rules = graph.rulesOf(node);
    const links = (nodes) => nodes.map((other) => el("button", { class: "link", onclick: () => this.goTo(side, other) }, graph.name[other] || graph.titleOf(other)));
    const fact = (name, ...value) => (value.flat().length && value.flat().some((each) => each !== "") ? [el("dt", {}, name), el("dd", {}, ...value)] : []);
    const price = graph.seconds[node] ? `${seconds(graph.seconds[node])} (${((100 * graph.seconds[node]) / Math.max(1e-30, sum(graph.seconds))).toFixed(1)} %)` : "";
    return [
      el("div", { class: "card-head" }, el("span", { class: "op" }, graph.kindOf(node) || graph.opOf(node)), el("span", { class: "mono muted" }, graph.kindOf(node) ? graph.opOf(node) : ""), el("span", { class: `state ${state}` }, MEANING[state] || ""), el("span", { class: "mono muted" }, graph.typeOf(node))),
      el("dl", { class: "facts" },
        fact("name", el("span", { class: "mono" }, graph.name[node])),
        fact("output", graph.outputs[node].join(", ")),
        fact("predicted", price + (graph.host[node] ? ", on the host" : "")),
        fact("made by", rules.map((rule) => el("button", { class: "link", onclick: () => this.search(rule) }, rule))),
        fact("reads", links(graph.operands[node])),
        fact("weights", graph.constants[node].join("; ")),
        graph.data.attributes[graph.attributes[node]].flatMap(([name, value]) => fact(name, el("span", { class: "mono" }, value))),
        fact("read by", links(graph.users[node].slice(0, 40))))];
  }

  goTo(side, node) { this.select(side, node); this.views[side].reveal(node); }

  light() { // what is looked for stands out: a text, a state, or both
    const counts = [0, 0];
    this.found = [];
    this.views.forEach((view, side) => {
      const graph = this.graphs[side], wanted = (node) => (!this.query || graph.texts[node].includes(this.query)) && (!this.state || graph.state[node] === this.state);
      view.lit = null;
      if (this.query || this.state) {
        view.lit = new Set();
        for (let node = 0; node < graph.size; node++) if (wanted(node)) { view.lit.add(node); this.found.push([side, node]); }
        counts[side] = view.lit.size;
      }
      view.canvas.dataset.lit = view.lit ? view.lit.size : "";
      view.redraw();
    });
    this.step = -1;
    this.foundText.textContent = this.query || this.state ? `${count(counts[0])} and ${count(counts[1])} found` : "";
  }

  next(by) {
    if (!this.found.length) return;
    this.step = (this.step + by + this.found.length) % this.found.length;
    this.goTo(...this.found[this.step]);
    this.foundText.textContent = `${count(this.step + 1)} of ${count(this.found.length)}`;
  }

  search(text) {
    this.input.value = text;
    this.query = text.toLowerCase();
    this.light();
    document.getElementById("graphs").scrollIntoView({ block: "nearest" });
  }

  toolbar() {
    const counts = this.graphs.map((graph) => graph.counts()), chips = [];
    for (const state of STATES) {
      const [before, after] = counts.map((each) => each[state] || 0);
      if (!before && !after) continue;
      const many = before && after ? (before === after ? count(before) : `${count(before)} → ${count(after)}`) : count(before || after);
      const chip = el("button", { "aria-pressed": "false", title: `${MEANING[state]}: show only these; Enter in the search goes from one to the next`, onclick: () => {
        this.state = this.state === state ? null : state;
        for (const other of chips) other.setAttribute("aria-pressed", String(other === chip && this.state === state));
        this.light();
      } }, swatch(state), WORDS[state], el("span", { class: "count" }, many));
      chip.dataset.state = state;
      chips.push(chip);
    }
    this.foundText = el("span", { class: "found", "aria-live": "polite" });
    this.input = el("input", { type: "search", id: "search", placeholder: DIFF ? "Find a name or an op" : "Find a name, an op or a rule", "aria-label": "Find", oninput: () => { this.query = this.input.value.trim().toLowerCase(); this.light(); },
      onkeydown: (event) => { if (event.key === "Enter") { event.preventDefault(); this.next(event.shiftKey ? -1 : 1); } } });
    const toggle = (text, on, title, change) => {
      const button = el("button", { "aria-pressed": String(on), title, onclick: () => { const now = button.getAttribute("aria-pressed") !== "true"; button.setAttribute("aria-pressed", String(now)); change(now); } }, text);
      return button;
    };
    const priced = this.graphs.some((graph) => sum(graph.seconds || []) > 0);
    return el("div", { class: "toolbar", role: "toolbar", "aria-label": "Graphs" }, this.input, this.foundText, el("span", { class: "group" }, chips), el("span", { class: "spring" }),
      priced ? toggle("Colour by cost", false, "The dearer an op, the stronger its colour", (now) => this.views.forEach((view) => { view.byCost = now; view.redraw(); })) : null,
      toggle("Move together", true, "The other graph shows what equals the middle of this one", (now) => { this.follow = now; }),
      el("button", { id: "fit", onclick: () => this.views.forEach((view) => view.fit()) }, "Show all"));
  }

  ready() {
    const { dataset } = document.documentElement;
    if (dataset.ready || !this.views || !this.views.every((view) => view.drawn)) return;
    dataset.ready = "true";
    dataset.milliseconds = performance.now().toFixed(0); // since the page was asked for
  }
}

function body() {
  const warned = warnings(REPORT), parts = [];
  if (warned.length) parts.push(el("div", { class: "warning", role: "note" }, warned.map((text) => el("p", {}, text))));
  let pair = null;
  if (DATA.graphs) {
    pair = new Pair(DATA.graphs);
    const bar = pair.toolbar();
    parts.push(el("div", { id: "graphs" }, bar, pair.box));
  }
  const search = (text) => pair && pair.search(text);
  const costs = DATA.graphs && DATA.graphs.costs;
  parts.push(el("div", { class: "sections" },
    DIFF ? diffSection(REPORT) : null, costSection(costs, TITLES), rulesSection(REPORT.rules, search), growthSection(REPORT.egraph), missesSection(REPORT.near_misses),
    placesSection(REPORT), checkSection(REPORT.check), certificateSection(REPORT.certificate), stagesSection(REPORT), measuredSection(REPORT.measured)));
  parts.push(el("footer", {}, DATA.graphs ? `Nodes are paired by ${DATA.graphs.by}. Weights are the small squares on a node; a dashed end is an edge that goes far, drawn in full when its node is pointed at${DIFF ? "" : "; the bar below a node is its share of the predicted time"}.` : ""));
  return parts;
}

function diffSection(report) {
  const nodes = report.matched_nodes;
  if (!nodes) return null;
  const rows = [["in both", `${count(nodes.both[0])} and ${count(nodes.both[1])} nodes`], ["only in the first", plural(nodes.first, "node")], ["only in the second", plural(nodes.second, "node")], ["first to differ", report.first_unmatched || ""], ["paired by", report.matched || ""]];
  return section("Nodes", "", pairs(rows));
}

readColors();
document.getElementById("head").append(...header());
document.getElementById("main").append(...body());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readColors(); window.dispatchEvent(new Event("recolor")); });
