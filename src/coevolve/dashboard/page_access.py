"""Who may see the pages: this machine's browser, and not what another site runs in it."""

import hmac
import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "coevolve-token"
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types coevolve",
    )
)
"""Nothing is loaded from elsewhere, and no script or style inside a page applies."""
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-embedder-policy": "require-corp",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}


@dataclass(frozen=True, slots=True)
class Access:
    """The rules: which names of this server a browser may use, and the secret, if there is one.

    `hosts` are names without port. With a `token`, a request needs it, as a cookie or once in the
    address. A loopback address needs none, because other machines cannot reach it.
    """

    hosts: frozenset[str]
    token: str = field(default="", repr=False)

    def refusal(self, headers: Headers) -> tuple[int, str] | None:
        """Why a request is refused, as a status and a text; None if it is allowed."""
        if _host(headers.get("host", "")) not in self.hosts:
            return 421, "This server does not go by that name. Use the address that it printed."
        origin = headers.get("origin")
        if origin is not None and origin != f"http://{headers.get('host', '')}":
            return 403, "Another site asked for this page."
        site = headers.get("sec-fetch-site", "none")
        opened = headers.get("sec-fetch-mode") == "navigate"
        if site not in ("none", "same-origin") and not opened:
            return 403, "Another site asked for this page."
        return None

    def admits(self, given: Iterable[str | None]) -> bool:
        """Whether one of the given tokens is right, or none is needed."""
        right = self.token.encode()
        return not right or any(hmac.compare_digest((one or "").encode(), right) for one in given)


def _host(header: str) -> str:
    """The name in a Host header, without port.

    >>> _host("localhost:8000"), _host("[::1]:80"), _host("Example.org")
    ('localhost', '::1', 'example.org')
    """
    name = header.strip().lower()
    if name.startswith("["):
        return name[1:].partition("]")[0]
    return name.partition(":")[0]


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> is_loopback("127.0.0.2"), is_loopback("0.0.0.0"), is_loopback("localhost")
    (True, False, True)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class AccessControl:
    """Checks every request, and adds the headers that keep a page to itself.

    Args:
        app: What answers the requests that are allowed.
        access: The rules.
    """

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
                return
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("cache-control", "no-store")
            await send(message)

        answer = self._answer(scope)
        if answer is not None:
            await answer(scope, receive, guarded)
        else:
            await self._app(scope, receive, guarded)

    def _answer(self, scope: Scope) -> Response | None:
        """An answer without the application: a refusal, or the token becoming a cookie."""
        headers = Headers(scope=scope)
        refused = self._access.refusal(headers)
        if refused is not None:
            return PlainTextResponse(f"{refused[1]}\n", refused[0])
        if scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse("These pages can only be read.\n", 405)
        if not self._access.token:
            return None
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = dict(query).get("token")
        if given is not None and self._access.admits([given]):
            rest = urlencode([(name, value) for name, value in query if name != "token"])
            # One slash only: "//host" would lead to another site.
            path = "/" + str(scope["path"]).lstrip("/")
            answer = RedirectResponse(path + (f"?{rest}" if rest else ""), 303)
            answer.set_cookie(COOKIE, given, httponly=True, samesite="strict", path="/")
            return answer
        if not self._access.admits([_cookie(headers)]):
            text = "This page needs a token. Open the address that `coevolve ui` printed.\n"
            return PlainTextResponse(text, 401)
        return None


def _cookie(headers: Headers) -> str | None:
    from starlette.requests import cookie_parser

    return cookie_parser(headers.get("cookie", "")).get(COOKIE)
