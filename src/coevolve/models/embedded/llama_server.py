"""The process of the embedded model: llama.cpp's server on a private socket.

`model_process` starts it as `python -m coevolve.models.embedded.llama_server`. It reads one line
of settings from its standard input and writes one line when it is ready. It ends when its input
ends, which is at the latest when the process that started it ends.
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
    # The parent process has ended without removing the folder.
    shutil.rmtree(Path(settings["socket"]).parent, ignore_errors=True)
    os._exit(0)  # there is nothing to save


def start(settings: dict[str, Any]) -> Any:
    """Start llama.cpp's server; it is loaded and listens on return."""
    xllamacpp: Any = importlib.import_module("xllamacpp")

    params = xllamacpp.CommonParams()
    params.model.path = settings["weights"]
    params.hostnames = [settings["socket"]]
    params.api_keys = [settings["key"]]
    params.n_parallel = settings["slots"]
    params.n_ctx = settings["window"] * settings["slots"]
    params.cpuparams.n_threads = 1  # a single token is too little work for two
    params.cpuparams_batch.n_threads = settings["threads"]
    # With other types, the result for a token depends on how many are computed with it. Then the
    # answer to a prompt depends on earlier prompts in the slots.
    params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_ENABLED
    params.cache_type_k = xllamacpp.ggml_type.GGML_TYPE_Q8_0
    params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F16
    params.n_batch = params.n_ubatch = 256  # a cancelled or a new request waits for one batch
    params.cache_ram_mib = 0  # a slot keeps only its last prompt
    params.ctx_shift = False
    params.endpoint_slots = False
    params.ui = False
    params.verbosity = 0
    return xllamacpp.Server(params)


if __name__ == "__main__":
    main()
