// Prints the approved roots as one line of JSON, and another line whenever they change:
//
//     node roots.mjs
//
// It uses the daemon's socket, and only modules that come with Node.

import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import readline from "node:readline";

// Return the paths at which the daemon may listen. They depend on the user id and the home folder,
// and not on an XDG_ variable, because MCP hosts do not pass those on.
function socketPaths() {
  if (process.env.ROOTSD_DIR) return [path.join(process.env.ROOTSD_DIR, "run/pub/mcp.sock")];
  if (process.platform === "darwin") {
    return [path.join(os.homedir(), "Library/Application Support/rootsd/run/pub/mcp.sock")];
  }
  return [
    `/run/user/${process.getuid()}/rootsd/pub/mcp.sock`,
    path.join(os.homedir(), ".local/state/rootsd/run/pub/mcp.sock"),
  ];
}

function follow(onRoots) {
  const socketPath = socketPaths().find((candidate) => fs.existsSync(candidate));
  if (!socketPath) throw new Error("rootsd is not running; try: rootsd up");
  // Another user could listen at this path. Trust only a socket of our own user.
  if (fs.statSync(socketPath).uid !== process.getuid()) throw new Error(`${socketPath} is not ours`);

  const socket = net.createConnection(socketPath);
  let id = 0;
  const ask = (method, params) =>
    socket.write(JSON.stringify({ jsonrpc: "2.0", id: id++, method, params }) + "\n");

  socket.on("connect", () => ask("roots/list"));
  readline.createInterface({ input: socket }).on("line", (line) => {
    const message = JSON.parse(line);
    if (message.method === "notifications/roots/list_changed") ask("roots/list");
    else if (message.result) onRoots(message.result.roots);
    else if (message.error) onRoots([]); // the daemon cannot answer, so treat nothing as approved
  });
  socket.on("error", (error) => fail(error));
  socket.on("close", () => fail(new Error("rootsd closed the connection")));
}

function fail(error) {
  console.error(error.message);
  process.exit(1);
}

try {
  follow((roots) => console.log(JSON.stringify(roots.map(({ name, uri }) => ({ name, uri })))));
} catch (error) {
  fail(error);
}
