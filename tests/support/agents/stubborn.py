"""Makes N calls come what may, tells each answer, and ends with exit code 7. Argument: N."""

import hashlib
import json
import os
import sys
import urllib.request

from saying import say

base = os.environ["OPENAI_BASE_URL"]
for number in range(int(sys.argv[1])):
    question = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": f"question {number}"}]}
    request = urllib.request.Request(
        f"{base}/chat/completions",
        json.dumps(question).encode(),
        {"content-type": "application/json", "authorization": "Bearer none"},
    )
    with urllib.request.urlopen(request, timeout=30) as reply:
        say(number=number, sha256=hashlib.sha256(reply.read()).hexdigest())
sys.exit(7)
