"""Stands for the process that asks: each question's row says what it does. Run by path, like the real one."""

from __future__ import annotations

import json
import os
import signal
import sys

request = json.loads(sys.argv[1])
DEVICE_GONE = request["runtime"].endswith("/never-ready")


def tell(**facts: object) -> None:
    os.write(request["fd"], json.dumps(facts).encode() + b"\n")


if DEVICE_GONE:
    tell(unready="no device")
    sys.exit()
tell(ready=True)
for index, (row, _) in enumerate(request["questions"]):
    tell(asking=index)
    if row == "crash" or (row == "crash-in-company" and len(request["questions"]) > 1):
        os.kill(os.getpid(), signal.SIGSEGV)
    if row == "hang":
        signal.pause()
    if row == "exit":
        sys.exit("cannot go on")
    if row == "lost":
        tell(answer={"lost": "set-up failed"})
        break
    tell(answer={"code": len(request["questions"])})
    if row == "spoil":
        break
