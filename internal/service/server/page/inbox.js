// The inbox: all that waits for a person, over all sessions, and how it is decided. A decision names
// the question by its number in the log, so it never counts for another that has taken its place.

import { html, nothing } from "./lit/lit-html.js";
import { repeat } from "./lit/directives/repeat.js";
import { post } from "./api.js";
import { app, attempt, refresh, update } from "./app.js";
import { diff, empty } from "./parts.js";
import { count, folder, full } from "./words.js";

export function inboxView() {
  const inbox = app.board?.inbox;
  if (!inbox) return html`<h1>Inbox</h1><p class="faint">Loading …</p>`;
  return html`
    <div class="top"><h1>Inbox</h1></div>
    ${questions(inbox, true) ?? empty("Nothing waits for you", "Questions of all sessions come here.")}`;
}

// A set of calls that are asked about together is another question once there are more of them.
const name = (q) => `${q.session}/${q.id}/${q.seq}/${q.with?.length ?? 0}`;
const calls = (q) => q.set ?? [q];

// Questions come and go by themselves. What a person is about to decide stays where it is: new ones come
// below, and the mark, which the keys decide, stays with its question. If somebody else decides that,
// nothing is marked until the person marks another. And nothing counts for a moment after the list has
// changed, as whoever is about to press something has seen the one before.
const calm = 700; // ms
const screen = { path: "", list: [], marked: "", since: 0 };

const settled = () => performance.now() - screen.since >= calm;

// questions shows those of a view; undefined if there are none.
export function questions(asked, linked) {
  const fresh = screen.path !== location.pathname;
  const byName = new Map(asked.map((q) => [name(q), q]));
  const before = fresh ? [] : screen.list.map(name);
  const list = [...before.filter((n) => byName.has(n)), ...[...byName.keys()].filter((n) => !before.includes(n))].map((n) => byName.get(n));
  const changed = fresh || list.length !== before.length || list.some((q, i) => name(q) !== before[i]);
  const mine = decided.has(screen.marked);
  screen.list = list;
  screen.path = location.pathname;
  if (fresh || !before.length || mine && !byName.has(screen.marked)) screen.marked = list.length ? name(list[0]) : "";
  if (changed) {
    screen.since = performance.now();
    setTimeout(update, calm + 1);
  }
  return list.length ? repeat(list, name, (q) => question(q, name(q) === screen.marked, linked)) : undefined;
}

const marked = () => screen.list.find((q) => name(q) === screen.marked);

const mostLines = 40; // of a call that are shown before somebody asks for all of it
const unfolded = new Set(); // questions of which all is shown

// long reports whether a part of what a question shows is folded away. Then it can't be allowed.
const long = (q) => !unfolded.has(name(q)) && calls(q).some((c) => [c.call.split("\n"), c.diff ?? []].some((lines) => lines.length > mostLines || size(lines) > 4000));

// size counts the characters of lines, which may be HTML.
const size = (lines) => lines.reduce((sum, l) => sum + l.replace(/<[^>]*>/g, "").length, 0);

// body is a text of a question, with its beginning and its end if it is folded.
function body(q, text, show) {
  if (!long(q)) return show(text);
  const lines = text.split("\n");
  const head = lines.slice(0, mostLines / 2).join("\n").slice(0, 1500), tail = lines.slice(-8).join("\n").slice(-1000);
  return head.length + tail.length >= text.length ? show(text) : html`${show(head)}<p class="notice">…
    ${(text.length - head.length - tail.length).toLocaleString("en")} characters are not shown …</p>${show(tail)}`;
}

// changes is the diff of a call, with its beginning and its end if the question is folded.
function changes(q, lines) {
  if (!long(q)) return diff(lines);
  const some = (all, most, room) => all.slice(0, all.findIndex((l, i) => i === most || (room -= size([l])) < 0));
  const head = some([...lines, ""], mostLines / 2, 1500), tail = some([...lines.slice(head.length).reverse(), ""], 8, 1000).reverse();
  const left = lines.length - head.length - tail.length;
  return left > 0 ? html`${diff(head)}<p class="notice">… ${count(left, "line")} not shown …</p>${diff(tail)}` : diff(lines);
}

const decided = new Set(); // questions that were decided here and may still be in what the server said last

async function decide(q, body) {
  if (decided.has(name(q)) || !settled()) return;
  decided.add(name(q));
  update();
  await attempt(async () => {
    try {
      await post(`/api/v1/sessions/${q.session}/events`, { kind: "decided", body: { call: q.id, question: q.seq, also: q.with, ...body } });
      app.told = `${q.tool}: ${body.allow ? "allowed" : "denied"}`;
    } catch (err) {
      if (err.status !== 409) decided.delete(name(q)); // else somebody was faster
      throw err;
    }
  });
  refresh();
}

const allow = (q, scope) => {
  if (long(q)) return;
  const longer = scope === "once" ? {} : scope === "session" ? { scope } : { scope: "session", reach: scope };
  return decide(q, { allow: true, ...longer });
};

// sentence shows words, those between backticks as code.
const sentence = (text) => text.split("`").map((part, i) => i % 2 ? html`<code>${part}</code>` : part);

// These calls are wholly in the diff that the question shows, if none of it is left out; their arguments would say it
// again.
const inDiff = (c) => ["write_file", "edit_file", "edit_lines"].includes(c.tool) && c.diff && !c.diff.some((l) => l.includes("of the diff left out"));

// wish shows one call: what it would do, each thing once.
const wish = (q, c) => html`
  ${c.diff ? changes(q, c.diff) : nothing}
  ${inDiff(c) ? html`<details><summary class="faint">The call</summary><pre tabindex="0">${c.call}</pre></details>`
    : body(q, c.call, (text) => html`<pre tabindex="0">${text}</pre>`)}
  ${c.effects.length ? html`<ul class="effects" aria-label="It would">${c.effects.map((e) => html`<li>${e}</li>`)}</ul>` : nothing}`;

// question shows one, with all that it would do, and takes the decision.
function question(q, selected, linked) {
  const done = decided.has(name(q));
  const answer = (e) => {
    e.preventDefault();
    decide(q, { allow: true, answer: new FormData(e.target).get("answer") });
  };
  const deny = (e) => {
    e.preventDefault();
    decide(q, { allow: false, reason: new FormData(e.target).get("reason") || undefined });
  };
  return html`
    <article class="question ${selected ? "selected" : ""}" aria-label="${q.tool} asks in ${q.title || q.session}">
      <header><h2>${q.asks ? "A question" : html`<code>${q.tool}</code> ${q.wants}`}</h2>${q.agent ? html` <span class="faint">agent ${q.agent}</span>` : nothing}
        ${linked ? html`<span class="from"><a href="/s/${q.session}#${q.seq}">${q.title || "session"}</a>
          <span class="faint" title=${q.root ?? ""}>${folder(q.root)}</span></span>` : nothing}</header>
      ${q.why ? html`<p class="faint">${q.why}</p>` : nothing}
      ${q.asks ? html`<p class="asks">${q.asks}</p>` : html`
        ${q.set ? calls(q).map((c, i) => html`
          <h3>Call ${i + 1} of ${q.set.length}: <code>${c.tool}</code></h3>${c.why ? html`<p class="faint">${c.why}</p>` : nothing}${wish(q, c)}`) : wish(q, q)}
        ${long(q) ? html`<button @click=${() => { unfolded.add(name(q)); update(); }}>Show all of it</button> <span class="faint">Then you can allow it.</span>` : nothing}`}
      ${q.until ? html`<p class="faint">Without an answer it is denied at ${full(q.until)}.</p>` : nothing}
      ${app.board?.role === "viewer" ? html`<p class="faint">Your role can't decide.</p>` : done ? html`<p role="status">Decided.</p>` : q.asks ? html`
        <div class="choices">${(q.options ?? []).map((o) => html`<button ?disabled=${!settled()} @click=${() => decide(q, { allow: true, answer: o })}>${o}</button>`)}</div>
        <form class="line" @submit=${answer}><input name="answer" required aria-label="Your answer" placeholder="Your answer"><button class=${selected ? "primary" : nothing} ?disabled=${!settled()}>Answer</button>
          <button type="button" class="deny" ?disabled=${!settled()} @click=${() => decide(q, { allow: false })}>Dismiss</button></form>` : html`
        <div class="choices">
          ${q.for.map((scope, i) => html`<button class="allow ${scope === "once" && selected ? "primary" : ""}" ?disabled=${!settled() || long(q)} @click=${() => allow(q, scope)}><span>${sentence(q.choices[i])}</span>${scope === "once" && selected ? html` <kbd>y</kbd>` : nothing}</button>`)}
        </div>
        <form class="line deny-line" @submit=${deny}><input name="reason" aria-label="What to do instead" placeholder="or say what to do instead">
          <button class="deny" ?disabled=${!settled()}>No${selected ? html` <kbd>n</kbd>` : nothing}</button></form>`}
    </article>`;
}

// questionKeys mark a question and decide the one that is marked, if all of it can be seen with the
// button that does the same.
export const questionKeys = {
  y: () => { const q = marked(); if (q && !q.asks && inSight("button.allow")) allow(q, "once"); },
  n: () => { const q = marked(); if (q && inSight("h2")) decide(q, { allow: false }); },
};

function inSight(part) {
  const at = document.querySelector(`.question.selected ${part}`)?.getBoundingClientRect();
  return at !== undefined && at.bottom > 0 && at.top < innerHeight;
}

const move = (by) => () => {
  const at = screen.list.findIndex((q) => name(q) === screen.marked);
  const next = screen.list[Math.max(0, Math.min(screen.list.length - 1, at + by))];
  screen.marked = next ? name(next) : "";
  update();
  queueMicrotask(() => document.querySelector(".question.selected")?.scrollIntoView({ block: "nearest" }));
};

export const inboxKeys = { j: move(1), ArrowDown: move(1), k: move(-1), ArrowUp: move(-1), ...questionKeys };
