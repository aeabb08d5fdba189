// The part of VS Code that the extension calls, without VS Code; its language client speaks to the real server.
"use strict";
const { spawn } = require("node:child_process");
const Module = require("node:module");

const state = { commands: new Map(), providers: new Map(), panels: [], clients: [], configuration: {}, activeTextEditor: undefined };

const disposable = (dispose) => ({ dispose });
const vscode = {
  ViewColumn: { Beside: -2 },
  workspace: {
    getConfiguration: (section) => ({ get: (name) => state.configuration[section + "." + name] }),
    registerTextDocumentContentProvider(scheme, provider) {
      state.providers.set(scheme, provider);
      return disposable(() => state.providers.delete(scheme));
    },
  },
  commands: {
    registerCommand(name, run) {
      state.commands.set(name, run);
      return disposable(() => state.commands.delete(name));
    },
  },
  window: {
    get activeTextEditor() {
      return state.activeTextEditor;
    },
    createWebviewPanel(type, title, column, options) {
      const listeners = [];
      const panel = {
        type, title, options, revealed: 0, told: [],
        webview: { html: "", onDidReceiveMessage: (answer) => (panel.ask = answer), postMessage: (message) => panel.told.push(message) },
        onDidDispose: (listener) => listeners.push(listener),
        reveal: () => ++panel.revealed,
        dispose: () => listeners.splice(0).forEach((listener) => listener()),
      };
      state.panels.push(panel);
      return panel;
    },
  },
};

class LanguageClient {
  constructor(id, name, server, options) {
    Object.assign(this, { server, options, waiting: new Map(), published: [], next: 0, bytes: Buffer.alloc(0) });
    state.clients.push(this);
  }

  async start() {
    this.process = spawn(this.server.run.command, this.server.run.args, { stdio: ["pipe", "pipe", "inherit"] });
    this.exit = new Promise((resolve) => this.process.on("exit", resolve));
    this.process.stdout.on("data", (data) => this.take(data));
    this.capabilities = (await this.sendRequest("initialize", {
      capabilities: {}, initializationOptions: this.options.initializationOptions,
    })).capabilities;
    this.sendNotification("initialized", {});
  }

  take(data) {
    this.bytes = Buffer.concat([this.bytes, data]);
    for (;;) {
      const head = this.bytes.indexOf("\r\n\r\n");
      const length = head < 0 ? NaN : Number(/Content-Length: (\d+)/.exec(this.bytes.subarray(0, head))[1]);
      if (!(this.bytes.length >= head + 4 + length)) return;
      const message = JSON.parse(this.bytes.subarray(head + 4, head + 4 + length));
      this.bytes = this.bytes.subarray(head + 4 + length);
      if (message.id === undefined) this.published.push(message.params);
      else this.waiting.get(message.id)(message.result);
    }
  }

  write(message) {
    const text = JSON.stringify({ jsonrpc: "2.0", ...message });
    this.process.stdin.write(`Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
  }

  sendRequest(method, params) {
    const id = ++this.next;
    this.write({ id, method, params });
    return new Promise((resolve) => this.waiting.set(id, resolve));
  }

  sendNotification(method, params) {
    this.write({ method, params });
  }

  async stop() {
    await this.sendRequest("shutdown");
    this.sendNotification("exit");
    this.exitCode = await this.exit;
  }
}

const load = Module._load;
Module._load = function (name, ...rest) {
  if (name === "vscode") return vscode;
  if (name === "vscode-languageclient/node") return { LanguageClient };
  return load.call(this, name, ...rest);
};

module.exports = state;
