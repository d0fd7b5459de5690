from __future__ import annotations

from benchmarks.life.engines import Used, parse_sockets

LINES = """\
0 0 127.0.0.1:34470 127.0.0.1:9446 users:(("kueue",pid=7,fd=1)) bbr wscale:1,10 bytes_sent:7755 bytes_received:2400
0 0 127.0.0.1:40000 127.0.0.1:6443 users:(("kueue",pid=7,fd=2)) cubic bytes_sent:10 bytes_acked:9 bytes_received:5
0 0 127.0.0.1:40001 127.0.0.1:6443 users:(("kueue",pid=7,fd=3)) cubic wscale:1,10 bytes_received:3
0 0 127.0.0.1:40002 127.0.0.1:6443 users:(("other",pid=8,fd=3)) cubic wscale:1,10 bytes_sent:1 bytes_received:3
0 0 127.0.0.1:6443 127.0.0.1:40000 users:(("kube-apiserver",pid=9,fd=3)) cubic bytes_sent:5 bytes_received:10
"""


def test_bytes_are_those_of_connections_to_the_api_server() -> None:
    found = parse_sockets(LINES, port=6443, names={7: "kueue", 9: "kube-apiserver"})
    assert found == {"kueue": {"7 127.0.0.1:40000": 15, "7 127.0.0.1:40001": 3}}


def test_between_two_moments_connections_are_compared_one_by_one() -> None:
    before = Used({"kueue": 1.0}, {}, {"kueue": {"a": 10, "gone": 99}})
    after = Used({"kueue": 1.5, "new": 0.25}, {"kueue": 40.0}, {"kueue": {"a": 15, "b": 4}})
    spent = after.since(before)
    assert spent.cpu == {"kueue": 0.5, "new": 0.25}
    assert spent.bytes() == {"kueue": 9}
    assert spent.rss == {"kueue": 40.0}
