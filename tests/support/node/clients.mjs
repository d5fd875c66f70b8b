// The Node clients: `fetch`, `openai` and `anthropic`; one JSON line per answer. The argument names one of them, or `all`.
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";

const say = (fields) => console.log(JSON.stringify(fields));
const question = (who) => [{ role: "user", content: `Hello from Node ${who}` }];

const agents = {
  async fetch() {
    const reply = await fetch("https://api.openai.com/v1/chat/completions", {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${process.env.OPENAI_API_KEY ?? "none"}` },
      body: JSON.stringify({ model: "gpt-4o-mini", messages: question("fetch") }),
    });
    say({ client: "fetch", status: reply.status, text: (await reply.json()).choices[0].message.content });
  },

  async openai() {
    const client = new OpenAI();
    const answer = await client.chat.completions.create({ model: "gpt-4o-mini", messages: question("openai") });
    say({ client: "openai", text: answer.choices[0].message.content });
    const stream = await client.chat.completions.create({
      model: "gpt-4o-mini",
      messages: question("openai stream"),
      stream: true,
    });
    const pieces = [];
    for await (const chunk of stream) pieces.push(chunk.choices[0].delta.content ?? null);
    say({ client: "openai stream", chunks: pieces.length, pieces });
  },

  async anthropic() {
    const client = new Anthropic();
    const wanted = { model: "claude-sonnet-5-5", max_tokens: 100 };
    const answer = await client.messages.create({ ...wanted, messages: question("anthropic") });
    say({ client: "anthropic", text: answer.content[0].text });
    const stream = client.messages.stream({ ...wanted, messages: question("anthropic stream") });
    const kinds = [];
    for await (const event of stream) kinds.push(event.type);
    const final = await stream.finalMessage();
    say({ client: "anthropic stream", events: kinds.length, kinds, text: final.content[0].text });
  },
};

const wanted = process.argv[2] ?? "all";
for (const name of wanted === "all" ? Object.keys(agents) : [wanted]) await agents[name]();
