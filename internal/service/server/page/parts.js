// Parts that several views have.

import { html, svg, nothing } from "./lit/lit-html.js";
import { unsafeHTML } from "./lit/directives/unsafe-html.js";
import { get } from "./api.js";
import { app, attempt, update } from "./app.js";
import { count, marks } from "./words.js";

const icons = {
  board: svg`<path d="M3 4h14v12H3zM3 8h14M8 8v8"></path>`,
  inbox: svg`<path d="M3 11l2-7h10l2 7v5H3zM3 11h4l1 2h4l1-2h4"></path>`,
  new: svg`<path d="M10 4v12M4 10h12"></path>`,
  search: svg`<circle cx="9" cy="9" r="5"></circle><path d="M13 13l4 4"></path>`,
  keys: svg`<path d="M2 5h16v10H2zM5 8h0M8 8h0M11 8h0M14 8h0M6 12h8"></path>`,
  bell: svg`<path d="M5 14V9a5 5 0 0 1 10 0v5l1 1H4zM9 17h2"></path>`,
  out: svg`<path d="M8 4H4v12h4M8 10h9M14 7l3 3-3 3"></path>`,
  more: svg`<path d="M5 10h0M10 10h0M15 10h0"></path>`,
};

export const icon = (name) => html`<svg class="icon" viewBox="0 0 20 20" aria-hidden="true">${icons[name]}</svg>`;

// chip shows a state, in the same words everywhere.
export const chip = (state, text = state) => html`<span class="state ${state}">${marks[state]} ${text}</span>`;

// empty is what a view shows when it has nothing to show.
export const empty = (title, text, link) => html`<div class="empty"><strong>${title}</strong>${text}${link ? html`<br>${link}` : nothing}</div>`;

// diff shows lines of a diff, which the server has made HTML of.
export const diff = (lines) => html`<pre class="diff" tabindex="0">${unsafeHTML(lines.join(""))}</pre>`;

const short = 12; // lines of an output that are shown without a window

// output shows what a tool printed. A long one has a window, in which one can search, and which opens as a whole.
// Sought is what is searched, and seek takes it; whole gets the text if some of it is left out here.
export function output(text, { sought = "", seek, whole, title }) {
  const lines = text.split("\n").length;
  if (lines <= short && !whole) return html`<pre tabindex="0" class="result">${text}</pre>`;
  return html`
    <div class="window">
      <div><span>${count(lines, "line")}${whole ? ", cut" : ""}</span>
        ${sought ? html`<span role="status">${count(places(text, sought).length, "match", "matches")}</span>` : nothing}
        <input type="search" aria-label="Find in the output" placeholder="Find" .value=${sought} @input=${(e) => { seek(e.target.value); showFirst(e.target); }}>
        ${title ? html`<button @click=${() => open(title, text, whole)}>Open whole</button>` : nothing}</div>
      <pre tabindex="0" class="result">${found(text, sought)}</pre>
    </div>`;
}

const most = 500; // places that are marked

function places(text, sought) {
  const all = text.toLowerCase(), one = sought.toLowerCase(), out = [];
  for (let at = all.indexOf(one); at >= 0 && out.length < most; at = all.indexOf(one, at + one.length)) out.push(at);
  return all.length === text.length ? out : [];
}

// found is a text with the places marked where something is.
export function found(text, sought) {
  if (!sought) return text;
  const out = [];
  let done = 0;
  for (const at of places(text, sought)) {
    out.push(text.slice(done, at), html`<mark>${text.slice(at, at + sought.length)}</mark>`);
    done = at + sought.length;
  }
  return [...out, text.slice(done)];
}

// showFirst scrolls a window to the first place that is marked, once it is drawn.
const showFirst = (field) => requestAnimationFrame(() => field.closest(".window").querySelector("mark")?.scrollIntoView({ block: "nearest" }));

const open = (title, text, whole) => attempt(async () => {
  app.whole = { title, text: whole ? await whole() : text, sought: "" };
});

// wholeView is a dialog with a whole output, as long as one is open.
export function wholeView() {
  const { whole } = app;
  if (!whole) return nothing;
  queueMicrotask(() => {
    const dialog = document.querySelector("dialog");
    if (dialog && !dialog.open) dialog.showModal();
  });
  return html`
    <dialog aria-label=${whole.title} @close=${() => { app.whole = undefined; update(); }}>
      <div class="window">
        <div><b>${whole.title}</b> <span>${count(whole.text.split("\n").length, "line")}</span>
          ${whole.sought ? html`<span role="status">${count(places(whole.text, whole.sought).length, "match", "matches")}</span>` : nothing}
          <input type="search" aria-label="Find in the output" placeholder="Find" @input=${(e) => { whole.sought = e.target.value; update(); showFirst(e.target); }}>
          <button @click=${(e) => e.target.closest("dialog").close()}>Close</button></div>
        <pre tabindex="0">${found(whole.text, whole.sought)}</pre>
      </div>
    </dialog>`;
}

const images = new Map(); // by session and digest: the data, or a promise of it

// image shows one that is a blob of a session.
export function image(session, { digest, type }) {
  if (!/^image\/(png|jpeg|gif|webp)$/.test(type)) return html`<span class="faint">[${type}]</span>`;
  const key = `${session}/${digest}`;
  const has = images.get(key);
  if (typeof has === "string") return html`<img alt="Image of the session" src=${has}>`;
  if (!has) {
    images.set(key, get(`/api/v1/sessions/${session}/blobs/${digest}`).then(
      (blob) => { images.set(key, `data:${type};base64,${blob.data}`); update(); },
      () => { images.set(key, ""); },
    ));
  }
  return html`<span class="faint">[image]</span>`;
}

// tabs are the views of one session.
export const tabs = (id, current) => html`
  <nav class="tabs" aria-label="Views of the session">
    ${[["", "Transcript"], ["/trace", "Trace"], ["/cost", "Cost"], ["/team", "Team"]].map(([path, text]) => html`
      <a href="/s/${id}${path}" aria-current=${text === current ? "page" : nothing}>${text}</a>`)}
  </nav>`;

// head is the top of a view of a session: the session's title, as far as it is known, and its other views.
export const head = (id, current) => html`
  <div class="head"><h1>${app.board?.sessions.find((r) => r.session === id)?.title ?? current}</h1>${tabs(id, current)}</div>`;

export const loading = (title) => html`<h1>${title}</h1><p class="faint">${app.problem ? "It can't be shown." : "Loading …"}</p>`;
