// Parts that several views have.

import { html, nothing } from "./lit/lit-html.js";
import { get } from "./api.js";
import { app, update } from "./app.js";

// diff shows a unified diff.
export const diff = (text) => html`<pre class="diff" tabindex="0">${text.split("\n").map((l) => html`<span class=${
  /^(@@|--- |\+\+\+ )/.test(l) ? "hunk" : l.startsWith("+") ? "added" : l.startsWith("-") ? "removed" : ""}>${l + "\n"}</span>`)}</pre>`;

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
    ${[["", "Transcript"], ["/trace", "Trace"], ["/cost", "Cost"]].map(([path, text]) => html`
      <a href="/s/${id}${path}" aria-current=${text === current ? "page" : nothing}>${text}</a>`)}
  </nav>`;

export const loading = (title) => html`<h1>${title}</h1><p>${app.problem ? "It can't be shown." : "Loading …"}</p>`;
