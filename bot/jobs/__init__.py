"""Durable jobs: a delivery is recorded before it is answered for, and each of its tasks runs to an end.

``accept`` records (the web process needs nothing else from here), ``worker`` does the rest: the dispatcher
makes one job of each task, the queue (dbos, nowhere else in the program) runs one job at a time per repository,
the runner decides and publishes, the reaper takes over from workers that died.
"""
