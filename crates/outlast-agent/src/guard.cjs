// Loaded into an agent's CLI before its own code (node --require). The CLI merges settings of the repository over those
// it was started with: they may move its requests through a proxy, start hooks and servers, or send telemetry. No option
// switches that off, so for this process they are made to look absent: the repository's settings folder and every .env
// file, for the synchronous calls by which settings are loaded. The agent's tools read and write files by other
// calls, and programs it starts do not load this file.
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const { fileURLToPath } = require("node:url");
const { syncBuiltinESMExports } = require("node:module");

const settings = $SETTINGS; // the repository's settings folder
const listed = $LISTED; // folders that look absent to whoever lists them

const below = (file, folder) => file === folder || file.startsWith(folder + path.sep);

const absolute = (file) => {
  if (file instanceof URL) return fileURLToPath(file);
  if (typeof file === "string" || Buffer.isBuffer(file)) return path.resolve(String(file));
  return undefined;
};

const hidden = (file) => {
  const full = absolute(file);
  return full !== undefined && (path.basename(full) === ".env" || below(full, settings));
};

const absent = (call, file) =>
  Object.assign(new Error(`ENOENT: no such file or directory, ${call} '${file}'`), {
    errno: -2,
    code: "ENOENT",
    syscall: call,
    path: String(file),
  });

for (const name of ["accessSync", "lstatSync", "openSync", "opendirSync", "readFileSync", "readdirSync", "realpathSync", "statSync"]) {
  const original = fs[name];
  const guarded = function (file, ...rest) {
    if (!hidden(file)) return original.call(this, file, ...rest);
    if (rest[0]?.throwIfNoEntry === false) return undefined;
    throw absent(name.replace("Sync", ""), file);
  };
  fs[name] = Object.assign(guarded, original);
}

const exists = fs.existsSync;
fs.existsSync = (file) => !hidden(file) && exists(file);

// Skills, agents and commands of the repository are found by listing their folders.
const list = fs.promises.readdir;
fs.promises.readdir = function (folder, ...rest) {
  const full = absolute(folder);
  if (full !== undefined && listed.some((name) => below(full, name))) {
    return Promise.reject(absent("scandir", folder));
  }
  return list.call(this, folder, ...rest);
};

syncBuiltinESMExports();
