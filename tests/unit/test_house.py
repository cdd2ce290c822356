"""The rules of this house that no linter knows, one test each."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

CHECKOUT = Path(__file__).parents[2]
JOBS = CHECKOUT / "jobs"

ABOUT_300 = 320
# Longer ones, each with its own limit and the reason why parting it would not make it plainer.
LONGER = {
    "jobs/weighbridge/policies.py": 345,  # typed forms and the refusals of them, read side by side
}

# How many there are in all of our Python. Lower it when one goes; it never rises.
SUPPRESSIONS = 7

TOP_LEVEL = {".ci", "dags", "docs", "infra", "jobs", "models", "sql", "tests"}
DRAWERS = re.compile(r"(^|_)(utils?|helpers?|common|misc|managers?|v2)$")
MACHINE = re.compile(r"(?<![\w.~*-])/(?:work|home|root|Users|opt|mnt|srv)/\w")
REGISTRY = re.compile(
    r"pypi\.(?:org|io)|pythonhosted\.org|repo1?\.maven\.(?:apache\.)?org|npmjs\.|anaconda\.org|crates\.io",
    re.IGNORECASE,
)
SUPPRESSION = re.compile(r"# (?:noqa|type: ignore)\b(.*)")
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)\s]*)?\)")


@pytest.fixture(scope="module")
def ours() -> list[Path]:
    """Every file of the project: what git tracks, or would if asked."""
    if not (CHECKOUT / ".git").exists():
        pytest.skip("this is no git checkout: what belongs to the project cannot be told")
    # A build server may check out as somebody else than it tests as.
    line = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(line, cwd=CHECKOUT, capture_output=True, text=True, check=True, timeout=60)
    files = [CHECKOUT / name for name in listed.stdout.split("\0") if name]
    return [file for file in files if file.is_file()]


def name(file: Path) -> str:
    """A file as this house calls it."""
    return file.relative_to(CHECKOUT).as_posix()


def text_of(file: Path) -> str:
    """Its text; what is no text has none."""
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


def modules() -> Iterator[tuple[Path, ast.Module]]:
    """Every Python file of jobs/ and dags/, parsed."""
    for folder in (JOBS, CHECKOUT / "dags"):
        for file in sorted(folder.rglob("*.py")):
            yield file, ast.parse(text_of(file))


def test_no_file_of_jobs_is_much_longer_than_300_lines() -> None:
    lengths = {name(file): len(text_of(file).splitlines()) for file, _ in modules()}
    assert len(lengths) > 50
    assert {file: n for file, n in lengths.items() if n > LONGER.get(file, ABOUT_300)} == {}


def test_no_module_is_a_drawer_for_what_has_no_name(ours: list[Path]) -> None:
    named = [part for file in ours for part in (*file.parent.relative_to(CHECKOUT).parts, file.stem)]
    assert [part for part in named if DRAWERS.search(part)] == []


def test_no_error_is_swallowed_unseen_or_raised_without_a_kind() -> None:
    found = []
    for file, tree in modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.ExceptHandler) and node.type is None:
                found.append(f"{name(file)}:{node.lineno}: bare except")
            if isinstance(node, ast.Raise):
                raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
                if isinstance(raised, ast.Name) and raised.id in ("Exception", "BaseException"):
                    found.append(f"{name(file)}:{node.lineno}: raise {raised.id}")
    assert found == []


def test_no_file_names_a_place_of_one_machine_or_a_registry_s_address(ours: list[Path]) -> None:
    found = [
        f"{name(file)}:{number}: {line.strip()[:100]}"
        for file in ours
        for number, line in enumerate(text_of(file).splitlines(), start=1)
        if MACHINE.search(line) or REGISTRY.search(line)
    ]
    assert found == []


def test_each_suppression_has_a_reason_and_there_are_not_more_than_before(ours: list[Path]) -> None:
    found = [
        (name(file), rest)
        for file in ours
        if file.suffix == ".py"
        for line in text_of(file).splitlines()
        for rest in SUPPRESSION.findall(line)
        if file != Path(__file__)
    ]
    assert [file for file, rest in found if not re.fullmatch(r"[^#]*\S  # \S.+", rest)] == []
    assert len(found) <= SUPPRESSIONS


def test_choices_that_would_surprise_are_numbered_and_linked() -> None:
    files = sorted((CHECKOUT / "docs" / "adr").glob("*.md"))
    linked = text_of(CHECKOUT / "CONTRIBUTING.md")
    assert files
    for number, file in enumerate(files, start=1):
        assert re.fullmatch(rf"{number:04}-[a-z0-9.-]+\.md", file.name)
        assert text_of(file).startswith(f"# {number}. ")
        assert f"(docs/adr/{file.name})" in linked


def test_every_link_in_a_document_leads_to_a_file(ours: list[Path]) -> None:
    links = [
        (name(file), link)
        for file in ours
        if file.suffix == ".md"
        for link in LINK.findall(text_of(file))
        if "://" not in link
    ]
    assert links
    assert [
        (file, link) for file, link in links if not (CHECKOUT / file).parent.joinpath(link).exists()
    ] == []


def test_the_checklists_name_files_and_names_that_exist() -> None:
    checklists = text_of(CHECKOUT / "CONTRIBUTING.md").split("\n## Choices")[0]
    quoted = set(re.findall(r"`([^`]+)`", checklists))
    files = {one for one in quoted if re.fullmatch(r"[\w./-]+/[\w.-]*", one) and "NAME" not in one}
    names = {one for one in quoted if re.fullmatch(r"[A-Z][A-Z_]+", one)}
    roots = (CHECKOUT, JOBS / "weighbridge", JOBS / "weighbridge" / "billing")
    assert len(files) > 10
    assert [one for one in files if not any((root / one).exists() for root in roots)] == []
    assert names >= {"FORMATS", "MARTS"}
    code = "".join(text_of(file) for file, _ in modules())
    assert [one for one in names if not re.search(rf"^{one}\b.* = ", code, re.MULTILINE)] == []


def test_the_top_level_folders_are_those_of_the_house(ours: list[Path]) -> None:
    assert {name(file).split("/")[0] for file in ours if "/" in name(file)} == TOP_LEVEL


def test_everything_public_says_what_comes_out() -> None:
    silent = []
    for file, tree in modules():
        if file.parent.name != "dags" and tree.body and not ast.get_docstring(tree):
            silent.append(name(file))
        silent += [f"{name(file)}: {one.name}" for one in public(tree) if not ast.get_docstring(one)]
    assert silent == []


def public(of: ast.Module | ast.ClassDef) -> Iterator[ast.FunctionDef | ast.ClassDef]:
    """Public functions and classes, and the public methods of these classes."""
    for node in of.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node
            if isinstance(node, ast.ClassDef):
                yield from public(node)


def test_every_package_that_is_imported_is_a_dependency_of_its_own() -> None:
    imported = {
        package
        for _, tree in modules()
        for node in ast.walk(tree)
        for module in imports(node)
        if (package := package_of(module)) is not None
    }
    assert {"pyspark", "pyyaml", "apache-airflow-providers-smtp"} <= imported
    assert imported - set(asked_for()) == set()


def test_what_the_package_asks_for_is_what_the_lock_is_made_from() -> None:
    lines = (CHECKOUT / "infra" / "python" / "requirements.in").read_text().splitlines()
    locked = [Requirement(line) for line in lines if line and not line.startswith("#")]
    by_name = {canonicalize_name(one.name): (one.specifier, one.extras) for one in locked}
    assert {package: by_name.get(package) for package in asked_for()} == asked_for()


def test_the_lock_pins_each_dependency_with_hashes_and_without_an_address() -> None:
    lock = (CHECKOUT / "requirements.lock").read_text()
    pinned = re.findall(r"^([\w.-]+)==\S+(?: ; [^\\\n]+)? \\\n +--hash=sha256:", lock, re.MULTILINE)
    assert set(asked_for()) <= {canonicalize_name(one) for one in pinned}
    assert len(pinned) == len(re.findall(r"^\S+==", lock, re.MULTILINE))
    assert "://" not in lock


def asked_for() -> dict[str, object]:
    """Versions and extras of each direct dependency, by its name."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    wanted = map(Requirement, project["dependencies"])
    return {canonicalize_name(one.name): (one.specifier, one.extras) for one in wanted}


def imports(node: ast.AST) -> list[str]:
    """The modules that a statement imports, but for relative ones."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) and node.module and not node.level else []


def package_of(module: str) -> str | None:
    """The distribution that brings a module; None for Python's own and for ours."""
    top, *below = module.split(".")
    if top in sys.stdlib_module_names or top == "weighbridge":
        return None
    packages = installed_packages()[top]
    if top == "airflow" and below[:1] == ["providers"]:
        names = {"-".join(["apache-airflow-providers", *below[1:n]]) for n in range(2, len(below) + 1)}
        return max(names.intersection(packages), key=len)
    main = {"airflow": "apache-airflow", "pyspark": "pyspark"}  # several packages bring parts of these
    return canonicalize_name(main.get(top, packages[0]))


@cache
def installed_packages() -> Mapping[str, list[str]]:
    """The packages that bring a top-level module, by its name."""
    return packages_distributions()
