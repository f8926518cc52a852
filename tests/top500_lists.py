"""Made-up lists in the forms in which TOP500 publishes its own: headings, spellings and quirks as in the real files.

`ROWS` of November 2008 are such that every reading of the sources' numbers is known by hand. The two workbooks in
tests/top500 were made once from `rows("2008-11")` by xlwt (.xls, under a title row and a blank one) and openpyxl (.xlsx).
"""

import csv
import io

# As the files of these months have them.
_2007 = (
    "Rank,Site,Manufacturer,Computer,Country,Year,Processors,RMax,RPeak,Nmax,Nhalf,Processor Family,Processor,"
    "Proc. Frequency,System Family,Operating System,Architecture,Segment,Application Area,Interconnect Family,Interconnect,"
    "Region,Continent"
)
_2008 = (
    "Rank,Site,Manufacturer,Computer,Country,Year,Cores,RMax,RPeak,Nmax,Nhalf,Power,Processor Family,Processor,"
    "Proc. Frequency,System Family,System Model,Operating System,Architecture,Segment,Application Area,Interconnect Family,"
    "Interconnect,Region,Continent"
)
_2019 = (
    "Rank,Previous Rank,First Appearance,First Rank,Name,Computer,Site,Manufacturer,Country,Year,Segment,Total Cores,"
    "Accelerator/Co-Processor Cores,Rmax [TFlop/s],Rpeak [TFlop/s],Nmax,Nhalf,HPCG [TFlop/s],Power (kW),Power Source,"
    "Power Effeciency [GFlops/Watts],Architecture,Processor,Processor Technology,Processor Speed (MHz),Operating System,"
    "OS Family,Accelerator/Co-Processor,Cores per Socket,Processor Generation,System Model,System Family,"
    "Interconnect Family,Interconnect,Region,Continent,Site ID,System ID"
)
HEADINGS = {
    "2007-11": _2007.split(","),
    "2008-11": _2008.split(","),
    "2019-06": _2019.split(","),
}
# What of a system is in which column, by the first of these that a list has.
COLUMNS = {
    "rank": ["Rank"],
    "site": ["Site"],
    "manufacturer": ["Manufacturer"],
    "computer": ["Computer"],
    "cores": ["Total Cores", "Cores", "Processors"],
    "rmax": ["RMax", "Rmax [TFlop/s]"],
    "rpeak": ["RPeak", "Rpeak [TFlop/s]"],
    "family": ["Interconnect Family"],
    "interconnect": ["Interconnect"],
}
FIELDS = tuple(COLUMNS)

# rank, site, manufacturer, computer, cores, Rmax and Rpeak [Gflop/s], family and interconnect as listed
ROWS = {
    # Of six systems on DDR InfiniBand only those of vendor A at site X are all above 80 %; 7 of 13 are on Gigabit Ethernet.
    "2007-11": [
        (1, "X", "A", "A1, \"big\"", 1000, 86000, 100000, "Infiniband", "Infiniband DDR"),
        (2, "X", "A", "A2", 1000, 82000, 100000, "Infiniband", "Infinband DDR 4x"),
        (3, "Y", "B", "B1", 1000, 81000, 100000, "Infiniband", "Infiniband DDR"),
        (4, "Y", "B", "B2", 1000, 80000, 100000, "Infiniband", "Infiniband DDR"),
        (5, "Z", "A", "A3", 1000, 75000, 100000, "Infiniband", "Infiniband DDR"),
        (6, "Z", "C", "C1", 1000, 60000, 64000, "Infiniband", "Infiniband SDR"),
        *((7 + n, f"G{n}", "G", "GigE cluster", 500, 50000, 100000, "Gigabit Ethernet", "Gigabit Ethernet") for n in range(7)),
    ],
    # Gigabit Ethernet: 53.26, 40.34, 63.04 and 45.44 %, of which the mean is 50.52 %.
    "2008-11": [
        (1, "DOE/NNSA/LANL", "IBM", "BladeCenter, PowerXCell 8i 3.2 Ghz / Opteron, Voltaire Infiniband", 129600, 1105000, 1456700, "Infiniband", "Infiniband"),
        (2, "Enseignement Supérieur, Paris", "Cray Inc.", "Cray XT5 QC 2.3 GHz", 150152, 1059000, 1381400, "Proprietary", "XT4 Internal Interconnect"),
        (3, "Information Technology Center", "Hitachi", "Hitachi Cluster, Myrinet 10G", 12288, 82984, 113050, "Myrinet", "Myrinet 10G"),
        (78, "IT Service Provider", "Hewlett-Packard", "Xeon 54xx 3.0GHz, GigEthernet", 5216, 53260, 100000, "Gigabit Ethernet", "Gigabit Ethernet"),
        (91, "Digital Media: Films", "IBM", "BladeCenter; GigE", 5096, 32272, 80000, "Gigabit Ethernet", "Gigabit Ethernet"),
        (92, "Max-Planck", "Pyramid", "Pyramid Cluster", 5420, 31520, 50000, "Gigabit Ethernet", "Gigabit Ethernet"),
        (100, "WETA", "Hewlett-Packard", "BL2x220, GigE", 2000, 18176, 40000, "Gigabit Ethernet", "Gigabit Ethernet"),
        (101, "Ford", "Sun", "Sun Blade, 10GE", 2000, 18000, 24000, "10G", "10G Ethernet"),
    ],
    "2019-06": [
        (1, "ORNL", "IBM", "Summit", 2414592, 148600e3, 200794.88e3, "Infiniband", "Dual-rail Mellanox EDR Infiniband"),
        (2, "Internet Company", "Lenovo", "ThinkSystem", 100000, 3000e3, 6000e3, "Gigabit Ethernet", "25G Ethernet"),
        (3, "Turbo", "Intel", "Overclocked", 10000, 2000e3, 1900e3, "Omnipath", "Intel Omni-Path"),
        (4, "Cloud Company", "Inspur", "Cloud", 10000, 1500e3, 3100e3, "Gigabit Ethernet", "Gigabit Ethernet"),
    ],
}  # fmt: skip


def rows(month: str, systems=None) -> list[list]:
    """The list as a table: headings, then a row for each system; other columns hold something, as in the real files."""
    headings, table = HEADINGS[month], []
    scale = 1e-3 if "Rmax [TFlop/s]" in headings else 1
    places = {
        field: next(headings.index(name) for name in names if name in headings)
        for field, names in COLUMNS.items()
    }
    for system in ROWS[month] if systems is None else systems:
        known = dict(zip(FIELDS, system))
        row = ["Nhalf" if name == "Segment" else 0 for name in headings]
        for field, place in places.items():
            row[place] = (
                known[field] if field not in ("rmax", "rpeak") else _short(scale * known[field])
            )
        table.append(row)
    return [list(headings), *table]


def text(month: str, separator=",", systems=None, closing="\n", **changes: str) -> str:
    """The list as text with this separator, fields quoted where they have to be; `changes` replace headings."""
    stream, table = io.StringIO(), rows(month, systems)
    table[0] = [changes.get(name, name) for name in table[0]]
    csv.writer(stream, delimiter=separator, lineterminator=closing).writerows(table)
    return stream.getvalue()


def aligned(month: str) -> str:
    """The list as text whose columns blanks align, numbers to the right."""
    table = [[str(cell) for cell in row] for row in rows(month)]
    widths = [max(map(len, column)) for column in zip(*table)]
    numbers = [
        all(cell.replace(".", "").isdigit() for cell in column[1:]) for column in zip(*table)
    ]
    lines = []
    for row in table:
        cells = zip(row, widths, numbers)
        lines.append(
            "  ".join(
                cell.rjust(width) if right else cell.ljust(width) for cell, width, right in cells
            )
        )
    return "\n".join(map(str.rstrip, lines)) + "\n"


def _short(number: float):
    rounded = round(number, 6)
    return int(rounded) if rounded == int(rounded) else rounded
