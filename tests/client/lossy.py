"""A proxy that loses every second answer, after the service has given it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx

from tests.waiting import HANGS


@contextmanager
def lossy_proxy(port: int) -> Iterator[tuple[int, list[str]]]:
    """The port to connect to, and the paths whose answers were lost."""
    lost: list[str] = []
    turn, seen = threading.Lock(), [0]

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            kept = ("Authorization", "Content-Type", "Idempotency-Key")
            headers = {name: self.headers[name] for name in kept if name in self.headers}
            url = f"http://127.0.0.1:{port}{self.path}"
            answer = httpx.request(self.command, url, content=body, headers=headers, timeout=HANGS)
            with turn:
                seen[0] += 1
                loses = seen[0] % 2 == 0
                if loses:
                    lost.append(self.path)
            if loses:
                self.close_connection = True
                return
            self.send_response(answer.status_code)
            self.send_header("Content-Type", answer.headers["Content-Type"])
            self.send_header("Content-Length", str(len(answer.content)))
            self.end_headers()
            self.wfile.write(answer.content)

        do_GET = do_POST = _pass  # noqa: N815 # the names that http.server looks for

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1], lost
        finally:
            server.shutdown()
            thread.join()
