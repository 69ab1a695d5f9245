"""A worker that dies in the middle of every job; run as a process by tests, which hold slot 0 themselves.

Ends with 9 where it died, and with 0 where nothing was left to die of.
"""

from __future__ import annotations

import os
import sys
import time

from bot.jobs.dispatch import Dispatcher
from bot.jobs.queue import Queue
from bot.jobs.recovery import take_slot
from bot.jobs.store import Jobs
from bot.ledger import open_database

database = open_database(sys.argv[1])
slot = take_slot(database.locks)
assert slot.number == 1, slot.number
jobs = Jobs(database)


def die(job: str, attempt: int, *_: object) -> None:
    jobs.claim(job, attempt)
    os._exit(9)


queue = Queue(database, slot.number, die, polling_seconds=0.05, max_starts=1)
Dispatcher(database, queue, lambda event: ("triage",), {}).step()
while None in queue.ended([job.workflow for job in jobs.list()]).values():
    time.sleep(0.05)
os._exit(0)
