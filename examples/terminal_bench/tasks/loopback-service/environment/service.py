"""A service that needs time to warm up and gives out tokens for tickets."""

import hashlib
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

STARTED = time.monotonic()
issued = set()


class Handler(BaseHTTPRequestHandler):
    """Answers /ticket and /token."""

    def do_GET(self):
        """Answer one request."""
        status, text = 404, "unknown path"
        if time.monotonic() - STARTED < 2:
            status, text = 503, "warming up"
        elif self.path == "/ticket":
            issued.add("4172")
            status, text = 200, "4172"
        elif self.path.startswith("/token?ticket="):
            ticket = self.path.partition("=")[2]
            if ticket in issued:
                time.sleep(1)
                name = f"loopback service, ticket {ticket}"
                status, text = 200, hashlib.sha256(name.encode()).hexdigest()[:20]
            else:
                status, text = 403, "unknown ticket"
        self.send_response(status)
        self.end_headers()
        self.wfile.write(text.encode() + b"\n")


ThreadingHTTPServer(("127.0.0.1", 8750), Handler).serve_forever()
