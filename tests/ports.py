"""Ports for servers that are told theirs before they start."""
import pathlib
import random
import socket

_claims = []  # sockets whose names stand for ports: nobody else's tests get them while this process lives


def _candidates():
    """Ports that the system gives to nobody who asks for any; from 10000, where it says which those are."""
    path = pathlib.Path('/proc/sys/net/ipv4/ip_local_port_range')
    first = int(path.read_text().split()[0]) if path.exists() else 16000
    return range(10000, first if first > 12000 else 60000)


def _is_free(port):
    with socket.socket() as s:
        try:
            s.bind(('0.0.0.0', port))
        except OSError:
            return False
    return True


def _claim(port):
    claim = socket.socket(socket.AF_UNIX)
    try:
        claim.bind(f'\0weir test port {port}')
    except OSError:
        claim.close()
        return False
    _claims.append(claim)
    return True


def free_range(count):
    """A port from which |count| in a row are free, and stay so until the process ends."""
    candidates = _candidates()
    for _ in range(1000):
        base = random.SystemRandom().randrange(candidates.start, candidates.stop - count)
        if all(_claim(port) and _is_free(port) for port in range(base, base + count)):
            return base
    raise AssertionError('no ports')


def free_ports(count):
    return [free_range(1) for _ in range(count)]
