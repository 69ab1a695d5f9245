"""A worker that dies in the middle of the first job that it gets; run as a process by tests, which hold place 0.

Ends with 9 where it died.
"""

from __future__ import annotations

import os
import sys
import time

from bot.pipeline.job import Job
from bot.pipeline.queue import Queue
from bot.pipeline.store import open_database
from bot.pipeline.worker import Consumer, Pace, Recovery, take_lease

database = open_database(sys.argv[1])
lease = take_lease(database)
assert lease.number == 1, lease.number
Recovery(database, Queue(database), lease).report_alive()


def die(job: Job) -> str:
    os._exit(9)


Consumer(database, lease.executor, die, Pace(polling_seconds=0.05))
time.sleep(30)
os._exit(0)
