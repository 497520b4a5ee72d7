// Drives a server by a client that was generated from its description.
// Usage: generated.mjs URL TOKEN FOLDER

import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

const [, , url, token, folder] = process.argv;
const api = createClient<paths>({ baseUrl: url, headers: { Authorization: `Bearer ${token}` } });

// done returns what a call has answered, or ends with the problem.
function done<T>({ data, error }: { data?: T; error?: components["schemas"]["Problem"] }): T {
  if (data === undefined) throw new Error(error?.error.message);
  return data;
}

async function until<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
  for (const late = Date.now() + 120_000; Date.now() < late; await new Promise((r) => setTimeout(r, 50))) {
    const found = await look();
    if (found !== undefined) return found;
  }
  throw new Error(`waited too long for ${what}`);
}

const spec: components["schemas"]["Spec"] = { prompt: "bash: touch generated", mode: "ask", folder, labels: { by: "generated" } };
const task = done(await api.POST("/api/v1/tasks", { body: spec, params: { header: { "Idempotency-Key": "typescript" } } }));
const again = done(await api.POST("/api/v1/tasks", { body: spec, params: { header: { "Idempotency-Key": "typescript" } } }));
if (again.id !== task.id) throw new Error("the key did not count");
const question = await until("the question", async () => done(await api.GET("/api/v1/approvals")).approvals?.find((a) => a.task === task.id));
await api.POST("/api/v1/approvals/{task}/{question}", { params: { path: { task: task.id, question: question.id } }, body: { decision: "allow" } });
const over = await until("the end", async () => {
  const now: components["schemas"]["Task"] = done(await api.GET("/api/v1/tasks/{id}", { params: { path: { id: task.id } } }));
  return now.stage === "completed" ? now : undefined;
});
const { events } = done(await api.GET("/api/v1/sessions/{id}/events", { params: { path: { id: over.session ?? "" }, query: { limit: 3 } } }));
const { error } = await api.GET("/api/v1/tasks/{id}", { params: { path: { id: "none" } } });
console.log(over.stage, over.spec.labels?.["by"], over.result?.stopped, events?.length, error?.error.type);
