"""The rounds of everything that ends a leadership, on three independent servers."""

from kit.redlock import Nodes
from kit.sidecar import LONG
from e2e.test_redis_rounds import ROUNDS, play


def test_rounds_of_everything_that_ends_a_leadership(folder, start, sample, closing, timely):
    nodes = closing(Nodes(folder, 3))
    play(start, sample, closing, store=nodes.url, count=ROUNDS if LONG else 4)
