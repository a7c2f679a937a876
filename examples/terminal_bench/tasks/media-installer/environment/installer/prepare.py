"""Step 1: prepare the media."""

import time
from pathlib import Path

print("preparing the media", flush=True)
time.sleep(2)
Path("/app/installer/prepared").write_text("media 7\n")
print("prepared")
