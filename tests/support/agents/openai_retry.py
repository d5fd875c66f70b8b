"""Meets a rate limit: once with the SDK's own retry, once without, so that the error itself shows."""

import openai
from saying import say

question = [{"role": "user", "content": "Am I too fast?"}]
answer = openai.OpenAI(max_retries=2).chat.completions.create(model="gpt-4o-mini", messages=question)
say(text=answer.choices[0].message.content)
try:
    openai.OpenAI(max_retries=0).chat.completions.create(model="gpt-4o", messages=question)
except openai.RateLimitError as error:
    say(error=type(error).__name__, status=error.status_code, message=error.message)
