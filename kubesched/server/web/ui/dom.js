// Small things for drawing: elements, lists that keep their elements, and figures as people write them.

export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (name === "text") element.textContent = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

// Make the children of a box those of the items, in their order. Elements are kept by key, and the one with the focus is
// never moved nor taken away: its neighbours move around it. Otherwise the keyboard would be lost whenever the table moves.
export function reconcile(box, items, keyOf, create, update) {
  const had = new Map([...box.children].map((child) => [child.dataset.key, child]));
  const wanted = items.map((item) => {
    const key = String(keyOf(item));
    let element = had.get(key);
    if (!element) {
      element = create(item);
      element.dataset.key = key;
    }
    had.delete(key);
    if (update) update(element, item);
    return element;
  });
  const focused = [...box.children].find((child) => child.contains(document.activeElement));
  if (focused && had.get(focused.dataset.key) === focused) {
    had.delete(focused.dataset.key);
    wanted.push(focused);
  }
  for (const gone of had.values()) gone.remove();
  const pivot = Math.max(wanted.indexOf(focused), 0);
  if (!focused && wanted.length && box.firstElementChild !== wanted[0]) box.prepend(wanted[0]);
  for (let i = pivot - 1; i >= 0; i -= 1) if (wanted[i].nextElementSibling !== wanted[i + 1]) wanted[i + 1].before(wanted[i]);
  for (let i = pivot + 1; i < wanted.length; i += 1) if (wanted[i - 1].nextElementSibling !== wanted[i]) wanted[i - 1].after(wanted[i]);
}

const whole = new Intl.NumberFormat("en");
export const count = (value) => whole.format(value);
export const several = (value, one, many = `${one}s`) => `${count(value)} ${value === 1 ? one : many}`;
export const percent = (share) => `${Math.round(share * 100)} %`;

const round1 = (value) => Math.round(value * 10) / 10;

// Amounts as kubectl writes them, everywhere: cpu in cores or m, bytes in Ki, Mi, Gi, Ti.
export function amount(value, unit) {
  if (unit === "m") return value >= 100000 ? count(Math.round(value / 1000)) : value % 1000 ? `${count(value)}m` : count(value / 1000);
  if (unit !== "Mi") return count(value);
  const suffixes = ["Mi", "Gi", "Ti", "Pi"];
  let step = 0;
  for (; value >= 1024 && step < 3; step += 1) value /= 1024;
  return `${count(round1(value))}${suffixes[step]}`;
}

export function duration(seconds) {
  if (seconds === 0) return "0 s";
  if (seconds < 0.0005) return `${Math.max(0, Math.round(seconds * 1e6))} µs`;
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 100) return `${round1(seconds)} s`;
  if (seconds < 6000) return `${Math.round(seconds / 60)} min`;
  return `${Math.round(seconds / 3600)} h`;
}

const time = new Intl.DateTimeFormat("en", { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
export const clock = (seconds) => time.format(seconds * 1000);

export const podLink = (pod, look = "plain") => make("a", { class: look, href: `#pod/${pod.split("/").map(encodeURIComponent).join("/")}`, text: pod });
export const nodeLink = (node) => make("a", { class: "plain", href: `#node/${encodeURIComponent(node)}`, text: node });
export const listed = (values) => Object.entries(values).map(([name, value]) => `${name} ${value}`).join(", ");

export const facts = (pairs) => make("dl", { class: "facts" },
  ...pairs.filter(([, value]) => value).flatMap(([name, value]) => [make("dt", { text: name }), make("dd", {}, value)]));

export function table(heads, rows, attributes = {}) {
  const head = make("tr", {}, ...heads.map(([name, look]) => make("th", { scope: "col", class: look, text: name })));
  return make("table", attributes, make("thead", {}, head), make("tbody", {}, ...rows));
}

// A button that copies a text, and says that it did.
export function copyButton(text, label = "Copy") {
  return make("button", { type: "button", class: "quiet", text: label, onclick: async (event) => {
    const button = event.currentTarget;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Select it and copy";
    }
    setTimeout(() => { button.textContent = label; }, 2000);
  } });
}

// A field with its label.
export const field = (id, label, control) => make("span", { class: "field" }, make("label", { for: id, text: label }), Object.assign(control, { id }));

export function errorText(error) {
  return error instanceof TypeError ? "the scheduler does not answer" : error.message;
}
