"""Write a log of 240 lines with 25 errors, most of them in the middle."""

from pathlib import Path

ERRORS = {"billing": 7, "search": 4, "mail": 11, "login": 2, "export": 1}
COMPONENTS = ["billing", "search", "mail", "login", "cache", "export"]
queue = [name for name, count in ERRORS.items() for _ in range(count)]
queue = queue[::2] + queue[1::2]
places = [3, 41, 60, *range(82, 160, 4), 198, 231]
errors = dict(zip(places, queue, strict=True))
lines = []
for number in range(240):
    time = f"{number // 10:02d}:{number % 10 * 6:02d}:{number * 7 % 60:02d}"
    component = COMPONENTS[number * 5 % 6]
    if number in errors:
        tries = number % 5 + 1
        text = f"ERROR [{errors[number]}] request {9000 + number} failed after {tries} attempts"
    elif number % 29 == 5:
        text = f"WARN [{component}] retry page shows ERROR banner for request {9000 + number}"
    else:
        place = f"from node {number % 7} in {number % 90} ms"
        text = f"INFO [{component}] request {9000 + number} served {place}"
    lines.append(f"{time} {text} trace={number * 7919 % 100000:05d}\n")
Path("/app/server.log").write_text("".join(lines))
