"""Honest names that mean something to Markdown, HTML, TeX or Typst, and are to be shown as they are
written.
"""

ODD = [
    '10G "fast"',
    "`x`",
    "10G™",
    "@lab",
    "<lab>",
    "*x*",
    "a|b",
    "$x$",
    "_y_",
    "[z](u)",
    "# h",
    "\\",
    "1. a",
]
