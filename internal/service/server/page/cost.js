// The cost: where every token and dollar of a session went, and what would have avoided the largest
// parts.

import { html, nothing } from "./lit/lit-html.js";
import { get } from "./api.js";
import { app } from "./app.js";
import { head, loading } from "./parts.js";
import { dollars, thousands } from "./words.js";

export async function loadCost(signal, id) {
  Object.assign(app.data, { id, report: await get(`/api/v1/sessions/${id}/spend`, { signal }), title: "Cost" });
}

export function costView() {
  const { report, id } = app.data;
  if (!report) return loading("Cost");
  const { total } = report;
  const share = (r) => total.dollars ? r.dollars / total.dollars : tokens(r) / Math.max(1, tokens(total));
  return html`
    ${head(id, "Cost")}
    ${report.costliest.length ? html`
      <h2>The costliest causes${total.dollars ? nothing : html` <span class="faint">in tokens</span>`}</h2>
      <ol class="costliest">${report.costliest.map((c) => html`<li><b>${total.dollars ? dollars(c.dollars) : thousands(tokens(c))}</b> <span>${c.key}</span>
        <svg class="bar share" viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true"><rect width=${1000 * share(c)} height="10"></rect></svg>
        ${c.advice ? html`<span class="faint">${c.advice}</span>` : nothing}</li>`)}</ol>` : nothing}
    <h2>All causes</h2>
    <table class="costs">
      <thead><tr><th scope="col">Cause</th>${["Fresh", "Cached", "Written", "Output", "US $", "Share"].map((h) => html`<th scope="col" class="number">${h}</th>`)}</tr></thead>
      <tbody>${report.rows.map((r) => row(r, share(r)))}</tbody>
      <tfoot>${row({ ...total, key: "Total" }, 1)}</tfoot>
    </table>`;
}

const tokens = ({ usage: u }) => (u.input ?? 0) + (u.cache_read ?? 0) + (u.cache_write ?? 0) + (u.output ?? 0);

const row = (r, share) => html`
  <tr><th scope="row">${r.key}</th>${[r.usage.input, r.usage.cache_read, r.usage.cache_write, r.usage.output].map((n) => html`<td class="number">${(n ?? 0).toLocaleString("en")}</td>`)}
    <td class="number">${Number(r.dollars).toFixed(4)}</td><td class="number">${(100 * share).toFixed(1)}%</td></tr>`;
