// Draws the transcript. All texts are set as text, never as HTML.

const code = acquireVsCodeApi();
const [items, form, text, mode, send] = ["items", "form", "text", "mode", "send"].map((id) => document.getElementById(id));
let shown = { working: false, mode: "" };

const element = (name, className, ...children) => {
  const e = document.createElement(name);
  e.className = className;
  e.append(...children);
  return e;
};

const button = (label, message) => {
  const b = element("button", "quiet", label);
  b.addEventListener("click", () => code.postMessage(message));
  return b;
};

const marks = { pending: "○", in_progress: "▸", completed: "✓", failed: "✗" };

// A result is Markdown, of which only the fence around it is taken away.
const plain = (result) => result.replace(/^(`{3,})\n([^]*)\n\1$/, "$2");

const draw = {
  person: (i) => [i.text],
  agent: (i) => [i.text],
  thought: (i) => [element("details", "", element("summary", "", "Thought"), i.text)],
  notice: (i) => [i.text],
  plan: (i) => i.entries.map((e) => element("p", e.status, `${marks[e.status]} ${e.text}`)),
  call: (i) => [
    element("p", "title", `${marks[i.status]} ${i.title}`),
    ...(i.asks ? [element("p", "asks", "Waits for your answer. ", button("Answer", { kind: "answer", call: i.id }))] : []),
    ...i.changes.map((path) => button(`Show the change of ${path.split("/").at(-1)}`, { kind: "diff", call: i.id, path })),
    ...(i.text && !i.asks ? [element("details", "", element("summary", "", "Result"), element("pre", "", plain(i.text)))] : []),
  ],
};

// An output that the person has opened stays open when its item changes.
function show(at, item) {
  const before = items.children[at];
  const next = element("section", `${item.kind} ${item.status ?? item.severity ?? ""}`, ...draw[item.kind](item));
  next.querySelectorAll("details").forEach((d, n) => (d.open = before?.querySelectorAll("details")[n]?.open ?? false));
  if (before) before.replaceWith(next);
  else items.append(next);
}

function state(next) {
  shown = next;
  mode.textContent = `Mode ${shown.mode}`;
  mode.hidden = !shown.mode;
  send.textContent = shown.working && !text.value.trim() ? "Interrupt" : shown.working ? "Steer" : "Send";
}

const atEnd = () => innerHeight + scrollY >= document.body.scrollHeight - 40;

addEventListener("message", ({ data }) => {
  const follow = atEnd();
  if (data.kind === "reset") items.replaceChildren(), data.items.forEach((item, at) => show(at, item));
  if (data.kind === "item") show(data.at, data.item);
  if (data.shown) state(data.shown);
  if (data.kind === "reset" || follow) scrollTo(0, document.body.scrollHeight);
});

form.addEventListener("submit", (e) => {
  e.preventDefault();
  const said = text.value.trim();
  if (said) code.postMessage({ kind: "say", text: said });
  else if (shown.working) code.postMessage({ kind: "cancel" });
  text.value = "";
  state(shown);
});
text.addEventListener("input", () => state(shown));
text.addEventListener("keydown", (e) => {
  if (e.key !== "Enter" || e.shiftKey || e.isComposing) return;
  e.preventDefault();
  form.requestSubmit();
});
mode.addEventListener("click", () => code.postMessage({ kind: "mode" }));
code.postMessage({ kind: "ready" });
