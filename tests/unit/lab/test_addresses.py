from __future__ import annotations

import ipaddress

import pytest

from lab import addresses
from lab.errors import LabError


def test_the_lowest_free_index_is_taken() -> None:
    assert addresses.free_index(set()) == 1
    assert addresses.free_index({1, 2, 4}) == 3


def test_a_full_machine_says_so() -> None:
    with pytest.raises(LabError, match="python -m lab down"):
        addresses.free_index(set(range(1, 251)))


def test_networks_of_two_clusters_never_meet() -> None:
    networks = []
    for index in (1, 2, 249):
        here, there = addresses.link(index)
        cable = ipaddress.ip_network(f"{here}/30", strict=False)
        assert ipaddress.ip_address(there) in cable
        networks += [
            ipaddress.ip_network(f"{addresses.node(index)}/24", strict=False),
            ipaddress.ip_network(addresses.pods(index)),
            ipaddress.ip_network(addresses.services(index)),
            cable,
        ]
    for position, one in enumerate(networks):
        assert not any(one.overlaps(other) for other in networks[position + 1 :])


def test_the_first_service_is_inside_the_services() -> None:
    assert ipaddress.ip_address(addresses.first_service(7)) in ipaddress.ip_network(addresses.services(7))
