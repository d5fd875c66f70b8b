"""Gemini through google-genai: whole, streamed, and with a tool call."""

from google import genai
from google.genai import types
from saying import say

client = genai.Client()
answer = client.models.generate_content(model="gemini-2.5-flash", contents="Say hello")
say(text=answer.text)
pieces = [
    chunk.text for chunk in client.models.generate_content_stream(model="gemini-2.5-flash", contents="Tell a story")
]
say(chunks=len(pieces), pieces=pieces)
weather = types.FunctionDeclaration(
    name="weather", parameters_json_schema={"type": "object", "properties": {"city": {"type": "string"}}}
)
config = types.GenerateContentConfig(tools=[types.Tool(function_declarations=[weather])])
asked = client.models.generate_content(model="gemini-2.5-flash", contents="Weather in Oslo?", config=config)
say(tools=[(call.name, call.args) for call in asked.function_calls or []])
