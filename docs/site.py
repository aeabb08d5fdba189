"""What the site does to pages that are written to be read in the repository, too. A hook of mkdocs."""

import os
import posixpath
import re
from pathlib import Path

# Where the files lie that are not pages; without it they are named and not linked.
repository = os.environ.get("PPCC_REPOSITORY", "")

# The navigation: a title and its pages. Pages that stand in none of them come last, so that none is lost.
sections = {
    "Use": ["index", "first-hour", "tutorial", "status", "installing", "language", "synthesis", "every-m", "verification", "reports", "pictures", "gallery", "paper-figures",
            "profiles", "importing", "testing-schedules"],
    "Train": ["training-python", "megatron", "deepspeed", "torchtitan", "hangs", "runtime", "gpu", "traces", "python", "python-reference"],
    "Know": ["knobs", "language-changes", "program-format", "trials", "stage-graphs", "diagnostics", "compatibility"],
    "Build ppcc": ["architecture"],
}


def title(path: Path) -> str:
    return re.search(r"^# (.+)$", path.read_text(encoding="utf-8"), re.M).group(1)


def on_config(config):
    docs = Path(config.docs_dir)
    left = {page.stem for page in docs.glob("*.md")}
    navigation = []
    for section, names in sections.items():
        pages = [name for name in names if name in left]
        left -= set(pages)
        if section == "Build ppcc":
            pages += sorted(left)
            pages += sorted(f"errors/{page.stem}" for page in docs.glob("errors/*.md"))
            pages += sorted(f"decisions/{page.stem}" for page in docs.glob("decisions/*.md"))
        navigation.append({section: [{title(docs / f"{page}.md"): f"{page}.md"} for page in pages]})
    config.nav = navigation
    return config


def on_page_markdown(markdown, page, config, files):
    # What stands after the language of a listing is for those who test it.
    markdown = re.sub(r"^```(\w+) .*$", r"```\1", markdown, flags=re.M)
    folder = posixpath.dirname(page.file.src_uri)

    def link(match):
        text, target = match.groups()
        path = posixpath.normpath(posixpath.join("docs", folder, target.partition("#")[0]))
        inside = path.startswith("docs/") and files.get_file_from_path(path.removeprefix("docs/"))
        if inside:
            return match.group(0)
        if not Path(config.docs_dir, "..", path).exists():
            raise SystemExit(f"{page.file.src_uri}: there is no {target}")
        return f"[{text}]({repository}/{path})" if repository else text

    return re.sub(r"(?<!!)\[([^\]]*)\]\((\.\./[^)\s]+)\)", link, markdown)
