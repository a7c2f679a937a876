"""What the scripted model does on each task: moves that depend on the terminal's output.

A play is a generator. It gets the first prompt, yields moves and receives what the harness shows
after each. When it ends, the model says that the task is complete.
"""

import json
import re
from collections.abc import Callable, Generator
from dataclasses import dataclass

LONG = 35.0  # seconds that the impatient model waits, although no command takes more than 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One answer of the model: commands with durations, or completion."""

    thought: str
    commands: tuple[tuple[str, float], ...] = ()
    complete: bool = False
    slip: str = ""  # "chatter": text around the answer; "broken": invalid JSON


DONE = Move(thought="Everything is done.", complete=True)
type Play = Callable[[str], Generator[Move, str, None]]


def type_in(thought: str, *lines: str, wait: float = 1.0, slip: str = "") -> Move:
    """Return a move that types lines, each with the same wait."""
    return Move(thought=thought, commands=tuple((f"{x}\n", wait) for x in lines), slip=slip)


def write(path: str, text: str) -> str:
    """Return a shell command that writes a file."""
    return f"cat > {path} <<'END'\n{text.strip()}\nEND"


def script(text: str) -> str:
    """Return a shell command that runs a Python program."""
    return f"python3 - <<'END'\n{text.strip()}\nEND"


def look_for(pattern: str, move: Move, looks: int = 4) -> Generator[Move, str, re.Match | None]:
    """Make a move, then wait until its output contains the pattern."""
    text = yield move
    for _ in range(looks):
        if found := re.search(pattern, text, re.MULTILINE):
            return found
        text += yield Move(thought="I do not see the output yet.", commands=(("", 2.0),))
    return re.search(pattern, text, re.MULTILINE)


def asks_for_check(text: str) -> bool:
    """Return whether the harness asks for more than a plain confirmation."""
    return bool(re.search(r"(?i)checklist|(each|every) requirement|verify|edge case", text))


# Competent


def sort_downloads(prompt: str) -> Generator[Move, str, None]:
    """One loop over the files; the first answer has text around the JSON."""
    yield type_in(
        "I move each file into the folder of its extension.",
        'cd /app/downloads && for f in *; do case "$f" in *.*) e="${f##*.}" ;; *) e=none ;; esac; '
        'd="/app/sorted/$(echo "$e" | tr A-Z a-z)"; mkdir -p "$d"; mv -- "$f" "$d/"; done',
        "cd /app && find sorted downloads",
        slip="chatter",
    )


def sales_totals(prompt: str) -> Generator[Move, str, None]:
    """A one-liner with wrong quotes, then a proper program."""
    sums = "t[r['region']] = t.get(r['region'], 0) + int(r['units']) * float(r['price'])"
    wrong = yield from look_for(
        r"\w+Error",
        type_in(
            "I add up the revenue with Python.",
            f"python3 -c 'import csv; t={{}}; [{sums} for r in csv.reader(open('sales.csv'))]'",
        ),
    )
    if wrong:
        yield type_in(
            "The quotes were wrong. I use a here-document.",
            script(
                "import csv, json\nt = {}\n"
                "for r in csv.DictReader(open('/app/sales.csv', newline='')):\n"
                f"    {sums}\n"
                "json.dump({k: round(v, 2) for k, v in t.items()}, open('/app/totals.json', 'w'))"
            ),
            "cat /app/totals.json",
        )


def git_lost_commit(prompt: str) -> Generator[Move, str, None]:
    """The log of HEAD's moves still names the commit."""
    found = yield from look_for(
        r"^([0-9a-f]{7,}) .*: commit: Add price table\s*$",
        type_in("The reflog may name the lost commit.", "cd /app/site && git --no-pager reflog"),
    )
    if found:
        yield type_in(
            "I found the commit.", f"git branch rescue {found[1]}", "git --no-pager branch -v"
        )


def sqlite_orders(prompt: str) -> Generator[Move, str, None]:
    """Repair the row, then query; the first answer is invalid JSON."""
    query = (
        "SELECT c.name, SUM(i.quantity * i.cents) AS t FROM customers c JOIN orders o ON "
        "o.customer_id = c.id JOIN items i ON i.order_id = o.id WHERE o.status = 'paid' "
        "GROUP BY c.id ORDER BY t DESC LIMIT 3"
    )
    extra = "SELECT MAX(rowid) FROM items WHERE order_id = 17 AND product = 'kettle'"
    repair = f'sqlite3 /app/shop.db "DELETE FROM items WHERE rowid = ({extra})"'
    seen = yield type_in("I delete the doubled row.", repair, slip="broken")
    if re.search(r"(?i)parsing error|not as defined|invalid json", seen):
        yield type_in("I repeat the command as valid JSON.", repair)
    yield type_in(
        "Now I write the report.",
        "echo name,total_cents > /app/top.csv",
        f'sqlite3 -separator , /app/shop.db "{query}" >> /app/top.csv',
        "cat /app/top.csv",
    )


def permission_audit(prompt: str) -> Generator[Move, str, None]:
    """Folders first, then files by their first two characters, then keys."""
    start = '"$(head -c 2 "$1")"'
    test = f'if [ {start} = "#!" ]; then chmod 755 "$1"; else chmod 644 "$1"; fi'
    yield type_in(
        "I set the modes with find.",
        "cd /app/deploy && find . -type d -exec chmod 755 {} +",
        f"find . -type f -exec sh -c '{test}' sh {{}} \\;",
        "find . -type f \\( -name '*.key' -o -name '*.pem' \\) -exec chmod 600 {} +",
        "ls -lR",
    )


def broken_backup(prompt: str) -> Generator[Move, str, None]:
    """Read the script, write it anew, try it."""
    yield type_in("I read the script first.", "cat /app/backup.sh")
    yield type_in(
        "Unquoted names, a wrong status and text on standard output. I write it anew.",
        write(
            "/app/backup.sh",
            '#!/bin/bash\nif [ ! -d "$1" ]; then echo "no such folder: $1" >&2; exit 2; fi\n'
            'mkdir -p "$2" && target=$(cd "$2" && pwd) && cd "$1" || exit 1\ncount=0\n'
            "while IFS= read -r -d '' file; do\n"
            '  mkdir -p "$target/$(dirname "$file")"\n'
            '  cp "$file" "$target/$file" && count=$((count + 1))\n'
            "done < <(find . -type f -name '*.conf' -print0)\necho \"$count\"",
        ),
        "/app/backup.sh /app/example /tmp/try && find /tmp/try -type f",
    )


def archive_rescue(prompt: str) -> Generator[Move, str, None]:
    """Unpack all and remove what tar reports as damaged."""
    yield type_in(
        "I unpack the bundle and test each archive.",
        "mkdir -p /tmp/parts /app/out && tar -xf /app/bundle.tar -C /tmp/parts",
        ": > /app/damaged.txt",
        'for a in $(find /tmp/parts -name "*.tar.gz" | sort); do n=$(basename $a .tar.gz); '
        "mkdir /app/out/$n; tar -xzf $a -C /app/out/$n || "
        "{ rm -r /app/out/$n; echo $n.tar.gz >> /app/damaged.txt; }; done",
        "cat /app/damaged.txt; ls /app/out",
    )


def vault_passphrase(prompt: str) -> Generator[Move, str, None]:
    """Find the largest file, start the program, type the answer once."""
    name = yield from look_for(r"(\w+)\.dat", type_in("Which is largest?", "ls -1S /app/museum"))
    if name is None:
        return
    start = type_in("I start the program.", "python3 /app/vault.py", wait=2.0)
    seen = yield from look_for(r"destroyed|empty|Passphrase: *$", start)
    if seen is None or "Passphrase" not in seen[0]:
        return
    word = name[1][::-1]
    secret = yield from look_for(
        r"The secret is: (.+)", type_in("It asks for the passphrase.", word, wait=2.0)
    )
    if secret:
        yield type_in("I save the secret.", f"echo '{secret[1].strip()}' > /app/secret.txt")


# Impatient


def slow_build(prompt: str) -> Generator[Move, str, None]:
    """A build, a check and a package, each with a long wait."""
    yield type_in("I read the makefile.", "cd /app/book && cat Makefile")
    yield type_in(
        "A variable is misspelt. I fix it and build; builds are slow.",
        "sed -i 's/(CHAPTER)/(CHAPTERS)/' Makefile && make",
        wait=LONG,
    )
    yield type_in("Now the check, which may be slow as well.", "make check", wait=LONG)
    yield type_in("Now the package.", "make package", wait=LONG)


def loopback_service(prompt: str) -> Generator[Move, str, None]:
    """Start, ask for a ticket until there is one, ask for the token."""
    read = "import urllib.request as u; print('got', u.urlopen('{}').read().decode())"
    get = f'python3 -c "{read}"'
    yield type_in(
        "I start the service and give it time to warm up.",
        "python3 /app/service.py > /tmp/service.log 2>&1 &",
        wait=LONG,
    )
    url = "http://127.0.0.1:8750"
    for _ in range(6):
        seen = yield type_in("I get a ticket.", get.format(url + "/ticket"), wait=LONG)
        if ticket := re.search(r"^got (\d+)", seen, re.MULTILINE):
            break
    else:
        return
    address = f"{url}/token?ticket={ticket[1]}"
    seen = yield type_in("I get the token.", get.format(address), wait=LONG)
    if token := re.search(r"^got ([0-9a-f]{20})", seen, re.MULTILINE):
        yield type_in("I save it.", f"echo {token[1]} > /app/token.txt")


def queue_worker(prompt: str) -> Generator[Move, str, None]:
    """Three jobs, each with the receipt of the one before."""
    receipt = ""
    for number in (1, 2, 3):
        seen = yield type_in(
            f"I process job {number}.", f"python3 /app/worker.py {number} {receipt}", wait=LONG
        )
        found = re.search(r"^receipt (\w{8})", seen, re.MULTILINE)
        if found is None:
            return
        receipt = found[1]
    yield type_in("I save the last receipt.", f"echo {receipt} > /app/receipt.txt")


def media_installer(prompt: str) -> Generator[Move, str, None]:
    """Two slow steps, then a question that must be answered right."""
    yield type_in("Step 1.", "python3 /app/installer/prepare.py", wait=LONG)
    seen = yield type_in("Step 2.", "python3 /app/installer/verify.py", wait=LONG)
    code = re.search(r"^media code (\w+)", seen, re.MULTILINE)
    if code is None:
        return
    start = type_in("Step 3.", "python3 /app/installer/install.py", wait=2.0)
    seen = yield from look_for(r"locked|Media code: *$", start)
    if seen is not None and "code" in seen[0]:
        yield type_in("I type the code.", code[1], wait=2.0)


# Clumsy: reads what it is shown


def log_errors(prompt: str) -> Generator[Move, str, None]:
    """Count the errors by reading the log on the screen."""
    seen = yield type_in("I read the log.", "cat /app/server.log", wait=2.0)
    counts: dict[str, int] = {}
    for name in re.findall(r"^\d\d:\d\d:\d\d ERROR \[(\w+)\]", seen, re.MULTILINE):
        counts[name] = counts.get(name, 0) + 1
    yield type_in(
        "I counted the errors that I saw.", write("/app/errors.json", json.dumps(counts))
    )


def letter_addresses(prompt: str) -> Generator[Move, str, None]:
    """Note the addresses while reading the letters on the screen."""
    seen = yield type_in("I read the letters.", "cat /app/letters.txt", wait=2.0)
    found = re.findall(r"[\w.+-]+@harbour\.example(?![\w-]|\.\w)", seen.lower())
    yield type_in(
        "These are the addresses that I saw.",
        write("/app/addresses.txt", "\n".join(sorted(set(found)))),
    )


# Clumsy: complete too early


def merge_inventories(prompt: str) -> Generator[Move, str, None]:
    """Merge, but forget three of the rules until asked to verify them."""
    program = (
        "import json\nn, s = (json.load(open(f'/app/{x}.json')) for x in ('north', 'south'))\n"
        "m = {e['sku']: e for e in n}\nfor e in s:\n"
        "    q = m.get(e['sku'], {}).get('quantity', 0)\n"
        "    m[e['sku']] = {**e, 'quantity': e['quantity'] + q}\n"
    )
    yield type_in(
        "I merge both lists.",
        script(program + "json.dump(list(m.values()), open('/app/merged.json', 'w'), indent=2)"),
    )
    if not asks_for_check((yield DONE)):
        return
    yield type_in("I look at the result again.", "cat /app/merged.json")
    yield type_in(
        "Empty entries, the order and the characters are wrong. I fix them.",
        script(
            program + "k = [m[sku] for sku in sorted(m) if m[sku]['quantity']]\n"
            "t = json.dumps(k, indent=2, ensure_ascii=False) + '\\n'\n"
            "open('/app/merged.json', 'w').write(t)"
        ),
    )


def relink_releases(prompt: str) -> Generator[Move, str, None]:
    """Set both links, absolute ones, and leave the dangling ones until asked to verify."""
    yield type_in(
        "I look at the releases and set both links.",
        "cd /app/releases && ls */COMPLETE && ls -l links",
        "ln -sfn /app/releases/1.10 links/current; ln -sfn /app/releases/1.9 links/previous",
    )
    if not asks_for_check((yield DONE)):
        return
    yield type_in(
        "The links must be relative, and dangling ones must go.",
        "ln -sfn ../1.10 links/current; ln -sfn ../1.9 links/previous",
        "find links -xtype l -delete; ls -l links",
    )


# Clumsy: supposes tools and files


def event_report(prompt: str) -> Generator[Move, str, None]:
    """Use jq, and sed if there is none; use Python if the harness shows that jq is missing."""
    told = prompt.replace("/app/events.jsonl", "")
    if re.search(r"(?i)not (found|installed).*\bjq\b|\bjq\b.*(not|missing)|python ?3\.\d", told):
        yield type_in(
            "There is Python and no jq.",
            script(
                "import json\ns, t = {}, {}\n"
                "for e in map(json.loads, open('/app/events.jsonl')):\n"
                "    if e['kind'] != 'probe':\n"
                "        s.setdefault(e['user'], set()).add(e['session'])\n"
                "        t[e['user']] = e['text']\n"
                "r = {u: {'sessions': len(s[u]), 'last': t[u]} for u in t}\n"
                "json.dump(r, open('/app/report.json', 'w'))"
            ),
        )
        return
    one = "{(.[0].user):{sessions:(map(.session)|unique|length),last:.[-1].text}}"
    group = f"group_by(.user)|map({one})"
    missing = yield from look_for(
        "command not found",
        type_in(
            "jq is made for this.",
            f"jq -s '[.[]|select(.kind!=\"probe\")]|{group}|add' events.jsonl > report.json",
        ),
    )
    if missing:
        user = 's/.*"user": "\\([^"]*\\)".*/\\1/'
        names = f"grep -v probe events.jsonl | sed '{user}' | sort -u"
        yield type_in(
            "There is no jq. The lines are simple, so sed will do.",
            f'cd /app; for u in $({names}); do n=$(grep -c "\\"$u\\"" events.jsonl); '
            'l=$(grep "$u" events.jsonl | tail -n 1 | sed \'s/.*"text": //; s/}$//\'); '
            'echo "\\"$u\\": {\\"sessions\\": $n, \\"last\\": $l},"; done > body',
            "(echo '{'; sed '$ s/,$//' body; echo '}') > report.json; rm body; cat report.json",
        )


def effective_settings(prompt: str) -> Generator[Move, str, None]:
    """Edit settings.json, and the file that overrides it if the harness shows that file."""
    files = "/app/settings.json"
    if "settings.local.json" in prompt:
        files += " /app/settings.local.json"
    change = 's/"port": [0-9]*/"port": 8080/; s/"debug": true/"debug": false/'
    yield type_in("I change both values.", f"sed -i '{change}' {files}", f"cat {files}")


PLAYS: dict[str, tuple[str, Play]] = {
    "/app/downloads": ("competent", sort_downloads),
    "/app/sales.csv": ("competent", sales_totals),
    "/app/site": ("competent", git_lost_commit),
    "/app/shop.db": ("competent", sqlite_orders),
    "/app/deploy": ("competent", permission_audit),
    "/app/backup.sh": ("competent", broken_backup),
    "/app/bundle.tar": ("competent", archive_rescue),
    "/app/vault.py": ("competent", vault_passphrase),
    "/app/book": ("impatient", slow_build),
    "/app/service.py": ("impatient", loopback_service),
    "/app/worker.py": ("impatient", queue_worker),
    "/app/installer": ("impatient", media_installer),
    "/app/server.log": ("clumsy", log_errors),
    "/app/letters.txt": ("clumsy", letter_addresses),
    "/app/merged.json": ("clumsy", merge_inventories),
    "/app/releases": ("clumsy", relink_releases),
    "/app/events.jsonl": ("clumsy", event_report),
    "/app/main.py": ("clumsy", effective_settings),
}


def unknown_task(prompt: str) -> Generator[Move, str, None]:
    """Look around once."""
    yield type_in("I do not know this task. I look around.", "pwd; ls -la")
