"""Puts its secrets wherever agents put secrets: headers, query, bodies, output. Argument: a secret, again."""

import json
import os
import sys
import urllib.error
import urllib.parse
import urllib.request

from saying import say

openai_key, gemini_key = os.environ["OPENAI_API_KEY"], os.environ["GEMINI_API_KEY"]
password = os.environ["DATABASE_PASSWORD"]


def post(url: str, value: object, headers: dict[str, str]) -> bytes:
    request = urllib.request.Request(url, json.dumps(value).encode(), {"content-type": "application/json", **headers})
    with urllib.request.urlopen(request, timeout=30) as reply:
        return reply.read()


chat = "https://api.openai.com/v1/chat/completions"
auth = {"authorization": f"Bearer {openai_key}", "cookie": f"session={os.environ['SESSION_TOKEN']}"}
prompts = {
    "body": f"connect with {password} please",
    "response": "say it back",
    "split": "say it back in small pieces",
    "gzip": "say it back compressed",
    "error": "say it back in an error",
}
sizes = []
for name, prompt in prompts.items():
    question = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": prompt}], "stream": name == "split"}
    try:
        sizes.append(len(post(chat, question, auth)))
    except urllib.error.HTTPError as error:
        sizes.append(len(error.read()))
gemini = "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:generateContent"
query = urllib.parse.urlencode({"key": gemini_key})
sizes.append(len(post(f"{gemini}?{query}", {"contents": [{"parts": [{"text": password}]}]}, {})))
anthropic = "https://api.anthropic.com/v1/messages"
hello = {"model": "claude-sonnet-5-5", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
who = {"x-api-key": os.environ["ANTHROPIC_API_KEY"], "anthropic-version": "2023-06-01"}
sizes.append(len(post(anthropic, hello, who)))
say(answers=sizes)
print("debug: password is", password)
print("debug: argument is", sys.argv[1:], file=sys.stderr)
