"""Draw the plots of the documents as SVG from the tables of performance.md:   python3 docs/plots.py [--check]

measured.py has written those tables. --check draws nothing and says whether the plots in docs/ are what would be drawn.
"""
import argparse
import math
import os
import re
import sys

WIDTH, HEIGHT = 720, 440
LEFT, RIGHT, TOP, BOTTOM = 80, 210, 48, 56
COLOURS = {"ours": "#1b6ca8", "raw": "#c8553d", "copy": "#6a7b4f"}


class Line:
    """Points (x, median, p10, p90)."""

    def __init__(self, name, colour, points, dashed=False):
        self.name, self.colour, self.points, self.dashed = name, colour, sorted(points), dashed


def text(x, y, words, size=12, anchor="start", extra=""):
    words = words.replace("&", "&amp;").replace("<", "&lt;")
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}"{extra}>{words}</text>'


def decades(values):
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def short(value):
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def draw(title, x_label, y_label, lines, note):
    all_points = [point for line in lines for point in line.points]
    if not all_points:
        sys.exit(f"'{title}' has no points: performance.md lacks the rows")
    x_low, x_high = decades([point[0] for point in all_points])
    y_low, y_high = decades([v for point in all_points for v in point[1:] if v > 0])

    def at_x(value):
        return LEFT + (math.log10(value) - x_low) / (x_high - x_low) * (WIDTH - LEFT - RIGHT)

    def at_y(value):
        return HEIGHT - BOTTOM - (math.log10(max(value, 10**y_low)) - y_low) / (y_high - y_low) * (HEIGHT - TOP - BOTTOM)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" fill="#222">',
           f"<title>{title}</title>", f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>', text(LEFT, 24, title, 15, extra=' font-weight="bold"')]
    for power in range(x_low, x_high + 1):
        x = at_x(10.0**power)
        out += [f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{HEIGHT - BOTTOM}" stroke="#ddd"/>',
                text(x, HEIGHT - BOTTOM + 18, short(10.0**power), anchor="middle")]
    for power in range(y_low, y_high + 1):
        y = at_y(10.0**power)
        out += [f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#ddd"/>',
                text(LEFT - 8, y + 4, short(10.0**power), anchor="end")]
    out += [text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, x_label, anchor="middle"),
            text(18, (TOP + HEIGHT - BOTTOM) / 2, y_label, anchor="middle", extra=f' transform="rotate(-90 18 {(TOP + HEIGHT - BOTTOM) / 2:.1f})"')]
    for index, line in enumerate(lines):
        dash = ' stroke-dasharray="5 4"' if line.dashed else ""
        path = " ".join(f"{at_x(x):.1f},{at_y(y):.1f}" for x, y, _, _ in line.points)
        out.append(f'<polyline points="{path}" fill="none" stroke="{line.colour}" stroke-width="2"{dash}/>')
        for x, y, p10, p90 in line.points:
            out += [f'<line x1="{at_x(x):.1f}" y1="{at_y(p10):.1f}" x2="{at_x(x):.1f}" y2="{at_y(p90):.1f}" stroke="{line.colour}"/>',
                    f'<circle cx="{at_x(x):.1f}" cy="{at_y(y):.1f}" r="3" fill="{line.colour}"/>']
        y = TOP + 16 + 22 * index
        out += [f'<line x1="{WIDTH - RIGHT + 14}" y1="{y - 4}" x2="{WIDTH - RIGHT + 42}" y2="{y - 4}" stroke="{line.colour}" stroke-width="2"{dash}/>',
                text(WIDTH - RIGHT + 48, y, line.name)]
    out += [text(WIDTH - 10, HEIGHT - 14, note, 10, "end"), "</svg>"]
    return "\n".join(out) + "\n"


# In microseconds; "KiB" and the like are those of the labels.
NUMBER = r"([\d,.]+)"
VALUE = re.compile(rf"{NUMBER} us(?: \({NUMBER} \.\. {NUMBER}\))?$")


def table(text, name):
    """The rows of a table that measured.py wrote: label, ours, raw."""
    found = re.search(rf"<!-- measured: bench {name} -->\n(.*?)<!-- /measured -->", text, flags=re.S)
    rows = [[cell.strip() for cell in line.strip("| \n").split("|")] for line in (found[1] if found else "").splitlines() if line.startswith("| ")]
    return [(row[0], row[1], row[2]) for row in rows[1:] if len(row) >= 3]


def points(rows, label, which):
    """Those of the rows whose label fits; its first group is x, which is 0 for ours and 1 for raw."""
    out = []
    for row in rows:
        fits, value = re.fullmatch(label, row[0]), VALUE.match(row[1 + which])
        if fits and value:
            median, p10, p90 = (float(n.replace(",", "")) if n else None for n in value.groups())
            out.append((float(fits[1]), median, median if p10 is None else p10, median if p90 is None else p90))
    return out


def drawings(text):
    card, date = (re.search(rf"^\| {what} \| (.*?) \|$", text, flags=re.M) for what in ("card", "date"))
    note = f"{card[1]}, {date[1]}" if card and date else ""
    steps, commit = table(text, "steps"), table(text, "commit")
    by_launches, chain, whole = r"step of (\d+), replayed / launch by launch", r"(\d+) x {} / \d+ copy nodes", r"(\d+) x {} / one copy of all bytes"
    return {
        "step_time.svg": draw(
            "One step of small kernels, until the device is done", "launches per step", "microseconds",
            [Line("launch by launch", COLOURS["raw"], points(steps, by_launches, 1)),
             Line("replayed", COLOURS["ours"], points(steps, by_launches, 0))], note),
        "pin_cost.svg": draw(
            "Committing P pins in a graph, device time", "P", "microseconds",
            [line for size, dashed in (("4 KiB", False), ("1 MiB", True)) for line in (
                Line(f"P copy nodes, {size}", COLOURS["raw"], points(commit, chain.format(size), 1), dashed),
                Line(f"commits, {size}", COLOURS["ours"], points(commit, whole.format(size), 0), dashed),
                Line(f"one copy, {size}", COLOURS["copy"], points(commit, whole.format(size), 1), dashed))], note),
    }


def main():
    docs = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    with open(os.path.join(docs, "performance.md"), encoding="utf-8") as f:
        drawn = drawings(f.read())
    for name, drawing in drawn.items():
        path = os.path.join(docs, name)
        if not arguments.check:
            with open(path, "w", encoding="utf-8") as f:
                f.write(drawing)
            print(path)
            continue
        with open(path, encoding="utf-8") as f:
            if f.read() != drawing:
                sys.exit(f"{path} is not what the tables of performance.md say: python3 docs/plots.py")


if __name__ == "__main__":
    main()
