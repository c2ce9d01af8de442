"""`[http]` of the configuration: a proxy, the hosts that are asked without it, and the authorities that count."""

from __future__ import annotations

from typing import Any


def wrong(data: Any) -> tuple[str, str | None] | None:
    """What is wrong with the table and how it is mended; None when nothing is.

    Expressions stand in `proxy_auth` only: they are evaluated in the run, so that only a workflow that declares the
    secret can give it to the proxy.
    """
    import msgspec

    from ..steps import _http_route as route

    try:
        found = route.network(data)
    except msgspec.ValidationError as error:
        return str(error), "the keys are proxy, proxy_auth, no_proxy and ca_bundle"
    problem = route.proxy_problem(found.proxy) if found.proxy is not None else None
    problem = problem or route.auth_problem(found.proxy_auth, found.proxy)
    for name in found.no_proxy:
        problem = problem or route.no_proxy_problem(name)
    if problem is None and found.ca_bundle is not None and not found.ca_bundle.strip():
        problem = "ca_bundle is empty", "name a file in PEM form"
    return problem
