"""The languages of programs, as data: how each is compiled and run, and what of the machine it needs.

A new language is one entry of `LANGUAGES`, its name in `assay.tasks.code.Language`, and its tool-chain on the machines
that grade. Python is not here: its programs are forked from a warm interpreter (`verifiers.code.script_guest`).
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

from sandboxes.base import Limits, Profile

_MODULES = ("verifiers.code.compile_guest", "verifiers.code.program_guest")
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "HOME": "/work", "LANG": "C.UTF-8"}
_COMPILE_LIMITS = Limits(
    cpu_seconds=30.0,
    wall_seconds=120.0,
    memory_bytes=2 << 30,
    processes=64,
    file_bytes=128 << 20,
    result_bytes=64 << 20,
)
TOKEN_BYTES = 32
"""Length of the text by which a program's tests say that they ran to their end; the harnesses below read as many."""


@dataclass(frozen=True, slots=True)
class Harness:
    """How test code of the language is put around a program; see `verifiers.code.program_tests`."""

    before_tests: str
    """Stands between the program and the tests."""
    files: dict[str, str]
    """Further files. They run the tests, and write the token that they read from standard input when all have run."""
    compile: tuple[str, ...]
    run: tuple[str, ...]
    definition: str
    """A pattern of a line that defines the entry point, `NAME`: a completion with one stands alone."""
    heads: str
    """A pattern of the lines of a prompt that a completion which stands alone needs as well."""
    renames: tuple[tuple[str, str], ...] = ()
    """Patterns in the tests, and what stands for them, so that a program cannot define something else by the name;
    `KEY` in it is a word that no program knows."""
    restore: str = ""
    """Line before the tests that gives a word of theirs, `NAME`, its own meaning back."""
    declaration: str = ""
    """A pattern of what a program may not declare by a name that the tests use."""


@dataclass(frozen=True, slots=True)
class Language:
    """One language."""

    name: str
    tags: frozenset[str]
    """Tags of fenced blocks."""
    source: str
    """File name of a program."""
    compile: tuple[str, ...]
    """Command that compiles it, or only checks it."""
    run: tuple[str, ...]
    """Command that runs it."""
    tools: tuple[str, ...]
    """Programs and folders of the machine that both need; those with `?` in front may be missing."""
    harness: Harness
    artifacts: tuple[str, ...] = ()
    """Patterns of the files that compiling makes; none where the source itself is run."""
    memory_signs: tuple[bytes, ...] = ()
    """What a program that has run out of memory writes to standard error."""
    environment: dict[str, str] = field(default_factory=lambda: dict(_ENVIRONMENT))
    heap_share: float = 0.6
    """What part of the memory of a test a runtime that must be told may use for objects (`HEAP_MB` in a command)."""
    compile_limits: Limits = _COMPILE_LIMITS

    def profile(self) -> Profile:
        """Return the sandbox in which the language's programs are compiled and run."""
        return Profile(f"code-{self.name}", modules=_MODULES, paths=self._present())

    def missing(self) -> list[str]:
        """Return what it needs and this machine lacks."""
        return [path for path in self.tools if not path.startswith("?") and not Path(path).exists()]

    def _present(self) -> tuple[str, ...]:
        paths = (path.removeprefix("?") for path in self.tools)
        return tuple(path for path in paths if Path(path).exists())

    def stands_alone(self, code: str, entry_point: str | None) -> bool:
        """Whether a completion is a whole program part, rather than the rest of a prompt."""
        if entry_point is None:
            return False
        pattern = self.harness.definition.replace("NAME", re.escape(entry_point))
        return re.search(pattern, code, re.MULTILINE) is not None


_CPP_MAIN = """\
#include <cstdio>
#include <cstdlib>
int assay_tests_main();
namespace {
char token[32];
// Before anything of the program runs, whose own initialisers come later.
__attribute__((constructor(101))) void read_token() {
    if (std::fread(token, 1, sizeof token, stdin) != sizeof token) std::abort();
}
}
int main() {
    assay_tests_main();
    std::fflush(stdout);
    std::fwrite(token, 1, sizeof token, stdout);
}
"""
_CPP_BEFORE_TESTS = """
#undef NDEBUG
#undef assert
#include <assert.h>
#define main __attribute__((optimize("O0"))) assay_tests_main
"""
_CPP = ("/usr/bin/g++", "-std=c++17", "-O2", "-w", "-fmax-errors=5", "-o", "program", "main.cpp")

_JS_MAIN = """\
'use strict';
const fs = require('fs');
const assert = require('assert');
const token = Buffer.alloc(32);
if (fs.readSync(0, token) !== token.length) process.exit(3);
const write = fs.writeSync;
let checks = 0, failed = false, over = false;
const check = (condition, ...message) => {
  checks += 1;
  if (condition) return;
  failed = true;
  throw new Error('assertion failed' + (message.length ? ': ' + message.join(' ') : ''));
};
const counted = (original) => (...args) => {
  checks += 1;
  try { return original(...args); } catch (error) { failed = true; throw error; }
};
const checkers = counted(assert.ok);
for (const name of Object.keys(assert)) {
  if (typeof assert[name] === 'function' && name !== 'AssertionError') checkers[name] = counted(assert[name]);
}
checkers.strict = checkers;
const define = (name, value) => Object.defineProperty(globalThis, name, { value, enumerable: false });
define('assay_check_KEY', check);
define('assay_assert_KEY', Object.freeze(checkers));
process.on('beforeExit', () => {
  if (over || failed || !checks) return;
  over = true;
  write(1, token);
});
require('./main.js');
"""

_JAVA_MAIN = """\
public class AssayMain {
    public static void main(String[] args) throws Throwable {
        byte[] token = System.in.readNBytes(32);
        if (token.length != 32) System.exit(3);
        java.io.PrintStream out = System.out;
        Main.main(args);
        out.flush();
        out.write(token);
        out.flush();
    }
}
"""
_JAVA_HOME = str(Path("/usr/bin/javac").resolve().parent)  # a launcher looks for its libraries beside itself
_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-XX:-UsePerfData")
_JVM_MEMORY = (
    "-XmxHEAP_MBm",
    "-Xms16m",
    "-XX:ReservedCodeCacheSize=48m",
    "-XX:CompressedClassSpaceSize=64m",
    "-Xss16m",
)

LANGUAGES: dict[str, Language] = {
    language.name: language
    for language in (
        Language(
            name="cpp",
            tags=frozenset({"cpp", "c++", "cc", "cxx", "c"}),
            source="main.cpp",
            compile=_CPP,
            run=("./program",),
            tools=("/usr/bin/g++", "/usr/bin/as", "/usr/bin/ld", "/usr/include"),
            artifacts=("program",),
            memory_signs=(b"std::bad_alloc",),
            harness=Harness(
                # Without optimization, since a main function need not return anything, and another function must.
                before_tests=_CPP_BEFORE_TESTS,
                files={"assay_main.cpp": _CPP_MAIN},
                compile=(*_CPP, "assay_main.cpp"),
                run=("./program",),
                definition=r"^\w[^\n;]*\bNAME\s*\([^\n;]*$",
                heads=r"^[ \t]*(?:#include|using\b)[^\n]*$",
                restore="#undef NAME\n",
            ),
        ),
        Language(
            name="javascript",
            tags=frozenset({"javascript", "js", "node", "mjs", "cjs"}),
            source="main.js",
            compile=("/usr/bin/node", "--check", "main.js"),
            run=("/usr/bin/node", "main.js"),
            tools=("/usr/bin/node", "?/usr/share/nodejs", "?/usr/share/node_modules"),
            memory_signs=(b"heap out of memory", b"Array buffer allocation failed"),
            harness=Harness(
                before_tests="\n",
                files={"assay_main.js": _JS_MAIN},
                compile=("/usr/bin/node", "--check", "main.js"),
                run=("/usr/bin/node", "assay_main.js"),
                definition=r"^(?:(?:const|let|var|async\s+function|function)\s+|module\.exports\.|exports\.)NAME\b",
                heads=r"^(?:const|let|var)\b[^\n]*\brequire\([^\n]*$",
                renames=(
                    (r"\bconsole\s*\.\s*assert\b", "assay_check_KEY"),
                    (r"""\brequire\(\s*['"](?:node:)?assert(?:/strict)?['"]\s*\)""", "assay_assert_KEY"),
                ),
            ),
        ),
        Language(
            name="java",
            tags=frozenset({"java"}),
            source="Main.java",
            compile=(f"{_JAVA_HOME}/javac", "-J-XX:TieredStopAtLevel=1", "-nowarn", "-d", "classes", "Main.java"),
            run=(f"{_JAVA_HOME}/java", *_JVM, *_JVM_MEMORY, "-cp", "classes", "Main"),
            tools=(f"{_JAVA_HOME}/javac", "?/etc/java-17-openjdk", "?/etc/java-21-openjdk"),
            artifacts=("classes/**/*.class",),
            memory_signs=(b"OutOfMemoryError", b"StackOverflowError"),
            harness=Harness(
                before_tests="\n",
                files={"AssayMain.java": _JAVA_MAIN},
                compile=(
                    *(f"{_JAVA_HOME}/javac", "-J-XX:TieredStopAtLevel=1", "-nowarn", "-d", "classes"),
                    *("Main.java", "AssayMain.java"),
                ),
                run=(f"{_JAVA_HOME}/java", *_JVM, *_JVM_MEMORY, "-cp", "classes", "AssayMain"),
                definition=r"^(?:public\s+)?(?:final\s+)?class\s+Solution\b",
                heads=r"^import\b[^\n]*$",
                declaration=r"\b(?:class|interface|enum|record)\s+(\w+)",
            ),
        ),
    )
}
