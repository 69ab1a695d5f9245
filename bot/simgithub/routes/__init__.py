"""The operations of the simulated GitHub's API, one file for each topic."""

from bot.simgithub.routes import apps, checks, git, graphql, issues, pulls
from bot.simgithub.wire import Route

ROUTES: tuple[Route, ...] = (
    *apps.ROUTES,
    *issues.ROUTES,
    *pulls.ROUTES,
    *checks.ROUTES,
    *git.ROUTES,
    *graphql.ROUTES,
)
