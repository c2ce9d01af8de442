"""`http`: the pages of a list, and what links say of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tramai import engine, plan, workflow
from tramai.errors import Pointer
from tramai.step import Replay, StepError
from tramai.steps import _http_guard
from tramai.steps._http_links import links
from tramai.steps.http import Http
from tramai.stores import open_store

from .http_servers import Asked, answer, failure, fetch, serving
from .step_context import StepContext, made, result_of

OK = "https://example.com/"
BASE = httpx.URL("https://api.example.com/v1/items?page=1")
BY_LINK = {"next": "${{ result.links.next }}", "items": "${{ result.body }}"}
BY_BODY = {"next": "${{ result.body.next | default(none) }}", "items": "${{ result.body.items }}"}


def page(body: Any, **headers: str) -> bytes:
    return answer(200, json.dumps(body).encode(), content_type="application/json", **headers)


def linked(*pages: list[Any]) -> Callable[[Asked], bytes]:
    """Pages that lead on by a Link header."""

    def route(asked: Asked) -> bytes:
        number = int(asked.path.rpartition("=")[2]) if "=" in asked.path else 1
        more = {"link": f'</?page={number + 1}>; rel="next"'} if number < len(pages) else {}
        return page(pages[number - 1], **more)

    return route


def test_pages_are_joined_by_their_links() -> None:
    result, asked = fetch(linked([1, 2], [3], [], [4]), paginate=BY_LINK, headers={"X-Key": "k"})
    assert result["body"] == [1, 2, 3, 4]
    assert (result["pages"], result["status"]) == (4, 200)
    assert result["url"].endswith("/?page=4")
    assert [one.path for one in asked] == ["/", "/?page=2", "/?page=3", "/?page=4"]
    assert {one.headers["x-key"] for one in asked} == {"k"}


def test_pages_are_joined_by_what_a_body_says() -> None:
    def route(asked: Asked) -> bytes:
        return page({"items": [1], "next": "two?after=x%20y"} if asked.path == "/a/one" else {"items": [2]})

    result, asked = fetch(route, path="/a/one", paginate=BY_BODY)
    assert result["body"] == [1, 2]
    assert asked[1].path == "/a/two?after=x%20y"


def test_a_map_changes_the_query_and_keeps_the_rest() -> None:
    def route(asked: Asked) -> bytes:
        number = len(seen)
        seen.append(asked.path)
        return page({"items": [number], "mark": f"a&b {number}" if number < 2 else None})

    seen: list[str] = []
    marked = {
        "next": "${{ {'mark': result.body.mark, 'n': result.page + 1} }}",
        "items": "${{ result.body.items }}",
    }
    result, _ = fetch(route, path="/x?key=1", query={"size": 2}, paginate=marked)
    assert result["body"] == [0, 1, 2]
    assert seen == ["/x?key=1&size=2", "/x?key=1&size=2&mark=a%26b+0&n=2", "/x?key=1&size=2&mark=a%26b+1&n=3"]


def test_pages_that_are_only_counted_end_with_an_empty_one() -> None:
    def route(asked: Asked) -> bytes:
        number = int(asked.path.rpartition("=")[2])
        return page(list(range(2 * number, 2 * number + 2)) if number < 4 else [])

    counted = {"next": "${{ {'page': result.page + 1} if result.body != [] else none }}", "items": "${{ result.body }}"}
    result, asked = fetch(route, query={"page": 1}, paginate=counted)
    assert (result["body"], result["pages"]) == ([2, 3, 4, 5, 6, 7], 4)
    assert [one.path for one in asked] == [f"/?page={number}" for number in range(1, 5)]


@pytest.mark.parametrize("end", [None, ""])
@pytest.mark.parametrize("next", [BY_BODY["next"], "${{ {'x': 1, 'cursor': result.body.next | default(none)} }}"])
def test_null_and_an_empty_text_end_it(end: Any, next: str) -> None:
    result, asked = fetch(page({"items": [1], "next": end}), paginate={**BY_BODY, "next": next})
    assert (result["body"], len(asked)) == ([1], 1)


def test_the_output_is_the_list() -> None:
    step = made(Http, get=OK, paginate=BY_LINK)
    assert step.output({"body": [1], "pages": 1}) == [1]


def test_more_pages_than_expected_are_an_error_and_no_short_list() -> None:
    error = failure(linked([1], [2], [3]), paginate={**BY_LINK, "max_pages": 2})
    assert (error.type, "max_pages (2)" in error.message) == ("limit", True)
    assert fetch(linked([1], [2]), paginate={**BY_LINK, "max_pages": 2})[0]["body"] == [1, 2]


@pytest.mark.parametrize("place", ["/", "/#x", "?", "/b"])
def test_a_page_that_leads_back_is_an_error(place: str) -> None:
    seen: list[str] = []

    def route(asked: Asked) -> bytes:
        seen.append(asked.path)
        return page([1], link=f"<{place}>; rel=next")

    error = failure(route, paginate=BY_LINK)
    assert (error.type, "leads back" in error.message) == ("invalid_output", True)
    assert len(seen) == (2 if place == "/b" else 1)


def test_the_limit_of_size_is_for_all_pages_together() -> None:
    body = ["x" * 400]
    error = failure(linked(body, body, body), paginate=BY_LINK, max_response=1000)
    assert error.type == "limit"
    assert "are together longer than max_response (1KB)" in error.message
    assert len(fetch(linked(body, body), paginate=BY_LINK, max_response=1000)[0]["body"]) == 2


def test_the_limit_of_time_is_for_all_pages_together() -> None:
    count = 0

    async def slow(asked: Asked) -> AsyncIterator[bytes]:
        nonlocal count
        count += 1
        await asyncio.sleep(0.1)
        yield page([1], link=f"</{count}>; rel=next")

    async def go() -> None:
        async with serving(slow) as server:
            ctx = StepContext(deadline=asyncio.get_running_loop().time() + 0.35)
            with pytest.raises(StepError) as caught:
                await result_of(made(Http, get=server.url, allow_private=True, paginate=BY_LINK), ctx)
            assert caught.value.type == "timeout"

    asyncio.run(go())
    assert count <= 4


@pytest.mark.parametrize(
    ("next", "body", "kind", "why"),
    [
        ("${{ result.links.next }}", {"a": 1}, "expression", "paginate.items is a map on page 1"),
        ("${{ result.links.next }}", None, "expression", "paginate.items is null"),
        ("${{ result.body | length }}", [1], "expression", "paginate.next is a number on page 1"),
        ("${{ result.body }}", ["x"], "expression", "paginate.next is a list"),
        ("${{ {'x': result.body} }}", [1], "expression", "x is a list"),
        ("${{ {} if result.status == 200 else none }}", [1], "invalid_output", "leads back"),
        ("file:///etc/passwd?${{ result.status }}", [1], "refused", "scheme"),
        ("http://me:pw@example.com/${{ result.status }}", [1], "refused", "user name"),
        ("http://2130706433/${{ result.status }}", [1], "refused", "four decimal numbers"),
    ],
)
def test_what_is_no_page_is_told(next: str, body: Any, kind: str, why: str) -> None:
    expression = next if next.startswith("${{") else '${{ "' + next.replace("${{", '" ~').replace("}}", "") + " }}"
    error = failure(page(body), paginate={"next": expression, "items": "${{ result.body }}"})
    assert (error.type, why in error.message) == (kind, True), error.message
    assert "pw" not in error.message


def test_the_next_page_is_checked_like_the_first_url(monkeypatch: pytest.MonkeyPatch) -> None:
    error = failure(page([1], link="<http://elsewhere.test/>; rel=next"), paginate=BY_LINK, allow_hosts=["127.0.0.1"])
    assert (error.type, "elsewhere.test" in error.message) == ("refused", True)
    reason = _http_guard.reason
    monkeypatch.setattr(_http_guard, "reason", lambda address: None if address == "127.0.0.1" else reason(address))
    error = failure(page([1], link="<http://169.254.169.254/>; rel=next"), paginate=BY_LINK, allow_private=False)
    assert (error.type, "not a public address" in error.message) == ("refused", True)


def test_a_list_of_hosts_lifts_no_block_of_private_addresses() -> None:
    error = failure(answer(200), allow_hosts=["127.0.0.1"], allow_private=False)
    assert (error.type, "not a public address" in error.message) == ("refused", True)


def test_credentials_stay_with_the_first_origin_even_when_the_way_leads_back() -> None:
    async def go() -> tuple[list[Asked], list[Asked]]:
        async with serving(answer) as far, serving(answer) as near:
            near.route = lambda asked: page([1], **({"link": f"<{far.url}/>; rel=next"} if asked.path == "/" else {}))
            far.route = lambda asked: page([2], link=f"<{near.url}/admin>; rel=next")
            step = made(
                Http,
                get=near.url,
                auth={"bearer": "t"},
                headers={"X-Api-Key": "k", "Accept": "x/y", "Cookie": "c=1"},
                allow_private=True,
                paginate=BY_LINK,
            )
            assert (await result_of(step))["body"] == [1, 2, 1]
            return near.asked, far.asked

    near, far = asyncio.run(go())
    assert near[0].headers["authorization"] == "Bearer t"
    for other in (far[0], near[1]):
        assert not {"authorization", "x-api-key", "cookie"} & other.headers.keys()
        assert other.headers["accept"] == "x/y"


def test_a_failed_page_fails_the_step_with_the_wait_that_it_asks_for() -> None:
    def route(asked: Asked) -> bytes:
        return page([1], link="</2>; rel=next") if asked.path == "/" else answer(429, retry_after="7")

    error = failure(route, paginate=BY_LINK)
    assert (error.type, error.retry_after) == ("http.429", 7.0)


def test_a_retry_begins_with_the_first_page_again(tmp_path: Path) -> None:
    answers = iter(
        [page([1], link="</2>; rel=next"), answer(503, retry_after="0"), page([3], link="</2>; rel=next"), page([4])]
    )

    async def go() -> tuple[Any, list[str]]:
        async with serving(lambda asked: next(answers)) as server:
            (tmp_path / "w.yaml").write_text(
                "tramai: 1\nname: paged\nsteps:\n"
                f"  - id: all\n    http: {{get: '{server.url}', allow_private: true, paginate: {BY_LINK}}}\n"
                "    retry: {max_attempts: 2}\n    output: ${{ result.body + [result.pages] }}\n"
                "outputs: {all: '${{ steps.all.output }}'}\n"
            )
            made_plan = plan.of(workflow.load(str(tmp_path / "w.yaml")))
            result = await asyncio.to_thread(lambda: engine.run(made_plan, {}, store=open_store("memory:")))
            return result.outputs, [asked.path for asked in server.asked]

    assert asyncio.run(go()) == ({"all": [3, 4, 2]}, ["/", "/2", "/", "/2"])


def test_redirects_within_pages_are_followed_and_bounded() -> None:
    def route(asked: Asked) -> bytes:
        if asked.path == "/two":
            return answer(302, location="/sub/2")
        return page([1], link="<two>; rel=next") if asked.path == "/" else page([asked.path])

    assert fetch(route, paginate=BY_LINK, follow_redirects=True)[0]["body"] == [1, "/sub/2"]
    assert failure(route, paginate=BY_LINK).type == "http.302"


# Links.


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("", {}),
        ('</v1/items?page=2>; rel="next"', {"next": "https://api.example.com/v1/items?page=2"}),
        ("<?page=2>;rel=next", {"next": "https://api.example.com/v1/items?page=2"}),
        (
            '<https://other.example/x,y;z>; rel="next last"',
            dict.fromkeys(("next", "last"), "https://other.example/x,y;z"),
        ),
        ('<a>; rel="prev", <b>; title="x, <y>; rel=\\"next\\""; rel=NEXT', {"prev": "/a", "next": "/b"}),
        ("<a>; rel=next, <b>; rel=next", {"next": "/a"}),
        ("<a>; rel=next; rel=last", {"next": "/a"}),
        ('<a>; rel="next"; anchor="#x", <b>; rel=first', {"first": "/b"}),
        ("garbage, <b>; rel=next", {"next": "/b"}),
        ("<b>;;; rel=next", {}),
        ("<b", {}),
        ("<b>; rel", {}),
    ],
)
def test_a_link_header_is_read_as_the_standard_says(header: str, expected: dict[str, str]) -> None:
    whole = {name: f"https://api.example.com/v1{url}" if url.startswith("/") and len(url) == 2 else url
             for name, url in expected.items()}  # fmt: skip
    assert links(header, BASE) == {"next": None, **whole}


@given(st.text(alphabet='<>;,="\\ relnxt\t') | st.text())
def test_any_header_has_links_or_none(header: str) -> None:
    assert "next" in links(header, BASE)


def test_a_header_made_to_be_slow_is_not() -> None:
    for header in ("<a" * 30_000, "; " * 30_000, "<a>" + " " * 60_000, '<a>; b="' + "\\" * 60_000, "<a>; rel=n" * 9000):
        assert links(header, BASE)["next"] is None
    # Each of these spaces belonged to what is before it or to what comes after it: twice as many ways with each more.
    for blank in (";a= ", "; a = ", ";a =  "):
        assert links(f'<a>{blank * 10_000}"', BASE)["next"] is None
        assert links(f"<a>{blank * 10_000}; rel = next", BASE)["next"] == "https://api.example.com/v1/a"


def test_an_answer_tells_its_links_and_the_output_does_not_repeat_them() -> None:
    result, _ = fetch(answer(200, link="</2>; rel=next"))
    assert result["links"]["next"].endswith("/2")
    assert "links" not in made(Http, get=OK).output(result)


def test_parameters_that_make_no_url_are_refused() -> None:
    how = {"next": "${{ {'cursor': result.body.cursor} }}", "items": "${{ [1] }}"}
    error = failure(page({"cursor": "x" * 70_000}), paginate=how)
    what = "the URL of the page after page 1 cannot be made: its parameters are too long"
    assert (error.type, error.message) == ("refused", what)


def test_links_hold_no_secret_of_the_url() -> None:
    scope = {"secrets": {"T": "s3cr3t"}}
    result, _ = fetch(answer(200, link="<?page=2>; rel=next"), path="/${{ secrets.T }}/x", scope=scope)
    assert result["links"] == {"next": "?page=2"}


# What a file may say.


@pytest.mark.parametrize(
    ("settings", "pointer"),
    [
        ({"post": OK, "paginate": BY_LINK}, ("paginate",)),
        ({"get": OK, "paginate": BY_LINK, "save_to": "a"}, ("paginate",)),
        ({"get": OK, "paginate": {**BY_LINK, "next": "${{ inputs.next }}"}}, ("paginate", "next")),
        ({"get": OK, "paginate": {**BY_LINK, "items": "${{ [1] }}"}}, ("paginate", "items")),
    ],
)
def test_a_mistake_is_found_before_the_run(settings: dict[str, Any], pointer: Pointer) -> None:
    found = [(finding.code, finding.pointer) for finding in made(Http, **settings).check()]
    assert found == [("TRM348", pointer)]


def test_pages_stay_what_a_get_is() -> None:
    assert made(Http, get=OK, paginate=BY_LINK).replay() is Replay.REPLAYABLE
    assert made(Http, get=OK, paginate=BY_LINK).check() == ()


def test_the_bytes_of_all_pages_are_told_to_those_who_listen() -> None:
    told: dict[str, Any] = {}

    class Ear(StepContext):
        def signal(self, name: str, **attributes: Any) -> None:
            told[name] = attributes

    async def go() -> None:
        async with serving(linked(["a"], ["b"])) as server:
            await result_of(made(Http, get=server.url, allow_private=True, paginate=BY_LINK), Ear())

    asyncio.run(go())
    assert told["http.completed"] == {"method": "GET", "status": 200, "response_bytes": 10}
