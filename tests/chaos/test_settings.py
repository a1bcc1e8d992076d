"""What is drawn as settings: sidecars take all of it, and it keeps to what a change of them asks."""

import pytest

from chaos.settings import DRAIN_MS, TTLS_MS, draw
from kit.sidecar import GAVEL, run

STORES = {"redis": "redis://h", "sentinel": "redis+sentinel://h:1/m", "postgres": "postgres://u@h/d",
          "redlock": "redlock:redis://a,redis://b,redis://c"}


def drawn(store, count=60):
    settings, last = [], None
    for number in range(count):
        last = draw("7", number, store, "correctness", last)
        settings.append(last)
    return settings


@pytest.mark.parametrize("store", TTLS_MS)
def test_they_come_from_the_seed_and_differ(store):
    settings = drawn(store)
    assert settings == drawn(store)
    assert len(set(settings)) > 30 and len({str(s) for s in settings}) > 20
    assert any(len(set(s.ttls_ms)) > 1 for s in settings), "mixed ttls"
    assert any(any(s.requires) for s in settings)
    assert any(s.wait_replicas for s in settings) == (store == "sentinel")
    for s in settings:
        assert all(a or not r for a, r in zip(s.attached, s.requires)), "it could never stand"
        assert len({s.options(i)[s.options(i).index("--margin") + 1] for i in range(3)}) == 1
    for before, after in zip(settings, settings[1:]):
        assert after.wait_ms >= max(before.ttls_ms + after.ttls_ms), "what is told before is waited for"


@pytest.mark.parametrize("store", TTLS_MS)
def test_sidecars_take_them(store, tmp_path):
    url = STORES.get(store, f"local:{tmp_path}")
    seen = {}
    for s in drawn(store):
        for i in range(3):
            seen[tuple(s.ttls_ms), s.valid_for_ms, s.drain_ms, s.wait_replicas] = s.options(i)
    assert {s.drain_ms for s in drawn(store)} >= {max(DRAIN_MS)}
    for options in list(seen.values())[:6]:
        ran = run(GAVEL, "config", "--store", url, "--election", "a", "--identity", "x", "--socket",
                  f"{tmp_path}/s", "--page-dir", str(tmp_path), *options)
        assert ran.returncode == 0, (options, ran.stderr)
