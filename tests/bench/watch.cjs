// Watch a folder with a library of Node, as peers.py does with those of Python:
// node watch.cjs @parcel/watcher|chokidar FOLDER
const [name, folder] = process.argv.slice(2);
const library = require(name);
const begin = performance.now();
const ready = () => console.log(`ready ${(performance.now() - begin) / 1000}`);
const drop = () => undefined;
// As Visual Studio Code uses this library. By default, it asks a watchman that is installed.
const ignore = ["**/.git/objects/**", "**/.git/subtree-cache/**", "**/.hg/store/**"];
const options = { backend: "inotify", ignore };
const watch = {
  "@parcel/watcher": () => library.subscribe(folder, drop, options).then(ready),
  // By default, it follows links, also those that lead in circles.
  chokidar: () =>
    library.watch(folder, { followSymlinks: false }).on("all", drop).on("ready", ready),
};
watch[name]();
process.stdin.resume().on("end", () => process.exit());
