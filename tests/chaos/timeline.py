"""The picture: who led when, and what was done to whom, in strips of a minute."""

from kit.clock import S

STRIP_S = 60
WIDTH, LEFT, ROW = 1500, 90, 16
COLOURS = ("#2b6cb0", "#c05621", "#2f855a", "#6b46c1", "#b83280", "#975a16")
FAULT = "#e53e3e"


def _escape(text):
    return str(text).replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")


class _Canvas:
    def __init__(self, start, end, replicas, targets):
        self.start = start
        self.strips = max(1, -(-(end - start) // (STRIP_S * S)))
        self.span = min(STRIP_S * S, end - start) or 1
        self.rows = [*replicas, *targets]
        self.height = (len(self.rows) + 2) * ROW
        self.parts = []

    def bar(self, begin, end, row, y, height, colour, opacity, title):
        """It may go on in the next strip."""
        begin = max(begin, self.start)
        while begin < end:
            strip = (begin - self.start) // (STRIP_S * S)
            if strip >= self.strips:
                return
            edge = self.start + (strip + 1) * STRIP_S * S
            until = min(end, edge)
            x = LEFT + (begin - self.start - strip * STRIP_S * S) * WIDTH / self.span
            width = max(1.0, (until - begin) * WIDTH / self.span)
            top = strip * self.height + (self.rows.index(row) + 1) * ROW + y
            self.parts.append(f'<rect x="{x:.1f}" y="{top}" width="{width:.1f}" height="{height}" '
                              f'fill="{colour}" fill-opacity="{opacity}"><title>'
                              f'{_escape(title)}</title></rect>')
            begin = until

    def text(self):
        out = []
        for strip in range(self.strips):
            top = strip * self.height
            for i, row in enumerate(self.rows):
                y = top + (i + 1) * ROW
                out.append(f'<text x="4" y="{y + 12}">{_escape(row)}</text>'
                           f'<line x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{y + ROW}" y2="{y + ROW}"/>')
            for second in range(0, -(-int(self.span) // S), 5):
                x = LEFT + second * S * WIDTH / self.span
                out.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top + ROW}" '
                           f'y2="{top + (len(self.rows) + 1) * ROW}"/><text x="{x + 2:.1f}" '
                           f'y="{top + 12}">{strip * STRIP_S + second} s</text>')
        return out


def merged(runs):
    """(replica, token, from, until, trusted until) of what hangs together, whatever the way."""
    spans = []
    open_of = {}
    for r in sorted((r for r in runs if r.said == "leader"), key=lambda r: r.first_send):
        last = open_of.get((r.replica, r.token))
        if last and r.first_receive <= last[4]:
            last[3] = max(last[3], r.last_receive)
            last[4] = max(last[4], r.deadline)
        else:
            last = open_of[r.replica, r.token] = [r.replica, r.token, r.first_receive,
                                                  r.last_receive, r.deadline]
            spans.append(last)
    return spans


def draw(story, replicas, start, end, heading):
    faults = [f for f in story.faults if f[3] >= start]
    targets = sorted({f[1] for f in faults if f[1] not in replicas})
    canvas = _Canvas(start, end, replicas, targets)
    tokens = {}
    for replica, token, begin, until, trusted in merged(story.judge.runs):
        colour = COLOURS[tokens.setdefault(token, len(tokens)) % len(COLOURS)]
        title = f"{replica} leads with {token} for {(until - begin) / 1e6:.0f} ms"
        canvas.bar(begin, min(trusted, end), replica, 2, 8, colour, 0.35, title + " (trusted)")
        canvas.bar(begin, until, replica, 2, 8, colour, 1, title)
    for kind, target, begin, until in faults:
        canvas.bar(begin, until, target, 11, 4, FAULT, 0.6,
                   f"{kind}: {target}, {(until - begin) / 1e6:.0f} ms")
    for violation in story.judge.verdict():
        for row in canvas.rows:
            canvas.bar(violation.at, violation.at + 1, row, 0, ROW, "#000", 1,
                       f"{violation.kind}: {violation.text}")
    height = canvas.strips * canvas.height + 24
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 20}" height="{height}" '
        f'viewBox="0 -24 {LEFT + WIDTH + 20} {height}">',
        "<style>text{font:11px sans-serif}line{stroke:#ccc;stroke-width:.5}</style>",
        '<rect x="0" y="-24" width="100%" height="100%" fill="#fff"/>',
        f'<text x="4" y="-8">{_escape(heading)}</text>',
        *canvas.text(), *canvas.parts, "</svg>", ""])
