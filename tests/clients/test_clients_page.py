"""docs/clients.md is the whole way from a schema to answers: all of its blocks, in one go."""

import base64
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from frequency.clients import load_client
from frequency.storage import load_protocol
from mechdesign.cli import main
from tests import test_docs
from tests.clients.node import evaluated
from tests.survey.collector import Collector, lines_of

ROOT = Path(__file__).parents[2]
TEXT = test_docs.PAGES["clients.md"].read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)


IN_NODE = """
const real = globalThis.fetch;
globalThis.fetch = async (path, options) => {
  const answer = await real(new URL(path, given.address), options);
  if (!answer.ok) throw new Error(await answer.text());
  return answer;
};
"""


@pytest.mark.slow
def test_a_report_goes_the_whole_way(tmp_path, monkeypatch, capsys):
    test_docs.test_examples_print_what_is_shown("clients.md", tmp_path, monkeypatch, capsys)
    folder = Path.cwd()  # which the page makes
    assert folder != tmp_path
    (in_python,), (in_javascript,), (on_device, at_server) = map(blocks, ("python", "js", "sh"))

    shutil.copy(ROOT / "frequency" / "clients" / "device.py", folder)
    python, *command = on_device.split()
    assert python == "python"
    told = subprocess.run(
        [sys.executable, "-I", *command], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    protocol = load_protocol("protocol.json")
    assert len(protocol.single_reports_from_bytes(map(base64.b64decode, told))) == 2

    (python, script, *arguments), start, *after = map(str.split, at_server.splitlines())
    subprocess.run([sys.executable, str(ROOT / script), *arguments], check=True)
    options = ["protocol.json", "reports", "--page", "page"]
    assert start == ["python", "examples/survey/collector.py", *options]
    with Collector(Path("protocol.json"), Path("reports"), Path("page")) as collector:
        report = load_client("protocol.json").report("daily")
        exec(in_python.replace("http://127.0.0.1:8000/", collector.address), {"report": report})
        modules = (folder / "page").as_uri()
        source = in_javascript.replace('"./client/', f'"{modules}/client/')
        printed = evaluated(
            f"{IN_NODE}{source}\nconsole.log(JSON.stringify(base64(report)));",
            {"address": collector.address},
        )
    kept = {line for line, _ in lines_of(Path("reports"))}
    assert kept == {base64.b64encode(report), printed.encode()}

    for mechdesign, *arguments in after:
        assert mechdesign == "mechdesign"
        assert main(arguments) == 0, capsys.readouterr().err
    assert "2 users reported" in capsys.readouterr().out


def test_all_that_is_named_is_there():
    for path in re.findall(r"`((?:clients|examples|frequency)/[\w./]+)`", TEXT):
        assert (ROOT / path).exists(), path
    assert {*re.findall(r"^```(\w+)$", TEXT, re.MULTILINE)} == {"pycon", "python", "js", "sh"}
