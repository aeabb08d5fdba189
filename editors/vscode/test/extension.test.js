// The extension's own code, with the real ppcc and a stand-in for VS Code: PPCC names the compiler.
"use strict";
const assert = require("node:assert");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const test = require("node:test");
const state = require("./vscode-stub");
const extension = require("../extension");

const manifest = require("../package.json");
const ppcc = process.env.PPCC || "ppcc";
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "ppcc-vscode-"));
const file = path.join(folder, "one.pp");
const text = (kind) => `// ppcc: -D P=3
schedule one(P: int = 2) {
  ranks P; microbatches 4; placement linear;
  on rank r { repeat 4 { ${kind}; } repeat 4 { B; } }
}
`;
const context = { subscriptions: [] };
const uri = (fsPath) => ({ scheme: "file", fsPath, toString: () => "file://" + fsPath });
const until = async (holds) => {
  for (const end = Date.now() + 60000; !(await holds()); await new Promise((go) => setTimeout(go, 10)))
    assert(Date.now() < end, "not within a minute: " + holds);
};
const isAlive = (pid) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

test.before(() => {
  fs.writeFileSync(file, text("F"));
  for (const [name, of] of Object.entries(manifest.contributes.configuration.properties)) state.configuration[name] = of.default;
  state.configuration["ppcc.path"] = ppcc;
});
test.after(() => fs.rmSync(folder, { recursive: true }));

test("what the manifest names is there", async () => {
  await extension.activate(context);
  for (const { command } of manifest.contributes.commands) assert(state.commands.has(command), command);
  for (const { path: of } of manifest.contributes.grammars) assert(fs.existsSync(path.join(__dirname, "..", of)));
  for (const { configuration } of manifest.contributes.languages) assert(fs.existsSync(path.join(__dirname, "..", configuration)));
  const [client] = state.clients;
  assert.deepEqual(client.options.documentSelector, [{ language: manifest.contributes.languages[0].id }]);
  assert(client.capabilities.renameProvider && client.capabilities.semanticTokensProvider);
});

test("errors come as one types", async () => {
  const [client] = state.clients;
  const document = { uri: "file://" + file, languageId: "pp", version: 1, text: text("G") };
  client.sendNotification("textDocument/didOpen", { textDocument: document });
  await until(() => client.published.some((one) => one.version === 1));
  assert.deepEqual(client.published.find((one) => one.version === 1).diagnostics.map((one) => one.code), ["E0303"]);
  client.sendNotification("textDocument/didChange", {
    textDocument: { uri: document.uri, version: 2 }, contentChanges: [{ text: text("F") }],
  });
  await until(() => client.published.some((one) => one.version === 2));
  assert.deepEqual(client.published.find((one) => one.version === 2).diagnostics, []);
});

test("a file of the library can be read", async () => {
  const provider = state.providers.get("ppcc");
  const std = await provider.provideTextDocumentContent({ toString: () => "ppcc://library/std.pp" });
  assert.match(std, /rule recompute/);
});

test("the timeline is in a panel, with the options of the file", async () => {
  const run = state.commands.get("ppcc.timeline");
  await run(); // Nothing is open.
  assert.equal(state.panels.length, 0);
  state.activeTextEditor = { document: { languageId: "pp", uri: uri(file), getText: () => text("F") } };
  await run();
  const [panel] = state.panels;
  assert.match(panel.webview.html, /<iframe title="Timeline">[^]*pollBuilds\(\)/);
  assert.match(panel.webview.html, /content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'"[^]*window\.ask = /);
  let asked = 0;
  const ask = async (path) => {
    panel.ask({ id: ++asked, path });
    const id = asked, found = () => panel.told.find((one) => one.id === id);
    await until(found);
    return found();
  };
  assert.match((await ask("view")).text, /<script type="application\/json">/);
  assert.match((await ask("other")).error, /Refused/);
  const built = JSON.parse((await ask("state")).text);
  assert.deepEqual([built.good, built.params[0].value], [true, "3"]);
  panel.ask({ id: 99, path: "state?after=" + built.number });
  panel.ask({ id: 99, gone: true });
  fs.writeFileSync(file, text("G"));
  const broken = JSON.parse((await ask("state?after=" + built.number)).text);
  assert.match(broken.messages, /E0303/);

  await run(); // The same panel.
  assert.deepEqual([state.panels.length, panel.revealed], [1, 1]);
  panel.dispose();
  await until(async () => /fetch failed/.test((await ask("state")).error));
  assert(!panel.told.some((one) => one.id === 99));
  await run();
  assert.equal(state.panels.length, 2);
  state.configuration["ppcc.path"] = path.join(folder, "none");
  state.panels[1].dispose();
  await run();
  assert.match(state.panels[2].webview.html, /ENOENT/);
});

test("nothing is left of it", async () => {
  const [client] = state.clients;
  const pid = client.process.pid;
  context.subscriptions.forEach((one) => one.dispose());
  await extension.deactivate();
  assert.equal(client.exitCode, 0);
  assert(!isAlive(pid));
  assert.equal(state.commands.size + state.providers.size, 0);
});
