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
    this.asked = new Map(); // What the page waits for, by number.
    this.panel.webview.onDidReceiveMessage((message) => this.answer(message));
    this.server = spawn(ppcc, ["serve", file, ...options], { cwd: path.dirname(file), stdio: ["ignore", "pipe", "pipe"] });
    this.panel.onDidDispose(() => {
      this.server.kill();
      for (const one of this.asked.values()) one.abort();
      onEnd();
    });
  }

  /// Shows the page once the server has told its address, or why there is none.
  async show() {
    try {
      this.root = await this.address();
      this.panel.webview.html = withBridge(await this.text(""));
    } catch (error) {
      this.panel.webview.html = `<pre>${escaped(error.message)}</pre>`;
    }
  }

  /// The page asks here, on the machine of the server, which the editor may show on another.
  async answer({ id, path: asked, gone }) {
    if (gone) return this.asked.get(id)?.abort();
    const waiting = new AbortController();
    this.asked.set(id, waiting);
    try {
      this.panel.webview.postMessage({ id, text: await this.text(asked, waiting.signal) });
    } catch (error) {
      if (!waiting.signal.aborted) this.panel.webview.postMessage({ id, error: error.message });
    }
    this.asked.delete(id);
  }

  async text(asked, signal) {
    const response = await fetch(this.root + asked, { signal });
    if (!response.ok) throw new Error(response.statusText);
    return response.text();
  }

  address() {
    return new Promise((resolve, reject) => {
      let errorText = "";
      this.server.stderr.on("data", (text) => (errorText += text));
      this.server.on("error", reject);
      this.server.on("close", () => reject(new Error(errorText || "ppcc serve has ended")));
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

/// In the panel: asks the extension for what the page would fetch.
function bridge() {
  const editor = acquireVsCodeApi(), open = new Map();
  let last = 0;
  window.ask = (path, signal) =>
    new Promise((resolve, reject) => {
      const id = ++last;
      open.set(id, ({ text, error }) => (error ? reject(new Error(error)) : resolve(text)));
      signal.addEventListener("abort", () => {
        if (!open.delete(id)) return;
        editor.postMessage({ id, gone: true });
        reject(new DOMException("", "AbortError"));
      });
      editor.postMessage({ id, path });
    });
  window.addEventListener("message", ({ data }) => {
    open.get(data.id)?.(data);
    open.delete(data.id);
  });
}

/// The page of `ppcc serve`, which may fetch nothing.
function withBridge(page) {
  return page.replace(
    '<meta charset="utf-8">',
    `$&
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'">
<style>body { padding: 0; }</style>
<script>(${bridge})();</script>`,
  );
}

module.exports = { Timeline };
