// The page of `ppcc serve` in a panel: the server lives as long as the panel does.
"use strict";
const { spawn } = require("node:child_process");
const path = require("node:path");
const readline = require("node:readline");
const vscode = require("vscode");

class Timeline {
  /// `onEnd` is called when the panel is closed.
  constructor(ppcc, file, options, onEnd) {
    this.panel = vscode.window.createWebviewPanel(
      "ppcc.timeline",
      path.basename(file) + ": timeline",
      { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true },
      { enableScripts: true, retainContextWhenHidden: true },
    );
    this.server = spawn(ppcc, ["serve", file, ...options], { cwd: path.dirname(file), stdio: ["ignore", "pipe", "pipe"] });
    this.panel.onDidDispose(() => {
      this.server.kill();
      onEnd();
    });
  }

  /// Shows the page once the server has told its address, or why there is none.
  async show() {
    try {
      const address = await this.address();
      const outside = await vscode.env.asExternalUri(vscode.Uri.parse(address));
      this.panel.webview.html = page(outside.toString(true));
    } catch (error) {
      this.panel.webview.html = `<pre>${escaped(error.message)}</pre>`;
    }
  }

  address() {
    return new Promise((resolve, reject) => {
      let complaint = "";
      this.server.stderr.on("data", (text) => (complaint += text));
      this.server.on("error", reject);
      this.server.on("close", () => reject(new Error(complaint || "ppcc serve has ended")));
      readline.createInterface({ input: this.server.stdout }).on("line", (line) => {
        const found = /^serving .* at (http:\/\/127\.0\.0\.1:\d+\/[0-9a-f]+\/)$/.exec(line);
        if (found) resolve(found[1]);
      });
    });
  }

  reveal() {
    this.panel.reveal(vscode.ViewColumn.Beside, true);
  }

  dispose() {
    this.panel.dispose();
  }
}

const escaped = (text) => text.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);

function page(address) {
  const origin = new URL(address).origin;
  return `<!doctype html>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; frame-src ${origin}; style-src 'unsafe-inline'">
<style>html, body { height: 100%; margin: 0; padding: 0; background: #fff; } iframe { width: 100%; height: 100%; border: 0; }</style>
<iframe title="Timeline" src="${escaped(address)}"></iframe>`;
}

module.exports = { Timeline };
