"""The process that holds the embedded model: llama.cpp's server on a private socket.

Started by `process` as `python -m coevolve.models.embedded.llama_server`. It takes one line of
settings from its standard input, writes one line when it is ready, and ends when its input does,
which is when the process that started it is gone, however it went.
"""

import importlib
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    """Serve until standard input ends."""
    settings = json.loads(sys.stdin.readline())
    server = start(settings)
    sys.stdout.write(json.dumps({"ready": server.listening_address}) + "\n")
    sys.stdout.flush()
    sys.stdin.read()
    # Whoever started this process would have ended it and removed the folder, were it not gone.
    shutil.rmtree(Path(settings["socket"]).parent, ignore_errors=True)
    os._exit(0)  # nothing to save, and nobody to wait for


def start(settings: dict[str, Any]) -> Any:
    """llama.cpp's server, loaded and listening."""
    xllamacpp: Any = importlib.import_module("xllamacpp")

    params = xllamacpp.CommonParams()
    params.model.path = settings["weights"]
    params.hostnames = [settings["socket"]]
    params.api_keys = [settings["key"]]
    params.n_parallel = settings["slots"]
    params.n_ctx = settings["window"] * settings["slots"]
    params.cpuparams.n_threads = 1  # for a single token: too little to be shared
    params.cpuparams_batch.n_threads = settings["threads"]
    # With other types, what is computed for a token depends on how many are computed along with
    # it, and so the answer to a prompt on what the slots had read before.
    params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_ENABLED
    params.cache_type_k = xllamacpp.ggml_type.GGML_TYPE_Q8_0
    params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F16
    params.n_batch = params.n_ubatch = 256  # what a request given up or a new one waits for
    params.cache_ram_mib = 0  # a slot keeps its own last prompt, and that is all
    params.ctx_shift = False
    params.endpoint_slots = False
    params.ui = False
    params.verbosity = 0
    return xllamacpp.Server(params)


if __name__ == "__main__":
    main()
