"""Write letters of about 18 kB with addresses all over them."""

from pathlib import Path

NAMES = "Anna ben.okafor c.diaz dora emil-x fatou_3 Gus hana ivo jun k.lund lena"
FILLER = "We thank you for your letter of the {} of May and will see to crate {} at once."
lines = []
for number in range(216):
    lines.append(FILLER.format(number % 28 + 1, 1000 + number * 13 % 977))
    if number % 18 == 9:
        name = NAMES.split()[number // 18]
        domain = "Harbour.example" if number % 36 == 9 else "harbour.example"
        lines.append(f"Please answer to {name}@{domain}, or to office@harbour.example.org.")
    if number % 50 == 20:
        lines.append("Copies go to anna@harbour.example and to night@pier.example.")
Path("/app/letters.txt").write_text("".join(line + "\n" for line in lines))
