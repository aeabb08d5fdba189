// The language server of ppcc in VS Code, the files of its library, and the timeline in a panel.
"use strict";
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");
const { Timeline } = require("./timeline");

let client;

const setting = (name) => vscode.workspace.getConfiguration("ppcc").get(name);

async function activate(context) {
  const run = { command: setting("path"), args: ["lsp"] };
  client = new LanguageClient("ppcc", "ppcc", { run, debug: run }, {
    documentSelector: [{ language: "pp" }],
    initializationOptions: { options: setting("options") },
    synchronize: { configurationSection: "ppcc" },
  });
  const timelines = new Map(); // By the paths of their files.
  context.subscriptions.push(
    vscode.workspace.registerTextDocumentContentProvider("ppcc", {
      provideTextDocumentContent: (uri) => client.sendRequest("ppcc/text", { uri: uri.toString() }),
    }),
    vscode.commands.registerCommand("ppcc.timeline", async () => {
      const document = vscode.window.activeTextEditor?.document;
      if (document?.languageId !== "pp" || document.uri.scheme !== "file") return;
      const path = document.uri.fsPath;
      if (timelines.has(path)) return timelines.get(path).reveal();
      const timeline = new Timeline(setting("path"), path, optionsFor(document.getText()), () => timelines.delete(path));
      timelines.set(path, timeline);
      await timeline.show();
    }),
    { dispose: () => [...timelines.values()].forEach((timeline) => timeline.dispose()) },
  );
  await client.start();
}

/// Those of the line `// ppcc: ...`, else those of the settings.
function optionsFor(text) {
  const lines = [...text.matchAll(/^\/\/ ppcc:(.*)$/gm)].map((match) => match[1]);
  return lines.length ? lines.join(" ").split(/\s+/).filter(Boolean) : setting("options");
}

function deactivate() {
  return client?.stop();
}

module.exports = { activate, deactivate };
