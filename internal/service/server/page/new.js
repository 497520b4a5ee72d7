// A new session.

import { html } from "./lit/lit-html.js";
import { post } from "./api.js";
import { app, attempt } from "./app.js";
import { arrive } from "./session.js";

export function newView() {
  const begin = (e) => {
    e.preventDefault();
    const said = Object.fromEntries([...new FormData(e.target)].filter(([, v]) => v));
    const spec = { prompt: said.prompt ?? "", open: true };
    if (said.folder) spec.folder = said.folder;
    if (said.repository) spec.repository = { url: said.repository };
    if (said.mode) spec.mode = said.mode;
    attempt(async () => arrive(await post("/api/v1/tasks", spec)));
  };
  return html`
    <h1>New session</h1>
    <form class="new" @submit=${begin}>
      <label>What to do <textarea name="prompt" rows="5" required></textarea></label>
      <label>Folder on the server <input name="folder" list="folders" .value=${app.board?.folders?.[0] ?? ""}></label>
      <datalist id="folders">${(app.board?.folders ?? []).map((f) => html`<option value=${f}></option>`)}</datalist>
      <label>or a repository to clone <input name="repository" type="text" placeholder="https://github.com/…"></label>
      <label>Mode <select name="mode"><option value="">as the server was started</option>${["plan", "ask", "edit", "auto"].map((m) => html`<option>${m}</option>`)}</select></label>
      <button>Begin</button>
    </form>`;
}
