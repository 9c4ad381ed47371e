// Plays one scene through the gateway at GATEWAY, and prints what came of each
// call as a line of JSON. The Go test beside it reads the lines.
import { background, newClient, refusal } from "./client.mjs";

let attempts = 0;
const counted = {
  fetch: (...args) => {
    attempts++;
    return fetch(...args);
  },
};
const client = newClient(process.env.GATEWAY, process.env.KEY, counted);
const refused = newClient(process.env.GATEWAY, process.env.REFUSED_KEY, counted);

const ask = (model, more) => ({
  model,
  max_completion_tokens: 100,
  messages: [{ role: "user", content: "hello" }],
  ...more,
});

// step makes one call and prints what came of it.
async function step(name, call) {
  attempts = 0;
  const began = performance.now();
  const line = { name };
  try {
    Object.assign(line, await call());
  } catch (err) {
    Object.assign(line, { status: err.status ?? 0, error: String(err), refusal: refusal(err) });
  }
  console.log(JSON.stringify({ ...line, attempts, ms: performance.now() - began }));
}

const complete = async (by, model, options, more) => {
  const answer = await by.chat.completions.create(ask(model, more), options);
  return { text: answer.choices[0].message.content };
};

// Both fit into the budget only if the second comes after the first is settled.
const large = { max_completion_tokens: 20000 };
await step("call", () => complete(client, "model-a", {}, large));
await step("settled", () => complete(client, "model-a", {}, large));
await step("stream", async () => {
  const stream = await client.chat.completions.create(
    ask("model-b", { stream: true, stream_options: { include_usage: true } }),
  );
  let text = "", first, last;
  for await (const chunk of stream) {
    last = performance.now();
    first ??= last;
    text += chunk.choices[0]?.delta?.content ?? "";
  }
  return { text, spread: last - first };
});
await step("background", () => complete(client, "model-c", background));
await step("refused", () => complete(client, "model-c", background));
await step("later", () => complete(client, "model-d"));
await step("key", () => complete(refused, "model-e"));
await step("another model", () => complete(refused, "model-f"));
