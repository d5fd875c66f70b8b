"""Five different questions and three times the same one, all at once on one event loop."""

import asyncio

from openai import AsyncOpenAI
from saying import say


async def ask(client: AsyncOpenAI, question: str) -> str:
    answer = await client.chat.completions.create(model="gpt-4o-mini", messages=[{"role": "user", "content": question}])
    return answer.choices[0].message.content or ""


async def main() -> None:
    async with AsyncOpenAI() as client:
        questions = [f"question {number}" for number in range(5)] + ["the same question"] * 3
        answers = await asyncio.gather(*(ask(client, question) for question in questions))
    for question, answer in zip(questions[:5], answers[:5], strict=True):
        say(question=question, answer=answer)
    # Which of three equal questions gets which answer is nobody's promise; that all three come is.
    say(question="the same question", answers=sorted(answers[5:]))


asyncio.run(main())
