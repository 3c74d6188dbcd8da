"""One look for all figures: the colours on light and on dark paper, sizes, and nothing else.

Every colour is dark enough for text on white and has a partner that is light enough on black. An
SVG carries both and follows the reader's preference; what ignores that shows the light one.
"""

from __future__ import annotations

#: name → (on light paper, on dark paper)
COLOURS = {
    "paper": ("#fffffe", "#14171c"),
    "text": ("#1d2330", "#e8eaee"),
    "quiet": ("#5d6672", "#a7b0bc"),
    "grid": ("#dfe2e8", "#303642"),
    "blue": ("#1f5fbf", "#7fb2ff"),
    "red": ("#b3372b", "#ff8f80"),
    "green": ("#22774a", "#6fd19b"),
    "orange": ("#a05600", "#f2b25c"),
    "violet": ("#6f42b0", "#c3a2ff"),
    "teal": ("#0d7280", "#5fd0de"),
    "grey": ("#616a77", "#a3acb9"),
}

WIDTH = 6.8  # inches, of every figure
HEIGHT = 3.1  # inches, of a row of panels
DOTS_PER_INCH = 160
SETTINGS = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.0,
    "svg.fonttype": "none",  # texts stay texts: small, and found by a search
    "svg.hashsalt": "farthing",  # the same bytes every time
    "axes.linewidth": 0.6,
    "axes.unicode_minus": True,
    "lines.linewidth": 1.7,
}


def palette(*, dark: bool) -> dict[str, str]:
    """The colours by name."""
    return {name: pair[dark] for name, pair in COLOURS.items()}


def dark_rules() -> str:
    """Style rules that give everything in a light colour its dark partner."""
    rules = [
        f'[style*="{what}: {light}"]{{{what}:{dark} !important}}'
        for light, dark in COLOURS.values()
        for what in ("fill", "stroke")
    ]
    return "@media (prefers-color-scheme: dark){" + "".join(rules) + "}"
