// The TypeScript SDK's client at the end of a bridge: uses all that rootsd offers and prints what
// it got, a JSON object a line. Then it waits for one change, prints it, and leaves.
//
//     node client.mjs legacy|auto|2026-07-28 COMMAND [ARGUMENT…]
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const [mode, command, ...args] = process.argv.slice(2);
const approved = 'roots://approved';
const say = (what, value) => console.log(JSON.stringify({ what, value }));

const client = new Client(
  { name: 'typescript', version: '1' },
  { versionNegotiation: { mode: mode.startsWith('2') ? { pin: mode } : mode } },
);
// As hosts do it: the transport hands on only the few variables that it thinks safe, and these.
const env = { HOME: process.env.HOME, ROOTSD_DIR: process.env.ROOTSD_DIR };
await client.connect(new StdioClientTransport({ command, args, env, cwd: '/' }));

const version = client.getNegotiatedProtocolVersion();
say('version', version);
say('tools', (await client.listTools()).tools.map((tool) => tool.name));
const listed = await client.callTool({ name: 'list_roots', arguments: {} });
say('list_roots', listed.content[0].text.split('\n'));
const resolved = await client.callTool({ name: 'resolve_root', arguments: { path: '/src/api/x' } });
say('resolve_root', resolved.structuredContent.relative);
const wish = { path: '/src/new', reason: 'to see', wait_seconds: 0 };
const asked = await client.callTool({ name: 'request_root', arguments: wish });
say('request_root', asked.structuredContent.approved);
say('resources', (await client.listResources()).resources.map((resource) => resource.uri));
const templates = (await client.listResourceTemplates()).resourceTemplates;
say('templates', templates.map((template) => template.uriTemplate));
const ref = { type: 'ref/resource', uri: templates[0].uriTemplate };
const completed = await client.complete({ ref, argument: { name: 'name', value: 'a' } });
say('completion', completed.completion.values);
const read = async () => {
  const { contents } = await client.readResource({ uri: approved });
  return JSON.parse(contents[0].text).roots.map((root) => root.uri);
};
say('read', await read());

const changed = new Promise((resolve) => {
  client.setNotificationHandler('notifications/resources/updated', (notice) =>
    resolve(notice.params.uri),
  );
});
if (version < '2026') {
  await client.subscribeResource({ uri: approved });
} else {
  await client.listen({ resourceSubscriptions: [approved] });
}
say('listening', true);
say('updated', await changed);
say('read', await read());
await client.close();
