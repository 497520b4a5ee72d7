// Files as the person sees them: an unsaved text counts, and a change is shown in the editor's own view.

import * as vscode from "vscode";
import type { Change } from "./transcript";

/** scheme is the scheme of texts before and after a change. */
export const scheme = "inspan";

const opened = (path: string) => vscode.workspace.textDocuments.find((d) => d.uri.scheme === "file" && d.uri.fsPath === path);

/** read returns the text of a file; undefined if there is none. */
export async function read(path: string): Promise<string | undefined> {
  const document = opened(path);
  if (document) return document.getText();
  try {
    return new TextDecoder().decode(await vscode.workspace.fs.readFile(vscode.Uri.file(path)));
  } catch (err) {
    if (err instanceof vscode.FileSystemError && err.code === "FileNotFound") return undefined;
    throw err;
  }
}

/** write writes a file. An open one is changed in its editor, where it can be undone, and saved. */
export async function write(path: string, text: string): Promise<void> {
  const document = opened(path);
  if (!document) return vscode.workspace.fs.writeFile(vscode.Uri.file(path), new TextEncoder().encode(text));
  const edit = new vscode.WorkspaceEdit();
  edit.replace(document.uri, new vscode.Range(0, 0, document.lineCount, 0), text);
  if (!(await vscode.workspace.applyEdit(edit)) || !(await document.save())) throw new Error(`${path} could not be written in the editor`);
}

/** Changes keeps the texts of changes for the editor's view of differences. */
export class Changes implements vscode.TextDocumentContentProvider {
  private readonly texts = new Map<string, string>();

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.toString()) ?? "";
  }

  /** show opens a change, within the whole file if that is there before or after it. */
  async show(call: string, change: Change): Promise<void> {
    const whole = (await read(change.path)) ?? "";
    const texts = { before: change.before, after: change.after };
    if (once(whole, change.before)) Object.assign(texts, { before: whole, after: whole.replace(change.before, () => change.after) });
    else if (once(whole, change.after)) Object.assign(texts, { after: whole, before: whole.replace(change.after, () => change.before) });
    const [before, after] = (["before", "after"] as const).map((side) => {
      const uri = vscode.Uri.from({ scheme, path: change.path, query: `${side}=${call}` });
      this.texts.set(uri.toString(), texts[side]);
      return uri;
    });
    const name = vscode.workspace.asRelativePath(change.path);
    await vscode.commands.executeCommand("vscode.diff", before, after, `${name} (inspan)`, { preview: true, preserveFocus: true });
  }
}

/** once reports whether a text has a part at exactly one place. */
function once(text: string, part: string): boolean {
  const at = text.indexOf(part);
  return part !== "" && at >= 0 && text.indexOf(part, at + 1) < 0;
}
