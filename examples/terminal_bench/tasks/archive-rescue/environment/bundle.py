"""Write the bundle of archives, two of them damaged."""

import gzip
import io
import tarfile
from pathlib import Path


def tar_of(files):
    """Return an uncompressed tar archive of texts by name."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


parts = {}
for number in range(1, 7):
    texts = {
        f"{name}-{number}.txt": f"{name} of part {number}\n".encode() * 50
        for name in ("data", "notes")
    }
    parts[f"parts/part-{number}.tar.gz"] = gzip.compress(tar_of(texts), mtime=0)
parts["parts/part-2.tar.gz"] = parts["parts/part-2.tar.gz"][:-60]
content = bytearray(parts["parts/part-5.tar.gz"])
content[-6] ^= 0xFF  # the check sum: all files unpack before tar reports the damage
parts["parts/part-5.tar.gz"] = bytes(content)
Path("/app/bundle.tar").write_bytes(tar_of(parts))
