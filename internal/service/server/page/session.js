// A session: its transcript as it grows, what goes on, and what a person can do. The server folds the
// events; the page has the items by their places and draws them.

import { html, nothing } from "./lit/lit-html.js";
import { guard } from "./lit/directives/guard.js";
import { repeat } from "./lit/directives/repeat.js";
import { live as fieldOf } from "./lit/directives/live.js";
import { unsafeHTML } from "./lit/directives/unsafe-html.js";
import { follow, get, post } from "./api.js";
import { app, attempt, go, update } from "./app.js";
import { questionKeys, questions } from "./inbox.js";
import { chip, diff, image, loading, output, tabs } from "./parts.js";
import { clock, count, dollars, folder, full, speaker, thousands } from "./words.js";

const step = 200; // items that more is shown of at a time

// watch follows a session as long as it is looked at. A page that nobody sees lets go, as a browser
// has few connections to a server, and goes on where it was.
export async function watch(signal, id) {
  const data = Object.assign(app.data, { id, items: new Map(), from: undefined, shown: undefined, total: 0, writing: "", open: new Set(), sought: new Map() });
  for (let seen = Number(location.hash.slice(1)) || 0; !signal.aborted;) {
    const hidden = new AbortController();
    const hide = () => document.hidden && hidden.abort();
    document.addEventListener("visibilitychange", hide);
    const take = (name, part) => {
      if (name === "begin") return Object.assign(data, { items: new Map(), from: undefined, shown: undefined });
      merge(data, part);
      if (seen) reveal(seen);
      seen = 0;
      update();
    };
    const told = (why) => { data.lost = why; update(); };
    const after = data.now && data.from !== undefined ? { after: data.now.seq, from: data.from } : {};
    await follow(() => `/api/v1/sessions/${id}/view?${new URLSearchParams(data.from === undefined ? {} : { ...after, from: data.from })}`,
      AbortSignal.any([signal, hidden.signal]), take, told);
    document.removeEventListener("visibilitychange", hide);
    if (!document.hidden) return;
    await new Promise((done) => document.addEventListener("visibilitychange", done, { once: true }));
  }
}

// merge takes in a part of the session.
function merge(data, part) {
  const end = atEnd();
  for (const item of part.items) data.items.set(item.n, item);
  data.from ??= part.items[0]?.n ?? 0;
  data.shown ??= data.from;
  data.total = part.total;
  data.now = part.now;
  data.title = part.now.title || part.now.session;
  if (part.write) data.writing = part.write.fresh ? part.write.text : data.writing + part.write.text;
  if (end) requestAnimationFrame(() => scrollTo(0, document.documentElement.scrollHeight));
}

const atEnd = () => innerHeight + scrollY > document.documentElement.scrollHeight - 80;

// earlier shows items from a place on.
async function earlier(data, from) {
  from = Math.max(0, from);
  while (data.from > from) {
    const until = data.from;
    const part = await get(`/api/v1/sessions/${data.id}/items?from=${Math.max(from, until - 1000)}&until=${until}`);
    for (const item of part.items) data.items.set(item.n, item);
    data.from = Math.max(from, until - 1000);
  }
  const height = document.documentElement.scrollHeight;
  data.shown = from;
  update();
  requestAnimationFrame(() => scrollBy(0, document.documentElement.scrollHeight - height));
}

// reveal shows the item that an event brought.
export async function reveal(seq) {
  const { data } = app;
  if (!seq || !data.now) return;
  const has = () => [...data.items.values()].filter((i) => i.seq <= seq).sort((a, b) => b.n - a.n)[0];
  while (!has() && data.from > 0) await earlier(data, data.from - 1000);
  const item = has();
  if (!item) return;
  data.open.add(item.n);
  data.marked = item.n;
  update();
  requestAnimationFrame(() => document.getElementById(String(item.seq))?.scrollIntoView({ block: "center" }));
}

export function sessionView() {
  const { data } = app;
  const { now } = data;
  if (!now) return data.lost ? html`<h1>Session</h1><p class="problem">${data.lost}</p>` : loading("Session");
  const all = [];
  for (let n = data.shown; n < data.total; n++) if (data.items.has(n)) all.push(data.items.get(n));
  const items = data.gone ? all : all.filter((i) => !i.gone || i.n === data.marked);
  return html`
    <div class="head">
      <h1>${data.title}</h1>
      ${now.parent ? html`<p><a href="/s/${now.parent}">The session that it works for</a></p>` : nothing}
      <p class="facts">
        ${chip(now.state)}
        <span title=${now.root}>${folder(now.root)}</span> <span>${now.model}${now.effort ? ` (${now.effort})` : ""}</span> <span>mode ${now.mode}</span>
        <span>${count(now.turns, "turn")}</span> <span>${dollars(now.cost, now.unpriced)}</span>
        ${now.prompt ? html`<span title="tokens of the last prompt">${thousands(now.prompt)}${now.window ? ` of ${thousands(now.window)}` : ""} tokens</span>` : nothing}
      </p>
      ${tabs(data.id, "Transcript")}
    </div>
    ${data.lost ? html`<p class="lost" role="status">${data.lost}. Trying again.</p>` : nothing}
    ${now.todo?.length || now.files?.length ? html`<div class="folds">
      ${now.todo?.length ? html`<details class="todo"><summary>To do: ${now.todo.filter((t) => t.state === "done").length} of ${now.todo.length}</summary>
        <ul>${now.todo.map((t) => html`<li class=${t.state}>${{ done: "✓", doing: "▸" }[t.state] ?? "○"} ${t.text}</li>`)}</ul></details>` : nothing}
      ${now.files?.length ? html`<details><summary>${count(now.files.length, "file")} changed</summary><ul>${now.files.map((f) => html`<li><code>${f}</code></li>`)}</ul></details>` : nothing}
    </div>` : nothing}
    ${data.shown > 0 ? html`<button class="earlier" @click=${() => attempt(() => earlier(data, data.shown - step))}>Show earlier (${data.shown.toLocaleString("en")})</button>` : nothing}
    ${all.length > items.length ? html`<button class="earlier" @click=${() => { data.gone = true; update(); }}>Show ${count(all.length - items.length, "item")} that a rewind took back</button>` : nothing}
    <ol class="transcript" aria-label="Transcript">${stretches(items)}</ol>
    ${data.writing ? html`<div class="reply writing"><div class="text">${data.writing}</div></div>` : nothing}
    ${now.thinking && !data.writing ? html`<p class="faint thinking">${now.thinking.slice(-300)}</p>` : nothing}
    ${now.draft ? html`<p class="faint">Writes a call of ${now.draft} …</p>` : nothing}
    ${now.wait ? html`<p class="faint">${now.wait} (until ${clock(now.until)})</p>` : nothing}
    ${now.queued?.map((q) => html`<p class="faint">For after the run: ${q}</p>`) ?? nothing}
    ${questions(now.questions ?? [], false) ?? nothing}
    ${data.back ? rewindView(data) : nothing}
    ${composer(data, now)}`;
}

// stretches shows items, of which a long session has thousands: a hundred are drawn anew together, and
// only if one of them has changed.
function stretches(items) {
  const { data } = app;
  const all = Map.groupBy(items, (i) => Math.floor(i.n / 100));
  return repeat(all, ([at]) => at, ([, some]) => {
    const looks = some.map((i) => `${data.open.has(i.n)} ${data.marked === i.n} ${data.sought.get(i.n) ?? ""}`).join();
    const images = some.some((i) => i.images) ? {} : undefined; // they come later
    return guard([...some, looks, Boolean(live(data.now)), images], () => repeat(some, (i) => i.n, item));
  });
}

// item shows one thing of the transcript.
function item(i) {
  const id = String(i.seq);
  const link = html`<a class="seq" href="#${id}" aria-label="${clock(i.time)} event ${id}" title=${full(i.time)}>${clock(i.time) || `event ${id}`}</a>`;
  const of = { said: saidItem, reply: replyItem, call: callItem, note: noteItem, agent: agentItem, stop: stopItem }[i.kind];
  return html`<li id=${i.kind === "call" ? nothing : id} class="${i.kind} ${i.gone ? "gone" : ""} ${app.data.marked === i.n ? "marked" : ""}">${of(i, link)}</li>`;
}

const saidItem = (i, link) => html`
  <div class="by">${speaker(i.by)}${i.steered ? " (steered)" : ""}${i.waits ? html` <span class="faint">not seen yet</span>` : nothing} ${link} ${forkButton(i)}</div>
  <div class="text">${i.text}${more(i)}</div>
  ${(i.images ?? []).map((p) => image(app.data.id, p))}`;

const replyItem = (i, link) => i.html || i.thought ? html`
  <div class="by">${i.model}${i.cost ? html` <span class="faint">${dollars(i.cost)}</span>` : nothing} ${link} ${forkButton(i)}</div>
  ${i.thought ? html`<details class="thought"><summary>Thought</summary><div class="text">${i.thought}</div></details>` : nothing}
  <div class="markdown">${unsafeHTML(i.html)}</div>` : nothing;

const noteItem = (i, link) => html`<p class=${i.notice ? "notice" : "faint"}>${i.text} ${link}</p>`;

const agentItem = (i, link) => html`
  <p>${i.state === "running" ? "▸" : "✓"} <a href="/s/${i.session}">agent ${i.tool}</a> ${i.subject} <span class="faint">${i.model} ${i.text}
    ${i.state === "over" ? `${count(i.turns ?? 0, "turn")}, ${dollars(i.cost ?? 0)}` : "running"}</span> ${link}</p>`;

const stopItem = (i, link) => html`<p class="faint">— ${i.text} · ${count(i.turns ?? 0, "turn")} · ${dollars(i.cost ?? 0)}${i.took ? ` · ${i.took}` : ""} ${link}</p>`;

function callItem(i) {
  const { data } = app;
  const isOpen = data.open.has(i.n);
  const toggle = (e) => {
    if (e.target.open === data.open.has(i.n)) return;
    if (e.target.open) data.open.add(i.n); else data.open.delete(i.n);
    update();
  };
  const mark = i.state === "over" ? (i.failed ? "✗" : "✓") : { running: "▸", waiting: "?" }[i.state] ?? "○";
  return html`
    <details class=${i.failed ? "failed" : i.state} .open=${isOpen} @toggle=${toggle}>
      <summary>${"\u00a0\u00a0".repeat(i.depth ?? 0)}<span class="mark">${mark}</span> <b>${i.tool}</b> <span class="subject">${i.subject}</span>
        <span class="took">${i.failed ?? ""} ${i.took ?? ""}</span></summary>
      ${isOpen ? callBody(i) : nothing}
    </details>
    ${!isOpen && i.state === "running" && i.text ? html`<pre class="tail">${i.text.split("\n").slice(-4).join("\n")}</pre>` : nothing}
    ${i.html ? html`<div class="markdown">${unsafeHTML(i.html)}</div>` : nothing}
    ${(i.files ?? []).filter((f) => f.diff).map((f) => html`<details class="file"><summary><span class="subject">${folder(f.path)} +${f.added ?? 0} −${f.removed ?? 0}</span></summary>${diff(f.diff)}</details>`)}
    ${(i.images ?? []).map((p) => image(data.id, p))}`;
}

const callBody = (i) => html`
  ${i.answer ? html`<p class="faint">${i.answer}</p>` : nothing}
  ${i.effects?.length ? html`<ul class="effects">${i.effects.map((e) => html`<li>${e}</li>`)}</ul>` : nothing}
  <pre tabindex="0">${i.call}</pre>
  ${i.text ? output(i.text, {
    title: `${i.tool} ${i.subject ?? ""}`, sought: app.data.sought.get(i.n),
    seek: (text) => { app.data.sought.set(i.n, text); update(); },
    whole: i.more ? async () => (await wholeItem(i)).text : undefined,
  }) : nothing}
  <p><a class="seq" href="#${i.seq}">event ${i.seq}</a></p>`;

// more shows all of an item that was cut.
const more = (i) => i.more ? html`<button class="quiet" @click=${() => attempt(async () => app.data.items.set(i.n, await wholeItem(i)))}>Show
  ${thousands(i.more)} more bytes</button>` : nothing;

const wholeItem = async (i) => (await get(`/api/v1/sessions/${app.data.id}/items?from=${i.n}&until=${i.n + 1}&whole=true`)).items[0];

const live = (now) => now.task && now.driven; // the server runs it

const forkButton = (i) => live(app.data.now) && !i.gone && app.board?.role !== "viewer" ? html`<button class="quiet fork" title="Go on from here in a copy" @click=${() => fork(i.seq)}>Fork</button>` : nothing;

async function fork(at) {
  await attempt(async () => {
    let task = await post("/api/v1/tasks", { prompt: "", open: true, title: `Fork of ${app.data.title}`.slice(0, 200), fork: { task: app.data.now.task, at } });
    await arrive(task);
  });
}

// arrive goes to the session of a task once there is one.
export async function arrive(task) {
  for (let tries = 0; !task.session; tries++) {
    if (["failed", "cancelled", "timed_out"].includes(task.stage)) throw new Error(`the task has ${task.stage}: ${task.why ?? ""}`);
    if (tries === 240) return go("/"); // it waits for its turn, as the board tells
    await new Promise((done) => setTimeout(done, 250));
    task = await get(`/api/v1/tasks/${task.id}`);
  }
  go(`/s/${task.session}`);
}

// composer is where a person says something.
function composer(data, now) {
  if (app.board?.role === "viewer") return html`<p class="faint">Your role can only look.</p>`;
  if (now.parent) return html`<p class="faint">This agent works for another session. Write there, or to it on the page of <a href="/s/${now.parent}/team">the team</a>.</p>`;
  if (!now.driven) return now.task ? html`<p class="faint">The task is over.</p>` : html`
    <p class="faint">Nobody runs this session.${now.questions ? " It goes on with your answer once somebody does." : ""}
      <button @click=${() => attempt(async () => arrive(await post("/api/v1/tasks", { prompt: "", session: data.id, open: true })))}>Continue here</button></p>`;
  const send = (kind) => attempt(async () => {
    const box = document.getElementById("message");
    const text = box.value.trim();
    if (!text) return;
    await post(`/api/v1/sessions/${data.id}/events`, { kind, body: { parts: [{ type: "text", text }] } });
    box.value = app.drafts[data.id] = "";
  });
  const press = (e) => {
    if (e.key !== "Enter" || e.shiftKey || e.isComposing) return;
    e.preventDefault();
    send(now.busy ? "steered" : "said");
  };
  return html`
    <form class="composer" @submit=${(e) => { e.preventDefault(); send(now.busy ? "steered" : "said"); }}>
      <div>
        <textarea id="message" rows="2" aria-label="Message" aria-keyshortcuts="m" @keydown=${press}
          .value=${fieldOf(app.drafts[data.id] ?? "")} @input=${(e) => { app.drafts[data.id] = e.target.value; }}
          placeholder=${now.busy ? "Steer: the model sees it with the next results" : "Message"}></textarea>
        <div class="choices">
          ${live(now) && now.stage === "idle" ? html`<button type="button" @click=${rewind}>Rewind …</button>` : nothing}
          ${now.task && now.stage === "idle" ? html`<button type="button" @click=${() => attempt(() => post(`/api/v1/tasks/${now.task}/close`))}>Close</button>` : nothing}
          ${now.busy ? html`<button type="button" class="deny" @click=${interrupt}>Interrupt</button><button type="button" @click=${() => send("said")}>Queue</button>` : nothing}
          <button class="end ${now.questions?.length ? "" : "primary"}">${now.busy ? "Steer" : "Send"}</button>
        </div>
      </div>
    </form>`;
}

const interrupt = () => attempt(() => post(`/api/v1/sessions/${app.data.id}/events`, { kind: "cancelled", body: { reason: "interrupted in the browser", all: true } }));

const rewind = () => attempt(async () => {
  const { points } = await get(`/api/v1/sessions/${app.data.id}/points`);
  const { effects } = await get(`/api/v1/sessions/${app.data.id}/effects`);
  app.data.back = { points: points.reverse(), effects };
});

// rewindView lets a person choose a message, shows what would happen, and then does that.
function rewindView(data) {
  const { back } = data;
  const send = (more) => post(`/api/v1/tasks/${data.now.task}/rewind`, { to: back.to, files: back.files, conversation: true, ...more });
  const look = (to, files) => attempt(async () => {
    Object.assign(back, { to, files, preview: undefined });
    back.preview = await send({ dry_run: true });
  });
  const list = (title, files) => files.length ? html`<h3>${title}</h3><ul>${files.map((f) => html`<li><code>${f.path}</code> <span class="faint">${f.what}</span></li>`)}</ul>` : nothing;
  return html`
    <section class="rewind" aria-label="Rewind">
      <h2>Rewind to before</h2>
      ${back.points.length ? html`<ul class="points">${back.points.map((p) => html`
        <li><button aria-pressed=${back.to === p.seq} @click=${() => look(p.seq, back.files ?? true)}>${p.text.slice(0, 120)} <span class="faint">${clock(p.time)}</span></button></li>`)}</ul>` : html`<p>There is no message to go back to.</p>`}
      ${back.to ? html`<label><input type="checkbox" .checked=${back.files} @change=${(e) => look(back.to, e.target.checked)}> Put files back, too</label>` : nothing}
      ${back.preview ? html`
        ${list("Files that change", back.preview.changed)}${list("Files that stay as they are", back.preview.kept)}
        ${back.effects.length ? html`<h3>It can't undo</h3><ul>${back.effects.map((e) => html`<li>${e.what ?? e.text ?? JSON.stringify(e)}</li>`)}</ul>` : nothing}
        <button class="deny" @click=${() => attempt(async () => { await send({}); data.back = undefined; })}>Rewind</button>` : nothing}
      <button @click=${() => { data.back = undefined; update(); }}>Cancel</button>
    </section>`;
}

export const sessionKeys = {
  m: () => document.getElementById("message")?.focus(),
  x: () => { if (app.data.now?.busy && app.data.now.driven) interrupt(); },
  t: () => go(`/s/${app.data.id}/trace`),
  $: () => go(`/s/${app.data.id}/cost`),
  ...questionKeys,
};
