"""Highlights schedules with Pygments. Made by editors/generate.py."""

from pygments.lexer import RegexLexer, words
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Whitespace


class ScheduleLexer(RegexLexer):  # type: ignore[misc]
    """Pipeline schedules."""

    name = "Pipeline schedule"
    aliases = ["pp"]  # noqa: RUF012
    filenames = ["*.pp"]  # noqa: RUF012
    tokens = {  # noqa: RUF012
        "root": [
            (r"\s+", Whitespace),
            (r"//.*", Comment.Single),
            (r'"(\\.|[^"\\\n])*"?', String),
            (r"\d+\.\d+([eE][+-]?\d+)?|\d+[eE][+-]?\d+", Number.Float),
            (r"\d+", Number.Integer),
            (words(("false", "true",), prefix=r"\b", suffix=r"\b"), Keyword.Constant),
            (words(("and", "in", "not", "or",), prefix=r"\b", suffix=r"\b"), Operator.Word),
            (words(("defer", "drain", "else", "for", "if", "insert", "let", "overlap", "phase", "repeat", "while", "with",), prefix=r"\b", suffix=r"\b"), Keyword),
            (words(("action", "block", "cluster", "fn", "import", "model", "pipe", "placement", "rule", "schedule",), prefix=r"\b", suffix=r"\b"), Keyword.Declaration),
            (words(("backward", "comm", "edge", "lag", "microbatches", "no", "on", "pad", "per", "rank", "ranks", "require", "slices", "stage", "stages", "when", "where",), prefix=r"\b", suffix=r"\b"), Keyword.Reserved),
            (r"[A-Z][A-Z0-9_]*\b", Name.Function),
            (r"[A-Za-z_]\w*(?=\()", Name.Function),
            (r"[A-Za-z_]\w*", Name),
            (r"->|\.\.|[=<>!]=|[-+*/%?:=<>@.]", Operator),
            (r"[{}()\[\],;]", Punctuation),
        ]
    }
