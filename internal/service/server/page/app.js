// The page: what is looked at (from the address), and the keys. Each view is a function from the state
// to a template of lit-html, in a file of its own. Nothing is kept but the token; all else is what the
// server says.

import { html, nothing, render } from "./lit/lit-html.js";
import { get, signIn, token } from "./api.js";
import { boardView, boardKeys } from "./board.js";
import { inboxView, inboxKeys } from "./inbox.js";
import { reveal, sessionView, sessionKeys, watch } from "./session.js";
import { traceView, loadTrace } from "./trace.js";
import { costView, loadCost } from "./cost.js";
import { loadTeam, teamView } from "./team.js";
import { compareView, loadCompare } from "./compare.js";
import { evalView, loadEval } from "./evals.js";
import { searchView, loadSearch } from "./search.js";
import { newView } from "./new.js";
import { empty, icon, wholeView } from "./parts.js";

// app is the whole state. A view puts what it has loaded into app.data, which goes with the address.
export const app = {
  route: undefined,
  data: {},
  board: undefined, // as the server said last
  problem: "", // why something did not work
  told: "", // what a screen reader is told
  help: false,
  whole: undefined, // an output that is open as a whole
  signedIn: token.get() !== "",
  selected: 0, // row of the board
  drafts: {}, // half-written messages by session, also while somebody signs in again
};

const routes = [
  { at: /^\/$/, name: "board", title: "Board", view: boardView, keys: boardKeys },
  { at: /^\/inbox$/, name: "inbox", title: "Inbox", view: inboxView, keys: inboxKeys },
  { at: /^\/search$/, name: "search", title: "Search", view: () => searchView(search), load: loadSearch },
  { at: /^\/new$/, name: "new", title: "New session", view: newView },
  { at: /^\/s\/([^/]+)$/, name: "session", title: "Session", view: sessionView, load: watch, keys: sessionKeys, hash: reveal },
  { at: /^\/s\/([^/]+)\/trace$/, name: "trace", title: "Trace", view: traceView, load: loadTrace },
  { at: /^\/s\/([^/]+)\/cost$/, name: "cost", title: "Cost", view: costView, load: loadCost },
  { at: /^\/s\/([^/]+)\/team$/, name: "team", title: "Team", view: teamView, load: loadTeam },
  { at: /^\/compare\/([^/]+)\/([^/]+)$/, name: "compare", title: "Compare", view: compareView, load: loadCompare },
  { at: /^\/eval\/([^/]+)$/, name: "eval", title: "Evaluation", view: evalView, load: loadEval },
  { at: /^/, name: "stray", title: "Not found", view: strayView },
];

// The server sends the page for every address that a person opens, and this view for those of no other.
function strayView() {
  return html`
    <div class="top"><h1>Not found</h1></div>
    ${empty("There is no page at this address", location.pathname, html`<a href="/">Go to the board</a>`)}`;
}

let drawn = false;

// update draws the page anew, once for all changes of this moment.
export function update() {
  if (drawn) return;
  drawn = true;
  queueMicrotask(() => {
    drawn = false;
    document.title = (app.board?.inbox.length ? `(${app.board.inbox.length}) ` : "") + `${app.data.title || app.route?.title || "Sign in"} · inspan`;
    render(page(), document.body);
  });
}

// attempt does something that may fail, and says so if it does.
export async function attempt(what) {
  try {
    app.problem = "";
    return await what();
  } catch (err) {
    if (err.status === 401) {
      token.drop();
      app.signedIn = false;
    }
    app.problem = err.message;
  } finally {
    update();
  }
}

// go looks at something else.
export function go(path, replace) {
  history[replace ? "replaceState" : "pushState"](null, "", path);
  open();
}

function plain(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // no text
  }
}

let leaving = new AbortController();

function open() {
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  const route = routes.find((r) => r.at.test(location.pathname));
  shown = location.pathname;
  Object.assign(app, { route, data: {}, problem: "", selected: 0, help: false, whole: undefined });
  const parts = location.pathname.match(route.at).slice(1).map(plain);
  if (app.signedIn && route.load) attempt(() => route.load(signal, ...parts).catch((err) => { if (!signal.aborted) throw err; }));
  update();
  queueMicrotask(() => {
    document.getElementById("main")?.focus({ preventScroll: true });
    const search = document.getElementById("search");
    if (search) search.value = new URLSearchParams(location.search).get("text") ?? "";
  });
}

const beat = 2000; // ms between looks at the board

// refresh reads the board. It is small: the server looks only into sessions that have grown.
export async function refresh() {
  if (!app.signedIn || !app.route || document.hidden && !watching()) return;
  const { state = "", text = "" } = app.route.name === "board" ? app.data : {};
  const before = app.board?.inbox.length ?? 0;
  try {
    app.board = await get(`/api/v1/board?${new URLSearchParams({ state, text, limit: app.route.name === "board" ? "200" : "50" })}`);
    app.lost = "";
    if (app.board.inbox.length > before) announce(app.board.inbox);
  } catch (err) {
    if (err.status === 401) return attempt(() => { throw err; });
    app.lost = err.message;
  }
  update();
}

const watching = () => "Notification" in window && Notification.permission === "granted";

function announce(inbox) {
  const asks = inbox[inbox.length - 1];
  app.told = `${asks.tool} asks. ${inbox.length} in the inbox.`;
  if (document.hidden && watching()) new Notification("inspan", { body: app.told, tag: "inbox" });
}

function page() {
  if (!app.signedIn) return signInView();
  const { name, view } = app.route;
  const waiting = app.board?.inbox.length ?? 0;
  const link = (to, of, text, key, more = nothing) => html`
    <a href=${to} class=${of === "search" ? "narrow" : nothing} aria-current=${of === name ? "page" : nothing} aria-keyshortcuts=${key}>${icon(of)}<span>${text}</span>${more}</a>`;
  return html`
    <a class="skip" href="#main">Skip to content</a>
    <header class="side">
      <a class="brand" href="/"><img src="/page/icon.svg" alt="">inspan</a>
      <nav class="views" aria-label="Views">
        ${link("/", "board", "Board", "b")}
        ${link("/inbox", "inbox", "Inbox", "i", waiting ? html`<span class="count">${waiting}<span class="hidden"> waiting</span></span>` : nothing)}
        ${link("/new", "new", "New", "c")}
        ${link("/search", "search", "Search", nothing)}
      </nav>
      <form role="search" @submit=${search}>
        <input id="search" name="text" type="search" placeholder="Search" aria-label="Search all that was said" aria-keyshortcuts="/">
      </form>
      ${recent()}
      <div class="foot">
        <button @click=${() => { app.help = !app.help; update(); }} aria-expanded=${app.help} aria-keyshortcuts="?">${icon("keys")} Keys</button>
        ${"Notification" in window && !watching() ? html`<button @click=${() => Notification.requestPermission().then(update)}>${icon("bell")} Notify me of questions</button>` : nothing}
        <button @click=${signOut}>${icon("out")} Sign out</button>
      </div>
    </header>
    <div>
      <div class="notices" role="status">
        ${app.lost ? html`<p class="lost">${app.lost}. Trying again.</p>` : nothing}
        ${app.problem ? html`<p class="problem">${app.problem} <button class="quiet" @click=${() => { app.problem = ""; update(); }}>Dismiss</button></p>` : nothing}
        <p class="hidden">${app.told}</p>
      </div>
      ${app.help ? helpView() : nothing}
      <main id="main" tabindex="-1" class=${name}>${view()}
        ${name === "board" ? html`<p class="narrow"><button class="quiet" @click=${signOut}>Sign out</button></p>` : nothing}</main>
    </div>
    ${wholeView()}`;
}

// recent are the sessions that changed last, to go from one to another.
const recent = () => app.route.name === "board" || !app.board?.sessions.length ? nothing : html`
  <nav class="recent" aria-label="Recent sessions"><h2>Sessions</h2>
    <ul>${app.board.sessions.filter((r) => r.session).slice(0, 20).map((r) => html`
      <li><a href="/s/${r.session}" aria-current=${location.pathname === `/s/${r.session}` ? "page" : nothing}>
        <i class="dot ${r.state}" role="img" aria-label=${r.state}></i><span title=${r.title}>${r.title}</span></a></li>`)}</ul></nav>`;

const signOut = () => { token.drop(); app.signedIn = false; update(); };

function search(e) {
  e.preventDefault();
  const text = new FormData(e.target).get("text").trim();
  if (text) go(`/search?${new URLSearchParams({ text })}`);
}

const keys = [
  ["b", "board"], ["i", "inbox"], ["c", "new session"], ["/", "search"], ["j k", "next, previous"], ["Enter", "open"],
  ["y n", "allow, deny the selected question"], ["m", "write a message"], ["x", "interrupt"], ["t", "trace"], ["$", "cost"],
  ["Esc", "leave a field, or go back"],
];

const helpView = () => html`
  <section class="help" aria-label="Keys">
    <h2>Keys</h2>
    <dl>${keys.map(([k, what]) => html`<div><dt><kbd>${k}</kbd></dt><dd>${what}</dd></div>`)}</dl>
    <button @click=${() => { app.help = false; update(); }}>Close</button>
  </section>`;

function signInView() {
  const take = (e) => {
    e.preventDefault();
    token.set(new FormData(e.target).get("token"));
    app.signedIn = true;
    attempt(async () => { await get("/api/v1/board?limit=1"); open(); refresh(); });
  };
  return html`
    <main id="main" class="sign-in">
      <h1>inspan</h1>
      ${app.problem ? html`<p class="problem" role="alert">${app.problem}</p>` : nothing}
      <p>Run <code>inspan web</code> on the machine of the server to sign in, or paste a token. The file <code>server.token</code> in its
        state folder has the owner's.</p>
      <form @submit=${take}>
        <label>Token <input name="token" type="password" autocomplete="current-password" required></label>
        <button class="primary">Sign in</button>
      </form>
    </main>`;
}

// Whoever types in a field types; elsewhere keys do what the help says.
document.addEventListener("keydown", (e) => {
  if (app.whole) { // the dialog is in front of everything that keys decide
    if (e.key === "Escape") document.querySelector("dialog")?.close();
    return;
  }
  const field = e.target.closest("input, textarea, select");
  if (e.key === "Escape" && field) return field.blur();
  if (field || e.ctrlKey || e.metaKey || e.altKey || !app.signedIn) return;
  if (e.target.closest("button, a, summary") && (e.key === "Enter" || e.key === " ")) return;
  const act = {
    b: () => go("/"), i: () => go("/inbox"), c: () => go("/new"), "?": () => { app.help = !app.help; update(); },
    "/": () => document.getElementById("search").focus(), Escape: () => app.help ? (app.help = false, update()) : history.back(),
  }[e.key] ?? app.route.keys?.[e.key];
  if (!act) return;
  e.preventDefault();
  act();
});

// Links within the page change the view; the server has the same document for each address.
document.addEventListener("click", (e) => {
  const link = e.target.closest("a[href]");
  if (!link || e.defaultPrevented || e.button || e.ctrlKey || e.metaKey || e.shiftKey || link.origin !== location.origin || link.target) return;
  if (link.pathname === location.pathname && link.hash) return;
  e.preventDefault();
  go(link.pathname + link.search + link.hash);
});

let shown = ""; // path

addEventListener("popstate", () => {
  if (location.pathname === shown && app.route.hash) attempt(() => app.route.hash(Number(location.hash.slice(1))));
  else open();
});
document.addEventListener("visibilitychange", refresh);

async function start() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code) {
    history.replaceState(null, "", location.pathname);
    if (!app.signedIn || !(await known())) {
      await attempt(() => signIn(code));
      app.signedIn = token.get() !== "";
    }
  }
  const { problem } = app;
  open();
  app.problem = problem; // of the code
  refresh();
  setInterval(refresh, beat);
}

const known = () => get("/api/v1/board?limit=1").then(() => true, (err) => err.status !== 401);

start();
