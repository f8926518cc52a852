"""Paths: the only module of the analysis that knows the repository's root and the folder for
output."""

from runners import executables

ROOT = executables.CHECKOUT
HOME = executables.HOME
DATA = ROOT / "data"
CAMPAIGNS = DATA / "campaigns"
TESTBEDS = DATA / "testbeds"
DESIGNS = DATA / "designs"
INTERCONNECTS = DATA / "interconnects.toml"
PATHS = DATA / "paths.toml"
SCHEMA = DATA / "schema.toml"
BIBLIOGRAPHY = DATA / "references.bib"
PUBLISHED = DATA / "published"
MEASURED = DATA / "measured"
REFERENCE = DATA / "reference"
RAW = HOME / "data" / "raw"
DATASETS = HOME / "data" / "datasets"
REPRODUCED = HOME / "data" / "reproduced"
NOTEBOOKS = ROOT / "notebooks"
BUILD = HOME / "build"
EXECUTED = BUILD / "notebooks"
REPORT = BUILD / "report"
