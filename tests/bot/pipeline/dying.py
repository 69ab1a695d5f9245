"""A worker that dies in the middle of the first job that it gets; run as a process by tests, which hold place 0.

Ends with 9 where it died. With ``hold`` it takes no job: it prints its place, and keeps it.
"""

from __future__ import annotations

import os
import time

from bot.pipeline.job import Job
from bot.pipeline.queue import Queue
from bot.pipeline.store import open_database
from bot.pipeline.worker import Consumer, Pace, Recovery, take_lease


def die(job: Job) -> str:
    os._exit(9)


def main(arguments: list[str]) -> None:
    database = open_database(arguments[0])
    lease = take_lease(database)
    if arguments[1:] == ["hold"]:
        print(lease.number, flush=True)
        time.sleep(60)
    assert lease.number == 1, lease.number
    Recovery(database, Queue(database), lease).report_alive()
    Consumer(database, lease.executor, die, Pace(polling_seconds=0.05))
    time.sleep(30)
