"""Six different questions from six threads at once."""

from concurrent.futures import ThreadPoolExecutor

from openai import OpenAI
from saying import say

client = OpenAI()


def ask(question: str) -> str | None:
    answer = client.chat.completions.create(model="gpt-4o-mini", messages=[{"role": "user", "content": question}])
    return answer.choices[0].message.content


questions = [f"thread {number}" for number in range(6)]
with ThreadPoolExecutor(6) as pool:
    for question, answer in zip(questions, pool.map(ask, questions), strict=True):
        say(question=question, answer=answer)
