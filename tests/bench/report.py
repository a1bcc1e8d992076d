"""The table in Markdown, and the plot: for each row with a goal how much of that is used up."""

import datetime
import html
import os
import platform

BAR, LEFT, RIGHT, TOP = 20, 390, 330, 46
MOST = 2.0  # what is further out ends at the edge


def machine():
    with open("/proc/cpuinfo") as f:
        models = [line.split(":", 1)[1].strip() for line in f if line.startswith("model name")]
    date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    return (f"{date}, {os.cpu_count()} × {models[0] if models else platform.machine()}, "
            f"Linux {platform.release()}")


def markdown(rows, head):
    lines = [head, "", "| what | gavel | against | ratio | goal | |", "|---|---|---|---|---|---|"]
    for row in rows:
        cells = [row.what, row.skipped and f"skipped: {row.skipped}" or row.ours, row.against,
                 row.ratio, row.goal, "" if row.skipped else row.verdict]
        lines.append("| " + " | ".join(str(c).replace("|", "\\|") for c in cells) + " |")
    return "\n".join(lines) + "\n"


def _bar(row, y):
    length = min(row.share, MOST) / MOST * RIGHT
    colour = "#2b7a3d" if row.share <= 1 else "#b3261e"
    label = html.escape(f"{row.ratio} ({row.goal})")
    return (f'<text x="{LEFT - 8}" y="{y + 14}" text-anchor="end">{html.escape(row.what)}</text>\n'
            f'<rect x="{LEFT}" y="{y + 2}" width="{length:.1f}" height="{BAR - 5}" '
            f'fill="{colour}"/>\n'
            f'<text x="{LEFT + RIGHT + 8}" y="{y + 14}">{label}</text>\n')


def svg(rows, head):
    judged = [r for r in rows if r.share is not None]
    height = TOP + BAR * len(judged) + 12
    width = LEFT + RIGHT + 190
    line = LEFT + RIGHT / MOST
    bars = "".join(_bar(r, TOP + BAR * i) for i, r in enumerate(judged))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            'font-family="sans-serif" font-size="12">\n'
            f'<rect width="{width}" height="{height}" fill="#fff"/>\n'
            f'<text x="8" y="18">{html.escape(head)}</text>\n'
            f'<text x="{line}" y="{TOP - 6}" text-anchor="middle">the goal</text>\n{bars}'
            f'<path d="M{line} {TOP} V{height - 8}" stroke="#000" stroke-dasharray="3 3"/>\n'
            '</svg>\n')
