"""Who may see the pages: this machine's browser, and not what another site runs in it."""

import hmac
import ipaddress
import logging
import re
import traceback
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from coevolve.formatting import visible

_LOG = logging.getLogger(__name__)
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
    address; then any numeric address is a name too, because no other site can go by a number. A
    loopback address needs no token, because other machines cannot reach it.

    >>> Access(frozenset({"localhost"})).refusal(Headers({"host": "attack.example"}))[0]
    421
    """

    hosts: frozenset[str]
    token: str = field(default="", repr=False)

    def refusal(self, headers: Headers) -> tuple[int, str] | None:
        """Why a request is refused, as a status and a text; None if it is allowed."""
        name = _host(headers.get("host", ""))
        if name not in self.hosts and not (self.token and _is_number(name)):
            return 421, "This server does not go by that name. Use the address that it printed."
        origin = headers.get("origin")
        if origin is not None and origin != f"http://{headers.get('host', '')}":
            return 403, "Another site asked for this page."
        site = headers.get("sec-fetch-site", "none")
        # A link may lead here from anywhere; a frame, an image or a script may not.
        opened = (
            headers.get("sec-fetch-mode") == "navigate"
            and headers.get("sec-fetch-dest", "document") == "document"
        )
        if site not in ("none", "same-origin") and not opened:
            return 403, "Another site asked for this page."
        return None

    def knows(self, given: str) -> bool:
        """Whether a token is right; the answer takes as long for any wrong one."""
        return _same(given, self.token)

    @property
    def cookie(self) -> tuple[str, str]:
        """Name and value of the cookie that stands for the token.

        Servers on other ports of this machine get it too: therefore it does not have the token,
        and its name differs between servers with different tokens.
        """
        name, value = (
            hmac.new(self.token.encode(), use, "sha256").hexdigest() for use in (b"name", b"value")
        )
        return f"coevolve-{name[:12]}", value


def _same(given: str, right: str) -> bool:
    return hmac.compare_digest(
        given.encode("utf-8", "surrogatepass"), right.encode("utf-8", "surrogatepass")
    )


def _host(header: str) -> str:
    """The name in a Host header, without port; empty if it is not valid.

    >>> _host("localhost:8000"), _host("[::1]:80"), _host("Example.org"), _host("[::1].org")
    ('localhost', '::1', 'example.org', '')
    """
    found = _HOST.fullmatch(header.strip().lower())
    return "" if found is None else found[1] or found[2]


_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\s:\[\]@/]+))(?::[0-9]{1,5})?")


def _is_number(name: str) -> bool:
    """Whether a name is an address of four or eight numbers."""
    try:
        return bool(ipaddress.ip_address(name))
    except ValueError:
        return False


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
            await self._shown(scope, receive, guarded)

    async def _shown(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The answer of the application; a defect in it is logged as harmless text."""
        try:
            await self._app(scope, receive, send)
        except Exception as error:  # the application has answered with status 500
            text = "".join(traceback.format_exception(error))
            _LOG.error("A page failed: %s", visible(text))

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
        cookie, value = self._access.cookie
        if given is not None and self._access.knows(given):
            rest = urlencode([one for one in query if one[0] != "token"])
            # One slash only: "//host" would lead to another site.
            path = "/" + quote(str(scope["path"]).lstrip("/"))
            answer = RedirectResponse(path + (f"?{rest}" if rest else ""), 303)
            answer.set_cookie(cookie, value, httponly=True, samesite="strict", path="/")
            return answer
        if not _same(cookie_parser(headers.get("cookie", "")).get(cookie, ""), value):
            text = "This page needs a token. Open the address that `coevolve ui` printed.\n"
            return PlainTextResponse(text, 401)
        return None
