// An agent of the OpenAI Agents SDK for JavaScript that reads a note.
import { readFileSync } from "node:fs";
import { Agent, run, tool } from "@openai/agents";
import { z } from "zod";

const readNote = tool({
  name: "read_note",
  description: "Read a note",
  parameters: z.object({ path: z.string() }),
  execute: async ({ path }) => readFileSync(path, "utf8"),
});
const keeper = new Agent({
  name: "Keeper",
  instructions: `You answer from notes in ${process.cwd()}. It is ${new Date().toISOString()}.`,
  tools: [readNote],
});
const result = await run(keeper, "Who keeps the light?");
console.log(result.finalOutput);
