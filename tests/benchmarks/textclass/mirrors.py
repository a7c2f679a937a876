"""A server on this machine that gives out files, or misbehaves."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def mirror(files: Mapping[str, bytes | int]) -> Iterator[str]:
    """The address of a server with files by path; a number is answered as a status.

    The status 0 promises more bytes than it sends.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = files.get(self.path.lstrip("/"), 404)
            body = found if isinstance(found, bytes) else b"sorry"
            self.send_response(found or 200 if isinstance(found, int) else 200)
            self.send_header("Content-Length", str(len(body) + (100 if found == 0 else 0)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
