"""The HTTP service: the page, its release, and, only if switched on, recommendations computed on the server.

The page needs nothing but files. `GET /api/…` answers from the release, which is public. `POST /api/recommend` is for
clients that cannot fold in by themselves: it **sends ratings to this server**, so it is off by default; nothing of it
is kept or logged. This module alone imports FastAPI.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from dpmf.errors import DpmfError, MissingExtra, UnknownId
from dpmf.model import Release
from dpmf.model.selection import NO_FILTERS, Filters, find_filters
from dpmf.serve.content import Content
from dpmf.serve.limits import Limits
from dpmf.serve.live import Live, recommend
from dpmf.serve.site import SECURITY_HEADERS
from dpmf.version import __version__

try:
    from fastapi import FastAPI, HTTPException, Query, Request, Response
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import JSONResponse
    from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model
except ImportError:
    raise MissingExtra("the service needs FastAPI and uvicorn: pip install 'dpmf[serve]'") from None

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_RATINGS = 1000
MOST_ASKED = 100
MOST_GENRES = 100
_GZIP = re.compile(r"\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))")
_LABEL = "Sends ratings to this server, which keeps and logs nothing of them. The page does without it."
_FILTERS = ("only", "exclude", "only_genres", "exclude_genres", "most_per_genre")
Count = Annotated[int, Query(ge=1, le=MOST_ASKED, description="How many at most.")]


class Problem(BaseModel):
    """What is wrong with a request, and how to fix it."""

    detail: str


class Item(BaseModel):
    """An item of the public catalogue."""

    item: int | str = Field(description="Its id.")
    title: str
    genres: str = Field(description="With | in between; empty if unknown.")


class Items(BaseModel):
    """A part of the catalogue."""

    total: int = Field(description="Number of items that match.")
    items: list[Item]


class Scored(BaseModel):
    """An item with its score: what it is ordered by."""

    item: int | str
    title: str
    score: float
    known: bool | None = Field(None, description="False if only a description tells how it may be rated, else missing.")


class Listed(Scored):
    """A recommended item: its score is the expected rating, or that of the ranking part if there is one."""

    rating: float | None = Field(None, description="The expected rating, beside a score of the ranking part.")


class Nearest(BaseModel):
    """Items like another one."""

    similar: list[Scored] = Field(description="None if no more than noise is known of what the item is like.")


class Ends(BaseModel):
    """The lowest and the highest rating there can be."""

    lo: float
    hi: float


class Promise(BaseModel):
    """The release and its guarantee."""

    n_items: int
    n_factors: int
    scale: Ends
    feedback: str
    predicts: bool = Field(description="Whether there is a rating model.")
    ranks: bool = Field(description="Whether recommendations are ordered by a ranking part.")
    configuration: dict[str, Any]
    guarantee: dict[str, Any]
    certified: bool
    recommends_here: bool = Field(description="Whether POST /api/recommend is switched on.")


class Health(BaseModel):
    """The state of the service."""

    status: str
    version: str
    n_items: int


class Recommended(BaseModel):
    """Recommendations for somebody with these ratings."""

    recommendations: list[Listed]
    ordered_by: str = Field(
        description="What decides their order: pairs or factors are one's own taste; ratings and popularity are the "
        "same for everybody."
    )
    unknown: list[str] = Field(description="Rated items that are not in the catalogue.")


def build(folder: Path, *, recommends: bool, check: Callable[[Release], None], agreement: Path | None = None) -> Limits:
    """Return the application.

    Args:
        folder: the release's folder, which is watched for a new release.
        recommends: whether POST /api/recommend is switched on.
        check: raises `DpmfError` if a release may not be served.
        agreement: the file of an agreement that visitors can join; None for none.
    """
    live = Live(folder, check, agreement)
    app = FastAPI(
        title="dpmf", version=__version__, lifespan=_watching(live), docs_url=None, redoc_url=None,
        openapi_url="/api/openapi.json", description=__doc__,
        responses={408: {"model": Problem}, 413: {"model": Problem}},
    )  # fmt: skip

    @app.exception_handler(DpmfError)
    async def refuse(request: Request, error: DpmfError) -> JSONResponse:
        # A title that several items have, or an item rated by its id and by its title: well-formed but ambiguous.
        return JSONResponse({"detail": str(error)}, 404 if isinstance(error, UnknownId) else 409)

    @app.exception_handler(RequestValidationError)
    async def point_out(request: Request, error: RequestValidationError) -> JSONResponse:
        # Where and what, without the input itself: ratings need not go back, and it may not even be JSON.
        found = [{"loc": one["loc"][:2], "msg": one["msg"], "type": one["type"]} for one in error.errors()]
        return JSONResponse({"detail": found}, 422)

    _add_questions(app, live, recommends)
    if recommends:
        _add_recommendations(app, live)
    _add_files(app, live)
    return Limits(app, SECURITY_HEADERS)


def _watching(live: Live) -> Any:
    import asyncio

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        watcher = asyncio.create_task(live.watch())
        yield
        watcher.cancel()

    return lifespan


def _add_questions(app: FastAPI, live: Live, recommends: bool) -> None:
    """Add the routes that are answered from the release alone."""

    @app.get("/api/health", summary="Whether the service is up")
    async def health() -> Health:
        return Health(status="ok", version=__version__, n_items=len(live.now.release.items))

    @app.get("/api/release", summary="The release and its guarantee")
    async def release() -> Promise:
        found = live.now.release
        return Promise(
            n_items=len(found.items), n_factors=found.n_factors, scale=Ends(lo=found.scale.lo, hi=found.scale.hi),
            feedback=found.feedback, predicts=found.predicts, ranks=found.ranks,
            configuration=dict(found.configuration), guarantee=found.guarantee.to_json(),
            certified=found.guarantee.certified, recommends_here=recommends,
        )  # fmt: skip

    @app.get("/api/items", summary="A part of the catalogue")
    async def items(
        query: Annotated[str, Query(max_length=200, description="Part of a title; empty for all.")] = "",
        offset: Annotated[int, Query(ge=0, le=1 << 31)] = 0,
        limit: Count = 20,
    ) -> Items:
        catalogue, words = live.now.release.items, query.casefold().split()
        found = [
            place for place, title in enumerate(live.now.folded_titles)
            if all(word in title for word in words)
        ] if words else range(len(catalogue))  # fmt: skip
        return Items(
            total=len(found),
            items=[
                Item(item=catalogue.ids[place], title=catalogue.titles[place], genres=catalogue.genres[place])
                for place in found[offset : offset + limit]
            ],
        )

    @app.get(
        "/api/similar",
        summary="Items like another one",
        responses={404: {"model": Problem}, 409: {"model": Problem}},
        response_model_exclude_none=True,
    )
    async def similar(
        item: Annotated[str, Query(min_length=1, max_length=500, description="Id or exact title.")], k: Count = 10
    ) -> Nearest:
        found = live.now.release.similar_items(item, k)
        return Nearest(similar=[Scored(**one.to_json()) for one in found])


def _whole(number: Any) -> Any:
    """Return 3 for 3.0, which JSON does not tell apart."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _text(name: Any) -> Any:
    """Refuse a lone surrogate, which JSON can express and UTF-8 cannot."""
    if isinstance(name, str):
        try:
            name.encode()
        except UnicodeEncodeError:
            raise ValueError("a name should be text") from None
    return name


def _asked(release: Release) -> Any:
    """Return the model of a request for recommendations, with the scale of the release in its description."""
    scale = release.scale
    rating: Any = Annotated[float, Field(ge=scale.lo, le=scale.hi, allow_inf_nan=False, strict=True)]
    what = "Item (id or exact title) to rating; for implicit feedback, any number on the scale."
    if release.weighs_counts:
        rating = Annotated[float, Field(gt=0, allow_inf_nan=False, strict=True)]
        what = "Item (id or exact title) to how often somebody had it: any number above 0."
    count = Annotated[int, Field(ge=1, le=MOST_ASKED, strict=True), BeforeValidator(_whole)]
    name = Annotated[str, BeforeValidator(_text)]
    named_items = list[Annotated[int, Field(strict=True), BeforeValidator(_whole)] | name] | None
    genres = list[name] | None

    def optional(most: int | None, description: str) -> Any:
        return Field(None, max_length=most, description=description)

    return create_model(
        "Asked",
        __config__=ConfigDict(extra="forbid"),
        __doc__="Somebody's own ratings.",
        ratings=(
            dict[name, rating],
            Field(min_length=1, max_length=MOST_RATINGS, description=what),
        ),
        k=(count, 10),
        only=(named_items, optional(MOST_RATINGS, "Items (ids or exact titles) to choose from; all by default.")),
        exclude=(named_items, optional(MOST_RATINGS, "Items to leave out.")),
        only_genres=(genres, optional(MOST_GENRES, "Choose from items that have at least one of these genres.")),
        exclude_genres=(genres, optional(MOST_GENRES, "Leave out items that have any of these genres.")),
        most_per_genre=(count | None, optional(None, "Skip an item once one of its genres is listed this often.")),
    )


def _filters_of(asked: Any, release: Release) -> Filters:
    """Return the filters of a request; what is wrong with them is a 422, in the form that all others have."""
    given = {name: value for name in _FILTERS if (value := getattr(asked, name)) is not None}
    if not given:
        return NO_FILTERS
    try:
        return find_filters(release.items, **given)
    except DpmfError as error:
        raise RequestValidationError([{"loc": ("body",), "msg": str(error), "type": "filter"}]) from None


def _add_recommendations(app: FastAPI, live: Live) -> None:
    """Add the route that needs ratings."""

    async def answer(asked: Any) -> Recommended:
        release = live.now.release
        filters = _filters_of(asked, release)
        known = {item: value for item, value in asked.ratings.items() if release.items.find(item) is not None}
        person = release.fold_in(known)
        if (by := person.ordered_by) == "nothing":
            raise HTTPException(409, "this release learnt nothing of any item beyond noise, and recommends nothing")
        found = recommend(person, asked.k, filters)
        return Recommended(
            recommendations=[Listed(**one.to_json()) for one in found],
            ordered_by=by,
            unknown=[item for item in asked.ratings if item not in known],
        )

    answer.__annotations__["asked"] = _asked(live.now.release)
    answers: Any = {400: {"model": Problem}, 409: {"model": Problem}}
    app.post(
        "/api/recommend",
        summary="Recommendations made here",
        description=_LABEL,
        responses=answers,
        response_model_exclude_none=True,
        name="recommend",
    )(answer)


def _add_files(app: FastAPI, live: Live) -> None:
    """Add the files of the page, and HEAD for every route that has GET, which FastAPI does not add."""
    answered = {getattr(route, "path", "") for route in app.routes if "GET" in getattr(route, "methods", ())}

    @app.api_route("/{path:path}", methods=["GET", "HEAD"], include_in_schema=False)
    async def file(path: str, request: Request) -> Response:
        if request.method == "HEAD" and f"/{path}" in answered:
            return Response(media_type="application/json")
        content = live.now.files.get(path)
        if content is None:
            raise HTTPException(404, "no such file")
        return _sent(content, request)


def _sent(content: Content, request: Request) -> Response:
    """Return a file, or 304 if the client has it already."""
    headers = {"ETag": content.tag, "Cache-Control": content.cache_control, "Vary": "Accept-Encoding"}
    if content.policy is not None:
        headers["Content-Security-Policy"] = content.policy
    if content.tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    body = content.plain
    if content.compressed is not None and _GZIP.search(request.headers.get("accept-encoding", "")):
        body = content.compressed
        headers["Content-Encoding"] = "gzip"
    return Response(body, headers=headers, media_type=content.media_type)
