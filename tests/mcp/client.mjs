// The protocol's own client, against h5i mcp in a repository of its own: h5i, repository and home are its three arguments.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import assert from "node:assert/strict";

const [h5i, repository, home] = process.argv.slice(2);
const transport = new StdioClientTransport({ command: h5i, args: ["mcp"], cwd: repository, env: { HOME: home, PATH: process.env.PATH } });
const client = new Client({ name: "test", version: "1" });
await client.connect(transport);
assert.equal(client.getServerVersion().name, "h5i");

const { tools } = await client.listTools();
assert.deepEqual(tools.map((t) => t.name).sort(), ["box_compare", "box_create", "box_diff", "box_inspect", "box_list", "box_propose", "box_run", "box_status"]);

const call = async (name, args) => {
  const answer = await client.callTool({ name, arguments: args });
  assert.equal(answer.content[0].type, "text", name);
  return answer;
};
const good = async (name, args) => {
  const answer = await call(name, args);
  assert.ok(!answer.isError, `${name}: ${answer.content[0].text}`);
  return answer;
};
await good("box_create", { name: "one", isolation: "process" });
await good("box_create", { name: "two", isolation: "process" });
const ran = await good("box_run", { box: "one", command: ["/bin/sh", "-c", "echo said; echo new > made"] });
assert.equal(ran.structuredContent.exit_status, 0);
assert.match(ran.content[0].text, /^\| said$/m);
await good("box_status", { box: "one" });
assert.match((await good("box_diff", { box: "one" })).content[0].text, /^\| \+new$/m);
await good("box_inspect", { box: "one" });
await good("box_compare", { box: "one", other: "two" });
assert.equal((await good("box_list", {})).structuredContent.boxes.length, 2);
await good("box_propose", { box: "one", message: "by a client" });
assert.ok((await call("box_status", { box: "none" })).isError);
await assert.rejects(client.callTool({ name: "box_apply", arguments: { box: "one" } }));
await client.close();
console.log("each tool was listed and called");
