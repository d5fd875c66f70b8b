"""Fetches one path with requests, through its decoding, and tells length and hash."""

import hashlib
import os
import sys

import requests
from saying import say

reply = requests.post(
    "https://api.openai.com" + sys.argv[1],
    json={"model": "gpt-4o-mini", "messages": [{"role": "user", "content": sys.argv[1]}]},
    headers={"authorization": f"Bearer {os.environ.get('OPENAI_API_KEY', 'none')}"},
    timeout=60,
)
coding = reply.headers.get("content-encoding")
say(status=reply.status_code, size=len(reply.content), sha256=hashlib.sha256(reply.content).hexdigest(), coding=coding)
