"""Where things are: the one module that knows the repository's root."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "data"
CAMPAIGNS = DATA / "campaigns"
TESTBEDS = DATA / "testbeds"
DESIGNS = DATA / "designs"
INTERCONNECTS = DATA / "interconnects.toml"
PATHS = DATA / "paths.toml"
FAMILIES = DATA / "interconnect_families.toml"
SCHEMA = DATA / "schema.toml"
BIBLIOGRAPHY = DATA / "references.bib"
PUBLISHED = DATA / "published"
REFERENCE = DATA / "reference"
RAW = DATA / "raw"
TOP500 = DATA / "top500"
DATASETS = DATA / "datasets"
REPRODUCED = DATA / "reproduced"
NOTEBOOKS = ROOT / "notebooks"
EXECUTED = ROOT / "build" / "notebooks"
REPORT = ROOT / "build" / "report"
