// A thin shell: forms are made of tabs.json, answers come from Python (worker.js), the state is in the address.
const element = (id) => document.getElementById(id);
const make = (tag, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
};

const tabs = await (await fetch("tabs.json")).json();
const worker = new Worker("worker.js", { type: "module" });
const form = document.querySelector("form");
const kept = {}; // what the fields of each tab hold
let tab, python = "", loaded = false;
let shown = ""; // the address whose answer is seen

// -- Python ----------------------------------------------------------------------------------------------------------

let busy = false, wanted = null, number = 0;
const waiting = new Map();

function ask(request) {
  number += 1;
  worker.postMessage({ id: number, request });
  return new Promise((done) => waiting.set(number, done));
}

worker.onmessage = ({ data }) => {
  if (data.ready) {
    loaded = true;
    if (shown !== address()) update();
    else element("status").textContent = `Python is ready${data.kept ? ", kept from the last visit" : ""}.`;
  } else if (data.failed) {
    broken(data.failed);
  } else {
    waiting.get(data.id)(data.answer);
    waiting.delete(data.id);
  }
};
worker.onerror = (event) => broken(event.message || "pyodide/pyodide.mjs cannot be loaded");

function broken(reason) {
  element("status").textContent =
    `Python did not load (${reason}). On your own computer the command "tilewright explore" serves this page, and ` +
    `"tilewright layout", "atom", "streamk" and "show" print and draw the same.`;
}

/** While Python loads: what the tab shows first came with the page. */
async function updateWithoutPython() {
  const [name, state] = [tab.name, address()];
  if (!tab.live || !isFirst()) return;
  const found = await fetch(`first/${name}.json`);
  if (!found.ok) return;
  const answer = await found.json();
  if (loaded || state !== address()) return;
  const status = element("status").textContent;
  show(answer, 0);
  element("status").textContent = status;
}

async function update() {
  if (!loaded) return updateWithoutPython();
  wanted = { tab: tab.name, texts: texts() };
  if (busy) return; // the newest state is asked for when the answer is here
  busy = true;
  while (wanted) {
    const request = wanted;
    wanted = null;
    const begin = performance.now();
    const answer = await ask(request);
    if (request.tab === tab.name) show(answer, performance.now() - begin);
  }
  busy = false;
}

// -- the form --------------------------------------------------------------------------------------------------------

const entry = (name) => form.elements.namedItem(name);
const isFirst = () => tab.fields.every((field) => entry(field.name).value === field.default);
const texts = () => Object.fromEntries(tab.fields.map((field) => [field.name, entry(field.name).value]));

function control(field) {
  const properties = { name: field.name, spellcheck: false };
  if (field.rows > 1) return make("textarea", { ...properties, rows: field.rows });
  if (field.choices.length && !field.open) {
    return make("select", properties, ...field.choices.map((choice) => make("option", { value: choice }, choice)));
  }
  const input = make("input", properties);
  if (field.choices.length) input.setAttribute("list", `choices-${field.name}`);
  return input;
}

function labelled(field) {
  const made = make("label", {}, field.label, control(field));
  if (field.open) {
    const choices = field.choices.map((choice) => make("option", { value: choice }));
    made.append(make("datalist", { id: `choices-${field.name}` }, ...choices));
  }
  return made;
}

function fill(values) {
  for (const field of tab.fields) entry(field.name).value = values[field.name] ?? field.default;
  fit();
}

/** Show the fields that the others call for. */
function fit() {
  for (const field of tab.fields) {
    entry(field.name).closest("label").hidden = field.where && !field.where[1].includes(entry(field.where[0]).value);
  }
}

function open(name, values = {}) {
  tab = tabs.find((one) => one.name === name) ?? tabs[0];
  for (const button of document.querySelectorAll("nav button")) {
    const own = button.value === tab.name;
    button.setAttribute("aria-selected", own);
    button.tabIndex = own ? 0 : -1;
  }
  document.title = `${tab.title} - Tilewright explorer`;
  document.querySelector("main").classList.toggle("editor", !tab.live);
  element("about").textContent = tab.about;
  element("fields").replaceChildren(...tab.fields.map(labelled));
  element("samples").replaceChildren(...tab.samples.map((sample) => make("button", {
    type: "button", onclick: () => { fill(sample.texts); changed(true); },
  }, sample.name)));
  element("run").hidden = tab.live;
  element("answer").replaceChildren();
  element("error").hidden = true;
  figures = new Map();
  shown = "";
  fill(values);
  if (loaded) element("status").textContent = tab.live ? "" : "The program is staged when you ask for it.";
}

/** The fields have changed: keep them, put them into the address, answer. */
function changed(run = tab.live) {
  fit();
  kept[tab.name] = texts();
  history.replaceState(null, "", address());
  if (run) update();
}

form.addEventListener("input", () => changed());
form.addEventListener("submit", (event) => { event.preventDefault(); changed(true); });
form.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && event.ctrlKey) { event.preventDefault(); changed(true); }
});

const navigation = document.querySelector("nav");
for (const button of navigation.children) {
  button.addEventListener("click", () => { open(button.value, kept[button.value]); changed(); });
}
navigation.addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const buttons = [...navigation.children];
  const next = buttons[(buttons.indexOf(document.activeElement) + step + buttons.length) % buttons.length];
  next.focus();
  next.click();
});

// -- the address -----------------------------------------------------------------------------------------------------

function address() {
  const values = new URLSearchParams();
  for (const field of tab.fields) {
    if (entry(field.name).value !== field.default) values.set(field.name, entry(field.name).value);
  }
  return `#${tab.name}${values.size ? "?" : ""}${values}`;
}

function restore() {
  const [name, query = ""] = location.hash.slice(1).split(/\?(.*)/s);
  open(name, Object.fromEntries(new URLSearchParams(query)));
  kept[tab.name] = texts();
  if (tab.live) update();
}
addEventListener("hashchange", restore);

// -- the answer ------------------------------------------------------------------------------------------------------

let figures = new Map(); // what is drawn, by its place, title and SVG

function show(answer, milliseconds) {
  for (const field of tab.fields) entry(field.name).removeAttribute("aria-invalid");
  element("error").hidden = !answer.error;
  element("answer").classList.toggle("old", Boolean(answer.error));
  if (answer.error) {
    complain(answer.error);
    element("status").textContent = element("answer").children.length ? "The last answer stays." : "";
    return;
  }
  shown = address();
  python = answer.python;
  element("python").hidden = !python;
  const texts = answer.texts.map(({ title, text }) => [make("h2", {}, title), make("pre", { tabIndex: 0 }, text)]);
  // A picture that is the same as before stays: its cells are not made again.
  const before = figures;
  figures = new Map();
  const pictures = answer.pictures.map((one, index) => {
    const key = `${index} ${one.title} ${one.svg}`;
    figures.set(key, before.get(key) ?? picture(one, index));
    return figures.get(key);
  });
  const sources = answer.sources.length ? [make("div", { id: "sources" }, ...answer.sources.map(source))] : [];
  place([...pictures, ...texts.flat(), ...sources]);
  links = null;
  element("status").textContent = `answered in ${Math.round(milliseconds)} ms`;
}

/** Make ``wanted`` the children of the answer; those that were there before are not moved, and so not laid out again. */
function place(wanted) {
  const parent = element("answer");
  for (const old of [...parent.children]) if (!wanted.includes(old)) old.remove();
  wanted.forEach((one, index) => {
    if (parent.children[index] !== one) parent.insertBefore(one, parent.children[index] ?? null);
  });
}

function complain({ message, field, position }) {
  const text = field ? entry(field).value : "";
  if (field) entry(field).setAttribute("aria-invalid", "true");
  let place = "";
  if (position >= 0 && entry(field)?.rows > 1) place = `${text.split("\n")[position - 1] ?? ""}\n`;
  else if (position >= 0) place = `${text}\n${" ".repeat(position)}^\n`;
  element("error").textContent = place + message;
}

function picture({ title, svg }, index) {
  const drawing = keyed(make("div", { className: "drawing", tabIndex: 0, innerHTML: svg }));
  const name = `${tab.name}-${index + 1}`;
  const buttons = {
    SVG: () => save(new Blob([svg], { type: "image/svg+xml" }), `${name}.svg`),
    PNG: async () => save(await png(svg), `${name}.png`),
    TikZ: async () => {
      const { tex } = await ask({ tab: tab.name, texts: texts(), tex: index });
      save(new Blob([tex], { type: "text/plain" }), `${name}.tex`);
    },
  };
  const row = Object.entries(buttons).map(([text, onclick]) => {
    const button = make("button", { type: "button", onclick }, text);
    button.setAttribute("aria-label", `Save ${title} as ${text}`);
    return button;
  });
  return make("figure", {}, make("figcaption", {}, title, ...row), drawing);
}

function source({ title, lines }) {
  const rows = lines.map(([text, line]) => {
    const row = make("span", {}, text);
    if (line) row.dataset.key = line;
    return row;
  });
  return make("div", {}, make("h2", {}, title), make("pre", { className: "code", tabIndex: 0 }, ...rows));
}

/** Cells belong together by the first word in them, lines of programs by their Python line. */
function keyed(drawing) {
  for (const cell of drawing.querySelectorAll("g.c")) {
    // A small cell has no text; its remark is "(row,column): T5 V0".
    const text = cell.querySelector("text")?.textContent ?? cell.querySelector("title")?.textContent.match(/: (T\d+) /)?.[1];
    cell.dataset.key = (text ?? "").split("/")[0];
  }
  return drawing;
}

let links = null; // what has the same key, found when it is first asked for

function linked(key) {
  if (!links) {
    links = new Map();
    for (const one of element("answer").querySelectorAll("[data-key]")) {
      if (one.dataset.key) links.set(one.dataset.key, [...(links.get(one.dataset.key) ?? []), one]);
    }
  }
  return links.get(key) ?? [];
}

let lit = [];
element("answer").addEventListener("pointerover", ({ target }) => {
  for (const one of lit) one.classList.remove("linked");
  const under = target.closest("[data-key]");
  lit = under ? linked(under.dataset.key) : [];
  for (const one of lit) one.classList.add("linked");
  const remark = under?.querySelector("title")?.textContent;
  if (remark) element("status").textContent = remark;
});
element("answer").addEventListener("click", ({ target }) => {
  const thread = target.closest("g.c")?.dataset.key?.match(/^T(\d+)$/);
  if (!thread || !entry("thread")) return;
  entry("thread").value = entry("thread").value === thread[1] ? "" : thread[1];
  changed();
});

// -- files and the clipboard -----------------------------------------------------------------------------------------

function save(blob, name) {
  const link = make("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

async function png(svg) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = make("canvas", { width: 2 * image.width, height: 2 * image.height });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    element("status").textContent = `${what} is copied`;
  } catch {
    element("status").textContent = text;
  }
}
element("share").addEventListener("click", () => {
  history.replaceState(null, "", address());
  copy(location.href, "the link");
});
element("python").addEventListener("click", () => copy(python, "the text"));

restore();
