// An agent of the Vercel AI SDK that reads a note; its prompt holds the time and an id.
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { anthropic } from "@ai-sdk/anthropic";
import { stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const { textStream } = streamText({
  model: anthropic("claude-sonnet-4-5"),
  system: `Session ${randomUUID()}, started ${new Date().toString()} in ${process.cwd()}.`,
  prompt: "Who keeps the light?",
  tools: {
    read_note: tool({
      description: "Read a note",
      inputSchema: z.object({ path: z.string() }),
      execute: async ({ path }) => readFileSync(path, "utf8"),
    }),
  },
  stopWhen: stepCountIs(4),
});
for await (const piece of textStream) process.stdout.write(piece);
console.log();
