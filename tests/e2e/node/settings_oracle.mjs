// Read settings texts as other programs do: JSON lines of {language, text} in, values out.
import { createInterface } from "node:readline";
import { parse as parseJson } from "jsonc-parser";
import { parse as parseYaml } from "yaml";

function values({ language, text }) {
  text = text.replace(/^\ufeff/, "");
  if (language === "yaml") return parseYaml(text) ?? {};
  const errors = [];
  const found = parseJson(text, errors, { allowTrailingComma: true });
  if (found === undefined) return {};
  if (errors.length > 0) throw new Error(JSON.stringify(errors));
  return found;
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(values(JSON.parse(line)))}\n`);
}
