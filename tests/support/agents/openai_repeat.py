"""Asks the very same thing four times, as pollers and doubters do."""

from openai import OpenAI
from saying import say

client = OpenAI()
for _turn in range(4):
    answer = client.chat.completions.create(
        model="gpt-4o-mini", messages=[{"role": "user", "content": "Is it done yet?"}]
    )
    say(text=answer.choices[0].message.content)
