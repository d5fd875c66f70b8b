"""Loaded by mitmdump while it records: sends it to the fake provider, and lets event streams through as they come."""

# mypy: disable-error-code="import-not-found"
# mitmproxy lives in an environment of its own.
from mitmproxy import ctx, http
from mitmproxy.addonmanager import Loader


class Recorder:
    def load(self, loader: Loader) -> None:
        loader.add_option("bench_upstream", str, "", "ADDRESS:PORT of the fake provider")

    def http_connect(self, flow: http.HTTPFlow) -> None:
        # Here and not in server_connect: mitmproxy would not find such a connection again, and open one per call.
        host, _, port = ctx.options.bench_upstream.rpartition(":")
        flow.request.host, flow.request.port = host, int(port)

    def responseheaders(self, flow: http.HTTPFlow) -> None:
        if flow.response is not None and "event-stream" in flow.response.headers.get("content-type", ""):
            flow.response.stream = True


addons = [Recorder()]
