// Questions of the agent, as dialogs of the editor.

import * as vscode from "vscode";
import type * as acp from "@agentclientprotocol/sdk" with { "resolution-mode": "import" };

/** pick shows a list until one entry is chosen; undefined if the person has left it or it is withdrawn. */
export function pick<T extends vscode.QuickPickItem>(title: string, placeholder: string, items: T[], withdrawn?: AbortSignal): Promise<T | undefined> {
  return new Promise((done) => {
    const list = vscode.window.createQuickPick<T>();
    Object.assign(list, { title, placeholder, items, ignoreFocusOut: true });
    list.onDidAccept(() => {
      done(list.selectedItems[0]);
      list.hide();
    });
    list.onDidHide(() => {
      done(undefined);
      list.dispose();
    });
    withdrawn?.addEventListener("abort", () => list.hide());
    list.show();
  });
}

/** permission asks whether a call may run; undefined if the person has left the dialog without an answer. */
export async function permission(q: acp.RequestPermissionRequest, withdrawn: AbortSignal): Promise<acp.RequestPermissionResponse | undefined> {
  const items = q.options.map((o) => ({ label: o.name, id: o.optionId }));
  const chosen = await pick(`inspan asks: ${q.toolCall.title ?? "a call"}`, "Esc decides later, in the chat", items, withdrawn);
  return chosen && { outcome: { outcome: "selected", optionId: chosen.id } };
}

/** elicit asks for values, or has the person open an address. */
export async function elicit(q: acp.CreateElicitationRequest, withdrawn: AbortSignal): Promise<acp.CreateElicitationResponse> {
  if (q.mode === "url") {
    const { url, message } = q as acp.CreateElicitationRequest & { url: string };
    const open = await vscode.window.showInformationMessage(message, { modal: true, detail: url }, "Open in the Browser");
    if (!open) return { action: "decline" };
    return { action: (await vscode.env.openExternal(vscode.Uri.parse(url, true))) ? "accept" : "cancel" };
  }
  if (q.mode !== "form") return { action: "decline" };
  const { requestedSchema: schema, message } = q as acp.CreateElicitationRequest & acp.ElicitationFormMode;
  const required = new Set(schema.required ?? []);
  const content: Record<string, Value> = {};
  const rank = ([name, p]: [string, acp.ElicitationPropertySchema]) => (required.has(name) ? 2 : 0) + ("enum" in p || "oneOf" in p ? 1 : 0);
  // What is required comes first, and choices come before words. If nothing is required, one answer is enough.
  for (const [name, property] of Object.entries(schema.properties ?? {}).sort((a, b) => rank(b) - rank(a))) {
    const value = await field(message, name, property, withdrawn);
    if (withdrawn.aborted) return { action: "cancel" };
    if (value !== undefined && value !== "") content[name] = value;
    else if (required.has(name)) return { action: "cancel" };
    if (!required.size && name in content) break;
  }
  return Object.keys(content).length ? { action: "accept", content } : { action: "cancel" };
}

type Value = string | number | boolean | string[];

/** field asks for one value; undefined if the person has left the dialog. */
async function field(message: string, name: string, p: acp.ElicitationPropertySchema, withdrawn: AbortSignal): Promise<Value | undefined> {
  const about = p as { title?: string; description?: string; enum?: string[]; oneOf?: { const: string; title?: string }[]; items?: { enum?: string[] } };
  const prompt = [about.title ?? name, about.description].filter(Boolean).join(": ");
  const choices = about.oneOf?.map((o) => ({ label: o.title ?? o.const, value: o.const })) ?? about.enum?.map((value) => ({ label: value, value }));
  if (choices) return (await pick(message, prompt, choices, withdrawn))?.value;
  switch (p.type) {
    case "boolean":
      return (await pick(message, prompt, [{ label: "Yes", value: true }, { label: "No", value: false }], withdrawn))?.value;
    case "array":
      return vscode.window.showQuickPick(about.items?.enum ?? [], { title: message, placeHolder: prompt, canPickMany: true, ignoreFocusOut: true });
    case "number":
    case "integer": {
      const text = await vscode.window.showInputBox({
        title: message, prompt, ignoreFocusOut: true, validateInput: (t) => (t.trim() === "" || Number.isNaN(Number(t)) ? "A number is needed" : undefined),
      });
      return text === undefined ? undefined : Number(text);
    }
  }
  return vscode.window.showInputBox({ title: message, prompt, ignoreFocusOut: true });
}
