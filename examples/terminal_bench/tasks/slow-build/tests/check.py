"""Check the package that the three steps leave."""

import sys
import tarfile

EXPECTED = {
    "book.txt": b"CHAPTER ONE: THE HARBOUR\nCHAPTER TWO: THE STORM\nCHAPTER THREE: HOME\n",
    "checked.txt": b"3 chapters\n",
}
with tarfile.open("/app/book/dist/book.tar") as archive:
    found = {
        member.name.removeprefix("./"): archive.extractfile(member).read()
        for member in archive.getmembers()
        if member.isfile()
    }
sys.exit(0 if found == EXPECTED else f"the package contains {found}")
