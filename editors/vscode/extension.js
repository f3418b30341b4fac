// Starts `coset language-server` for rule files. All that is said of them comes from there.
"use strict";

const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

function serverOptions() {
  const settings = vscode.workspace.getConfiguration("coset");
  const native = settings.get("native").flatMap((module) => ["--native", module]);
  const args = ["language-server", "--time-limit", String(settings.get("timeLimit")), ...native];
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath;
  return { command: settings.get("command"), args, options: { cwd: folder } };
}

async function start() {
  client = new LanguageClient("coset", "coset", serverOptions(), {
    documentSelector: [{ language: "coset-rules" }],
  });
  try {
    await client.start();
  } catch (error) {
    const help = "Is `coset` installed with its extra `editor`? The setting coset.command names it.";
    vscode.window.showErrorMessage(`The language server of coset did not start: ${error.message}. ${help}`);
  }
}

async function stop() {
  const running = client;
  client = undefined;
  if (running?.isRunning()) {
    await running.stop();
  }
}

async function activate(context) {
  const restart = async () => {
    await stop();
    await start();
  };
  context.subscriptions.push(
    vscode.commands.registerCommand("coset.restart", restart),
    vscode.workspace.onDidChangeConfiguration((event) => (event.affectsConfiguration("coset") ? restart() : undefined)),
  );
  await start();
}

module.exports = { activate, deactivate: stop };
