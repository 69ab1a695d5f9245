"""Self-contained HTML pages from a package's templates: no script, no external font or picture."""

from __future__ import annotations


def render(package: str, template: str, **values: object) -> str:
    """Render a template of a package. Values are escaped; an unknown name is an error."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    pages = Environment(
        loader=PackageLoader(package, "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return pages.get_template(template).render(values)
