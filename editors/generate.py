"""Writes what editors and pages highlight schedules by, from the words of grammar/Schedule.g4. Usage: generate.py [FOLDER | --words]

FOLDER is the root of the repository, or of a copy that a test compares; --words prints the words.
"""

import json
import re
import sys
from pathlib import Path

here = Path(__file__).resolve().parents[1]
grammar = (here / "grammar/Schedule.g4").read_text(encoding="utf-8")
# Comments and sets of characters hold quotes of their own.
rules = re.sub(r"//.*|\[(?:\\.|[^\]\\])*\]", "", grammar)
words = {word for word in re.findall(r"'([a-z_]+)'", rules)}
constants = words & {"true", "false"}
operators = words & {"and", "or", "not", "in"}
control = words & {"if", "else", "for", "while", "repeat", "let", "phase", "defer", "drain", "fill", "overlap", "insert", "with"}
declarations = words & {"schedule", "model", "cluster", "placement", "fn", "block", "rule", "action", "import", "pipe"}
others = words - constants - operators - control - declarations
actions = r"[A-Z][A-Z0-9_]*"


def alternatives(of):
    return "|".join(sorted(of))


def textmate():
    def rule(name, match):
        return {"name": f"{name}.pp", "match": match}

    def keywords(name, of):
        return rule(name, rf"\b({alternatives(of)})\b")

    return {
        "name": "pipeline schedule",
        "scopeName": "source.pp",
        "fileTypes": ["pp"],
        "patterns": [
            rule("comment.line.double-slash", r"//.*$"),
            {"name": "string.quoted.double.pp", "begin": '"', "end": '"|$', "patterns": [rule("constant.character.escape", r"\\.")]},
            rule("constant.numeric", r"\b\d+(\.\d+)?([eE][+-]?\d+)?\b"),
            keywords("constant.language", constants),
            keywords("keyword.operator.word", operators),
            keywords("keyword.control", control),
            keywords("storage.type", declarations),
            keywords("keyword.other", others),
            rule("entity.name.function.action", rf"\b{actions}\b"),
            rule("entity.name.function", r"\b[A-Za-z_]\w*(?=\()"),
            rule("keyword.operator", r"->|\.\.|[-+*/%?:=<>!@]=?"),
        ],
    }


def vim():
    lines = [
        '" Highlights pipeline schedules. Made by editors/generate.py.',
        'if exists("b:current_syntax")',
        "  finish",
        "endif",
    ]
    groups = {"Constant": constants, "Operator": operators, "Conditional": control, "Structure": declarations, "Keyword": others}
    for group, of in groups.items():
        # `contains` and its like would be options of the command: a match takes any word.
        lines.append(rf"syntax match pp{group} /\<\%({alternatives(of).replace('|', chr(92) + '|')}\)\>/")
    lines += [
        rf"syntax match ppAction /\<{actions.replace('*', '*')}\>/",
        r"syntax match ppNumber /\<\d\+\%(\.\d\+\)\?\%([eE][+-]\?\d\+\)\?\>/",
        r'syntax region ppString start=/"/ skip=/\\./ end=/"\|$/ oneline',
        "syntax match ppComment /\\/\\/.*$/ contains=@Spell",
    ]
    for group in [*groups, "Number", "String", "Comment"]:
        lines.append(f"highlight default link pp{group} {group}")
    lines += ["highlight default link ppAction Function", 'let b:current_syntax = "pp"']
    return "\n".join(lines) + "\n"


def pygments():
    def group(token, of):
        listed = ", ".join(f'"{word}"' for word in sorted(of))
        return f"            (words(({listed},), prefix=r\"\\b\", suffix=r\"\\b\"), {token}),"

    rows = "\n".join(
        [
            group("Keyword.Constant", constants),
            group("Operator.Word", operators),
            group("Keyword", control),
            group("Keyword.Declaration", declarations),
            group("Keyword.Reserved", others),
        ]
    )
    return f'''"""Highlights schedules with Pygments. Made by editors/generate.py."""

from pygments.lexer import RegexLexer, words
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Whitespace


class ScheduleLexer(RegexLexer):  # type: ignore[misc]
    """Pipeline schedules."""

    name = "Pipeline schedule"
    aliases = ["pp"]  # noqa: RUF012
    filenames = ["*.pp"]  # noqa: RUF012
    tokens = {{  # noqa: RUF012
        "root": [
            (r"\\s+", Whitespace),
            (r"//.*", Comment.Single),
            (r'"(\\\\.|[^"\\\\\\n])*"?', String),
            (r"\\d+\\.\\d+([eE][+-]?\\d+)?|\\d+[eE][+-]?\\d+", Number.Float),
            (r"\\d+", Number.Integer),
{rows}
            (r"{actions}\\b", Name.Function),
            (r"[A-Za-z_]\\w*(?=\\()", Name.Function),
            (r"[A-Za-z_]\\w*", Name),
            (r"->|\\.\\.|[=<>!]=|[-+*/%?:=<>@.]", Operator),
            (r"[{{}}()\\[\\],;]", Punctuation),
        ]
    }}
'''


if sys.argv[1:] == ["--words"]:
    print(*sorted(words), sep="\n")
    sys.exit()
root = Path(sys.argv[1]) if len(sys.argv) > 1 else here
for name, text in {
    "editors/vscode/syntaxes/pp.tmLanguage.json": json.dumps(textmate(), indent=2) + "\n",
    "editors/vim/syntax/pp.vim": vim(),
    "editors/nvim/syntax/pp.vim": vim(),
    "python/src/ppcc/_pygments.py": pygments(),
}.items():
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text, encoding="utf-8")
