"""Paths to which nothing that a model wrote may be written: files that decide what runs, and where.

A suggestion is applied with one click, and a drafted test is merged by people who look at the test. So neither may
touch continuous integration, hooks, builds, dependencies, or settings with which an editor or a task runner starts
programs.
"""

from __future__ import annotations

import re
import unicodedata

#: Folders, beside those whose name starts with a dot (.github, .gitlab, .circleci, .husky, .vscode, .cargo, ...).
_PROTECTED_FOLDERS = frozenset({
    "ci", "githooks", "git-hooks", "jenkins", "buildkite", "circleci", "teamcity", "concourse", "tekton",
    "requirements",
})  # fmt: skip
#: Continuous integration and deployment.
_CI = r"""
jenkinsfile(?:[.-].*)?|(?:azure|bitbucket)-pipelines.*|appveyor\.ya?ml|buildspec.*\.ya?ml|cloudbuild.*\.(?:ya?ml|json)|circle\.ya?ml|wercker\.ya?ml
|(?:codefresh|bitrise|screwdriver|semaphore|codeship.*|codemagic|shippable)\.ya?ml|drone\.ya?ml|woodpecker.*
|(?:action|pipeline|workflow)\.ya?ml|lefthook.*|pre-commit.*|renovate\.json.*|codecov\.ya?ml|netlify\.toml
|vercel\.json|fly\.toml|wrangler\.(?:toml|jsonc?)|serverless\..*|firebase\.json|heroku\.ya?ml|app\.ya?ml|render\.ya?ml
|procfile(?:\..*)?|skaffold\.ya?ml|tiltfile.*|helmfile.*|chart\.ya?ml|codeowners|.*\.tf|.*\.service|.*\.timer|crontab
"""
#: Builds and task runners of all languages.
_BUILD = r"""
(?:docker|container)file(?:[.-].*)?|.*\.dockerfile|(?:docker-)?compose.*\.ya?ml|docker-bake\..*|vagrantfile|earthfile
|(?:gnu)?makefile(?:\..*)?|.*\.(?:mk|mak|cmake|bzl|bazel|nix|gradle|gradle\.kts|sbt|gyp|gypi|ninja|rake|podspec|gemspec)
|cmakelists\.txt|cmakepresets\.json|meson\.build|meson_options\.txt|meson\.options|build|workspace|module|buck
|sconstruct|sconscript|wscript|configure(?:\.ac|\.in)?|autogen\.sh|bootstrap\.sh|build\.(?:sh|ps1|bat|cmd|xml|rs|sc|zig|mill)
|mvnw.*|gradlew.*|gradle.*\.properties|pom\.xml|ivy\.xml|.*\.(?:cs|fs|vb|vcx|sq)proj|.*\.slnx?|.*\.(?:props|targets)
|just(?:file)?|taskfile.*\.ya?ml|noxfile\.py|tox\.ini|dodo\.py|fabfile\.py|rakefile|guardfile|fastfile|magefile\.go
|gulpfile.*|gruntfile.*|.*\.config\.(?:[cm]?[jt]s|json)|(?:ts|js)config.*\.json|(?:turbo|nx|lerna|rush|project)\.json
|angular\.json|setup\.(?:py|cfg|hs)|pytest\.ini|(?:site|user)customize\.py|.*\.pth|manifest\.in
|build\.pl|makefile\.pl|dune(?:-project)?|cabal\.project.*|rebar\.config.*|build\.zig.*|.*\.code-workspace
|.*\.sublime-(?:project|build)|.*\.iml
"""
#: Dependencies, and what locks them.
_DEPENDENCIES = r"""
package(?:-lock)?\.(?:json5?|ya?ml)|npm-shrinkwrap\.json|pnpm-(?:lock|workspace)\.yaml|bower\.json|deno\.(?:jsonc?|lock)
|jsr\.json|import_map\.json|bun\.lockb?|.*\.lock|.*\.lockfile|pyproject\.toml|.*requirements.*\.(?:txt|in)|constraints.*\.txt
|(?:pip|gem|pod|cart)file(?:\..*)?|(?:conda-)?environment.*\.ya?ml|conda-lock\.ya?ml|meta\.yaml|cargo\.toml|rust-toolchain.*
|go\.(?:mod|sum|work|work\.sum)|package\.(?:swift|resolved)|composer\.json
|mix\.(?:exs|lock)|stack\.ya?ml|.*\.cabal|.*\.opam|shard\.yml|pubspec\.ya?ml|(?:project|manifest)\.toml|cpanfile.*
|description|renv\.lock|nuget\.config|packages\.config|packages\.lock\.json|global\.json|paket\..*|directory\.packages.*
|conanfile\..*|vcpkg.*\.json|deps\.edn|project\.clj|elm\.json|libs\.versions\.toml
"""
_PROTECTED_NAMES = re.compile("|".join((_CI, _BUILD, _DEPENDENCIES)), re.VERBOSE)


def protection(path: str) -> str:
    """Return why nothing that a model wrote may be written to ``path``; empty if it may.

    Case, compatibility forms and characters without width do not count, as on some file systems.
    """
    plain = unicodedata.normalize("NFKC", path.replace("\\", "/"))
    plain = "".join(char for char in plain if unicodedata.category(char) not in ("Cf", "Cc")).casefold()
    parts = [part.split(":", 1)[0].rstrip(". ") if part.strip(".") else part for part in plain.split("/")]
    if "\\" in path or plain.startswith("/") or not all(parts) or {".", ".."} & set(parts):
        return "the path must stay inside the repository"
    hidden = any(part.lstrip().startswith(".") or re.fullmatch(r"git~\d+", part) for part in parts)
    hooks = parts[0] == "hooks" and len(parts) > 1
    if hidden or hooks or _PROTECTED_FOLDERS & set(parts[:-1]) or parts == ["tasks.py"]:
        return "the path configures tools or continuous integration"
    if _PROTECTED_NAMES.fullmatch(parts[-1].strip()):
        return "the file decides what is built, installed or run"
    return ""
