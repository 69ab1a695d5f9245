"""The tables of release 0.1.0, which every migration starts from: a new database never does, it gets today's."""

revision = "0001"
down_revision = None
