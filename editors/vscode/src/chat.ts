// The chat: a view that draws a transcript and takes what the person types. It runs no text of the agent as HTML.

import * as vscode from "vscode";
import type { Item } from "./transcript";

/** Shown is the state of the chat apart from its items. */
export interface Shown {
  mode: string; // empty if there is no session
  working: boolean;
}

/** Message is what the chat tells the extension. */
export type Message =
  | { kind: "ready" | "cancel" | "mode" }
  | { kind: "say"; text: string }
  | { kind: "diff"; call: string; path: string }
  | { kind: "answer"; call: string };

export class Chat implements vscode.WebviewViewProvider {
  private view?: vscode.WebviewView;

  constructor(private readonly root: vscode.Uri, private readonly heard: (m: Message) => void) {}

  resolveWebviewView(view: vscode.WebviewView): void {
    this.view = view;
    const media = vscode.Uri.joinPath(this.root, "media");
    view.webview.options = { enableScripts: true, localResourceRoots: [media] };
    view.webview.onDidReceiveMessage(this.heard);
    view.onDidDispose(() => (this.view = undefined));
    const file = (name: string) => view.webview.asWebviewUri(vscode.Uri.joinPath(media, name));
    view.webview.html = `<!DOCTYPE html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src ${view.webview.cspSource}; script-src ${view.webview.cspSource}">
  <link rel="stylesheet" href="${file("chat.css")}">
  <title>inspan</title>
</head>
<body>
  <main id="items" aria-live="polite"></main>
  <form id="form">
    <textarea id="text" rows="3" placeholder="Ask inspan to do something" aria-label="Message"></textarea>
    <div><button id="mode" type="button" title="Change the mode"></button><button id="send">Send</button></div>
  </form>
  <script src="${file("chat.js")}"></script>
</body>
</html>`;
  }

  /** reset shows another transcript. */
  reset(items: readonly Item[], shown: Shown): void {
    this.post({ kind: "reset", items, shown });
  }

  /** item shows an item that was added or has changed. */
  item(at: number, item: Item): void {
    this.post({ kind: "item", at, item });
  }

  state(shown: Shown): void {
    this.post({ kind: "state", shown });
  }

  private post(message: object): void {
    void this.view?.webview.postMessage(message);
  }
}
