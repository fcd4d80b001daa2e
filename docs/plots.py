"""Draw the plots of the documents as SVG:   python3 docs/plots.py RESULTS [--simulation] [--into FOLDER]

RESULTS and the options are those of measured.py. Without bench-steps.json or bench-commit.json in RESULTS a plot has axes only.
"""
import argparse
import json
import math
import os
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
    points = [point for line in lines for point in line.points]
    x_low, x_high = decades([point[0] for point in points]) if points else (0, 4)
    y_low, y_high = decades([v for point in points for v in point[1:] if v > 0]) if points else (0, 4)

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
    if not points:
        out.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT / 2, "not measured yet", 16, "middle"))
    out += [text(WIDTH - 10, HEIGHT - 14, note, 10, "end"), "</svg>"]
    return "\n".join(out) + "\n"


def points_of(data, series, which):
    return [(row["x"], row[which]["median"], row[which]["p10"], row[which]["p90"]) for row in (data or {"rows": []})["rows"]
            if row["series"] == series and which in row and row[which]["median"] > 0]


def load(folder, name, simulation):
    try:
        with open(os.path.join(folder, f"bench-{name}.json"), encoding="utf-8") as f:
            data = json.load(f)
    except FileNotFoundError:
        return None
    if data["driver"] != "cuda" and not simulation:
        sys.exit(f"bench-{name}.json: measured on {data['driver']}, a simulation: its times say nothing about a card")
    return data


def main():
    docs = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser()
    parser.add_argument("results")
    parser.add_argument("--simulation", action="store_true")
    parser.add_argument("--into", default=docs)
    arguments = parser.parse_args()
    if arguments.simulation and os.path.abspath(arguments.into) == docs:
        parser.error("figures of a simulation do not go into docs/: name another folder with --into")
    steps, commit = (load(arguments.results, name, arguments.simulation) for name in ("steps", "commit"))

    def note(data):
        return f"{data['device']}, {data['date']}" if data else ""

    plots = {
        "step_time.svg": draw(
            "One step of small kernels, until the device is done", "launches per step", "microseconds",
            [Line("launch by launch", COLOURS["raw"], points_of(steps, "step by launches", "raw")),
             Line("replayed", COLOURS["ours"], points_of(steps, "step by launches", "ours"))] if steps else [], note(steps)),
        "pin_cost.svg": draw(
            "Committing P pins in a graph, device time", "P", "microseconds",
            [line for size, dashed in (("4 KiB", False), ("1 MiB", True)) for line in (
                Line(f"P copy nodes, {size}", COLOURS["raw"], points_of(commit, f"copy nodes of {size} by pins", "raw"), dashed),
                Line(f"commits, {size}", COLOURS["ours"], points_of(commit, f"commit of {size} by pins", "ours"), dashed),
                Line(f"one copy, {size}", COLOURS["copy"], points_of(commit, f"commit of {size} by pins", "raw"), dashed))] if commit else [],
            note(commit)),
    }
    os.makedirs(arguments.into, exist_ok=True)
    for name, drawing in plots.items():
        with open(os.path.join(arguments.into, name), "w", encoding="utf-8") as f:
            f.write(drawing)
        print(os.path.join(arguments.into, name))


if __name__ == "__main__":
    main()
