"""One package per API: read its bodies, change its requests, make up its answers, write its conversations."""
