"""Branches, files and archives."""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import tarfile
from collections.abc import Mapping

from bot.simgithub.state import Commit, Json, RepositoryState, World
from bot.simgithub.wire import ApiAnswer, ApiCall, ApiRefusal, Route

#: Larger files come without content from the contents API.
MAX_CONTENT = 1_000_000


def blob_sha(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0%s" % (len(content), content), usedforsecurity=False).hexdigest()


def commit_at(world: World, repository: RepositoryState, ref: str) -> Commit:
    """Return the commit of a branch or SHA; answers 404 if there is none."""
    sha = repository.branches.get(ref.removeprefix("refs/heads/"), ref)
    if sha not in world.commits:
        raise ApiRefusal(404, f"No commit found for the ref {ref}")
    return world.commits[sha]


def get_ref(call: ApiCall) -> ApiAnswer:
    if not call.repository.branches:
        raise ApiRefusal(409, "Git Repository is empty.")
    sha = call.repository.branches.get(call.args["branch"])
    if sha is None:
        raise ApiRefusal(404, "Not Found")
    return ApiAnswer(body=_ref(call.args["branch"], sha))


def _ref(branch: str, sha: str) -> Json:
    return {"ref": f"refs/heads/{branch}", "object": {"sha": sha, "type": "commit"}}


def create_ref(call: ApiCall) -> ApiAnswer:
    ref, sha = call.field("ref"), call.field("sha")
    branch = ref.removeprefix("refs/heads/")
    if branch == ref or not branch:
        raise ApiRefusal(422, "Reference name must start with 'refs/heads/'")
    if branch in call.repository.branches:
        raise ApiRefusal(422, "Reference already exists")
    if sha not in call.world.commits:
        raise ApiRefusal(422, "Object does not exist")
    call.repository.branches[branch] = sha
    return ApiAnswer(201, _ref(branch, sha))


def list_commits(call: ApiCall) -> ApiAnswer:
    start = commit_at(call.world, call.repository, call.query.get("sha", call.repository.default_branch))
    commits = [call.world.commits[sha] for sha in call.world.ancestors(start.sha)]
    return call.page(
        [{"sha": commit.sha, "parents": [{"sha": sha} for sha in commit.parents]} for commit in commits]
    )


def list_tags(call: ApiCall) -> ApiAnswer:
    return call.page([{"name": name, "commit": {"sha": sha}} for name, sha in call.repository.tags.items()])


def get_content(call: ApiCall) -> ApiAnswer:
    repository, path = call.repository, call.args["path"]
    commit = commit_at(call.world, repository, call.query.get("ref", repository.default_branch))
    content = commit.files.get(path)
    if content is None:
        below = [name for name in commit.files if name.startswith(f"{path}/")]
        if not below:
            raise ApiRefusal(404, "Not Found")
        return ApiAnswer(body=[_file(name, commit.files[name]) for name in below])
    large = len(content) > MAX_CONTENT
    encoded = base64.encodebytes(content).decode()
    return ApiAnswer(
        body=_file(path, content)
        | {"encoding": "none" if large else "base64", "content": "" if large else encoded}
    )


def _file(path: str, content: bytes) -> Json:
    return {"type": "file", "path": path, "sha": blob_sha(content)}


def put_content(call: ApiCall) -> ApiAnswer:
    repository, path = call.repository, call.args["path"]
    branch = call.field("branch", repository.default_branch)
    if branch not in repository.branches:
        raise ApiRefusal(404, f"Branch {branch} not found")
    if path.startswith(".github/workflows/"):
        raise ApiRefusal(403, "Resource not accessible by integration")
    message = call.text("message")
    try:
        content = base64.b64decode(call.field("content"), validate=True)
    except binascii.Error:
        raise ApiRefusal(422, "content is not valid Base64") from None
    before = call.world.commits[repository.branches[branch]].files.get(path)
    sha = call.field("sha", None)
    if before is not None and sha is None:
        raise ApiRefusal(422, 'Invalid request.\n\n"sha" wasn\'t supplied.')
    if before is not None and sha != blob_sha(before):
        raise ApiRefusal(409, f"{path} does not match {sha}")
    commit = call.operations.push(repository, branch, {path: content}, call.bot, message)
    status = 201 if before is None else 200
    return ApiAnswer(status, {"content": _file(path, content), "commit": {"sha": commit}})


def get_blob(call: ApiCall) -> ApiAnswer:
    """Find a file by its SHA in all commits of all branches."""
    blob = call.args["sha"]
    for sha in call.repository.branches.values():
        for commit in call.world.ancestors(sha):
            for content in call.world.commits[commit].files.values():
                if blob_sha(content) == blob:
                    encoded = base64.encodebytes(content).decode()
                    return ApiAnswer(body={"sha": blob, "encoding": "base64", "content": encoded})
    raise ApiRefusal(404, "Not Found")


def get_archive(call: ApiCall) -> ApiAnswer:
    """Redirect to another host, with a short-lived secret in the address, as GitHub does."""
    commit = commit_at(call.world, call.repository, call.args["ref"])
    other = call.render.web.replace("127.0.0.1", "localhost")
    url = f"{other}/_codeload/{call.repository.full_name}/legacy.tar.gz/{commit.sha}?token=ONETIME"
    return ApiAnswer(302, headers={"Location": url})


def archive(repository: RepositoryState, commit: Commit) -> bytes:
    """Return a gzipped tar with all files below one folder, as codeload makes it."""
    folder = f"{repository.full_name.replace('/', '-')}-{commit.sha[:7]}"
    return tar({f"{folder}/{path}": content for path, content in commit.files.items()})


def tar(files: Mapping[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for path, content in sorted(files.items()):
            entry = tarfile.TarInfo(path)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return stream.getvalue()


_REPO = "/repos/<owner>/<repo>"
ROUTES = (
    Route("GET", f"{_REPO}/git/ref/heads/<path:branch>", get_ref, "contents:read"),
    Route("GET", f"{_REPO}/commits", list_commits, "contents:read"),
    Route("GET", f"{_REPO}/tags", list_tags, "contents:read"),
    Route("POST", f"{_REPO}/git/refs", create_ref, "contents:write"),
    Route("GET", f"{_REPO}/contents/<path:path>", get_content, "contents:read"),
    Route("PUT", f"{_REPO}/contents/<path:path>", put_content, "contents:write"),
    Route("GET", f"{_REPO}/git/blobs/<sha>", get_blob, "contents:read"),
    Route("GET", f"{_REPO}/tarball/<path:ref>", get_archive, "contents:read"),
)
