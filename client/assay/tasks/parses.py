"""A task whose answer must parse in a language."""

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from assay._base import WireModel
from assay.tasks.base import ScoredTask


class JsonLanguage(WireModel):
    """JSON as RFC 8259 has it, no key twice."""

    language: Literal["json"]
    scalars: bool = False
    """Accept a text that is only a number, a string, true, false or null."""


class YamlLanguage(WireModel):
    """One document of YAML 1.1, of plain data, no key twice."""

    language: Literal["yaml"]
    scalars: bool = False
    """Accept a text that is only a scalar, as every line of prose is."""


class TomlLanguage(WireModel):
    """TOML 1.0, with at least one key."""

    language: Literal["toml"]


class XmlLanguage(WireModel):
    """Well-formed XML with namespaces, without a document type, so without entities of its own."""

    language: Literal["xml"]
    root: str | None = None
    """Name of the root element; any when left out."""


class PythonLanguage(WireModel):
    """A Python program that compiles; it never runs."""

    language: Literal["python"]


class SqlLanguage(WireModel):
    """SQL of a dialect: queries and statements that change data or tables."""

    language: Literal["sql"]
    dialect: Literal["sqlite", "duckdb", "postgres", "mysql", "bigquery", "snowflake", "tsql", "spark"] = "sqlite"
    several: bool = False
    """Accept more than one statement."""


class CsvLanguage(WireModel):
    """CSV of which every row has the same columns."""

    language: Literal["csv"]
    columns: Annotated[int, Field(ge=2, le=10_000)] | Annotated[list[str], Field(min_length=2, max_length=10_000)]
    """The number of columns, or the names that the first row must hold."""
    delimiter: str = Field(default=",", min_length=1, max_length=1)
    min_rows: int = Field(default=1, ge=1)
    """Rows beside the one of names."""

    @model_validator(mode="after")
    def _check_delimiter(self) -> Self:
        if self.delimiter in '"\r\n':
            raise ValueError("the delimiter must be no quotation mark or line break")
        return self


class LarkLanguage(WireModel):
    """A language of one's own, as a grammar of Lark."""

    language: Literal["lark"]
    grammar: str = Field(min_length=1, max_length=100_000)
    start: str = "start"
    parser: Literal["earley", "lalr"] = "earley"
    """`earley` takes every grammar; `lalr` is linear and refuses what it cannot decide."""


Language = Annotated[
    JsonLanguage
    | YamlLanguage
    | TomlLanguage
    | XmlLanguage
    | PythonLanguage
    | SqlLanguage
    | CsvLanguage
    | LarkLanguage,
    Field(discriminator="language"),
]


class ParsesOptions(WireModel):
    """How the text is found in a completion."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"extract": "fence"}]})

    extract: Literal["auto", "whole", "answer_tag", "fence"] = "auto"
    """`fence`: the last block of the language, or without one; `auto`: the answer tag if there is one, in it or in the
    text the fenced block if there is one, else all of it."""


class ParsesTask(ScoredTask):
    """The answer must parse in a language."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "verifier": "parses",
                    "completion": "```sql\nSELECT name FROM city\n```",
                    "reference": {"language": "sql", "dialect": "sqlite"},
                }
            ]
        }
    )

    verifier: Literal["parses"]
    reference: Language
    """The language, with what it needs."""
    options: ParsesOptions = ParsesOptions()
