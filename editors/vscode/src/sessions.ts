// The list of the sessions of the folder, newest first.

import * as vscode from "vscode";
import type * as acp from "@agentclientprotocol/sdk" with { "resolution-mode": "import" };

export class Sessions implements vscode.TreeDataProvider<acp.SessionInfo> {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.changed.event;

  /** list returns the sessions; it is called when the list is shown or refreshed. */
  constructor(private readonly list: () => Promise<acp.SessionInfo[]>) {}

  refresh(): void {
    this.changed.fire();
  }

  getChildren(): Promise<acp.SessionInfo[]> {
    return this.list();
  }

  getTreeItem(s: acp.SessionInfo): vscode.TreeItem {
    const item = new vscode.TreeItem(s.title || s.sessionId);
    item.id = s.sessionId;
    item.description = s.updatedAt ? new Date(s.updatedAt).toLocaleString() : undefined;
    item.tooltip = s.sessionId;
    item.command = { command: "inspan.open", title: "Open Session", arguments: [s] };
    return item;
  }
}
