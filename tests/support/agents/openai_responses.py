"""The Responses API and embeddings."""

from openai import OpenAI
from saying import say

client = OpenAI()
answer = client.responses.create(model="gpt-4o-mini", input="Say hello")
say(text=answer.output_text, id=answer.id)
vectors = client.embeddings.create(model="text-embedding-3-small", input=["red", "yellow"])
say(vectors=[row.embedding for row in vectors.data])
