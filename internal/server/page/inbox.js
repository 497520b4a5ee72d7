// The inbox: all that waits for a person, over all sessions, and how it is decided. A decision names
// the question by its number in the log, so it never counts for another that has taken its place.

import { html, nothing } from "./lit/lit-html.js";
import { repeat } from "./lit/directives/repeat.js";
import { post } from "./api.js";
import { app, attempt, refresh, update } from "./app.js";
import { diff } from "./parts.js";
import { full } from "./words.js";

export function inboxView() {
  const inbox = app.board?.inbox;
  if (!inbox) return html`<h1>Inbox</h1><p>Loading …</p>`;
  app.selected = Math.min(app.selected, Math.max(0, inbox.length - 1));
  return html`
    <h1>Inbox</h1>
    ${questions(inbox, app.selected, true) ?? html`<p>Nothing waits for you.</p>`}`;
}

const name = (q) => `${q.session}/${q.id}/${q.seq}`;

// Questions come and go by themselves. Whoever is about to press a key or a button may hit another one
// than the one that was there, so nothing counts for a moment after they have changed place.
const calm = 700; // ms
const screen = { names: "", since: 0 };

const settled = () => performance.now() - screen.since >= calm;

// questions shows those of a view, the selected one marked; undefined if there are none.
export function questions(list, selected, linked) {
  const names = location.pathname + list.map(name).join();
  if (names !== screen.names) {
    Object.assign(screen, { names, since: performance.now() });
    setTimeout(update, calm + 1);
  }
  return list.length ? repeat(list, name, (q, i) => question(q, i === selected, linked)) : undefined;
}

const decided = new Set(); // questions that were decided here and may still be in what the server said last

async function decide(q, body) {
  if (decided.has(name(q)) || !settled()) return;
  decided.add(name(q));
  update();
  await attempt(async () => {
    try {
      await post(`/api/v1/sessions/${q.session}/events`, { kind: "decided", body: { call: q.id, question: q.seq, ...body } });
      app.told = `${q.tool}: ${body.allow ? "allowed" : "denied"}`;
    } catch (err) {
      if (err.status !== 409) decided.delete(name(q)); // else somebody was faster
      throw err;
    }
  });
  refresh();
}

const allow = (q, scope) => {
  const longer = scope === "once" ? {} : scope === "session" ? { scope } : { scope: "session", reach: scope };
  return decide(q, { allow: true, ...longer });
};

const reaches = { once: "Allow once", session: "Allow for this session", edits: "Allow all edits in this session", host: "Allow this host in this session" };

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
    <article class="question ${selected ? "selected" : ""}" aria-label="${q.tool} asks">
      <h2>${q.asks ? "A question" : html`<code>${q.tool}</code> asks`}${q.agent ? html` <span class="faint">agent ${q.agent}</span>` : nothing}
        ${linked ? html`<a class="from" href="/s/${q.session}#${q.seq}">session</a>` : nothing}</h2>
      ${q.why ? html`<p>${q.why}</p>` : nothing}
      ${q.asks ? html`<p class="asks">${q.asks}</p>` : html`
        ${q.effects.length ? html`<h3>It would</h3><ul class="effects">${q.effects.map((e) => html`<li>${e}</li>`)}</ul>` : nothing}
        ${q.diff ? html`<h3>Change</h3>${diff(q.diff)}` : nothing}
        <h3>Call</h3><pre tabindex="0">${q.call}</pre>
        ${q.rules?.length ? html`<p class="faint">For this session: ${q.rules.map((r) => html`<code>${r}</code> `)}</p>` : nothing}`}
      ${q.until ? html`<p class="faint">Without an answer it is denied at ${full(q.until)}.</p>` : nothing}
      ${done ? html`<p role="status">Decided.</p>` : q.asks ? html`
        <div class="choices">${(q.options ?? []).map((o) => html`<button ?disabled=${!settled()} @click=${() => decide(q, { allow: true, answer: o })}>${o}</button>`)}</div>
        <form class="line" @submit=${answer}><input name="answer" required aria-label="Your answer" placeholder="Your answer"><button ?disabled=${!settled()}>Answer</button></form>
        <button class="deny" ?disabled=${!settled()} @click=${() => decide(q, { allow: false })}>Dismiss</button>` : html`
        <div class="choices">
          ${q.for.map((scope) => html`<button class="allow" ?disabled=${!settled()} @click=${() => allow(q, scope)}>${reaches[scope] ?? `Allow for: ${scope}`}${scope === "once" && selected ? html` <kbd>y</kbd>` : nothing}</button>`)}
        </div>
        <form class="line" @submit=${deny}><input name="reason" aria-label="Reason of a denial" placeholder="Why not (the model reads it)">
          <button class="deny" ?disabled=${!settled()}>Deny${selected ? html` <kbd>n</kbd>` : nothing}</button></form>`}
    </article>`;
}

// questionKeys decide the question that is selected: what is on the screen, once it is there.
export const questionKeys = (selected) => ({
  y: () => { const q = selected(); if (q && !q.asks && inSight()) allow(q, "once"); },
  n: () => { const q = selected(); if (q && inSight()) decide(q, { allow: false }); },
});

// inSight reports whether the question that keys decide is on the screen.
function inSight() {
  const at = document.querySelector(".question.selected")?.getBoundingClientRect();
  return at !== undefined && at.bottom > 0 && at.top < innerHeight;
}

const move = (by) => () => {
  app.selected = Math.max(0, Math.min((app.board?.inbox.length ?? 1) - 1, app.selected + by));
  update();
  queueMicrotask(() => document.querySelector(".question.selected")?.scrollIntoView({ block: "nearest" }));
};

export const inboxKeys = {
  j: move(1), ArrowDown: move(1), k: move(-1), ArrowUp: move(-1),
  ...questionKeys(() => app.board?.inbox[app.selected]),
};
