"""Every fact that a C header states, as a C program that prints them:   python3 facts.py HEADER

The program's output is one line per fact, `name value`: the size and alignment of each type, the offset and size of each field,
the value of each enumerator and constant, and what each handle and function pointer is. Compiled once against our declarations
and once against the toolkit's, the two tables must be equal.

The parser knows the little C that the header uses and stops at anything else, so that no declaration goes unchecked in silence.
"""
import re
import sys

TOKEN = re.compile(r"\s*(?:([A-Za-z_]\w*)|(0[xX][0-9a-fA-F]+|\d+)|([{}()\[\];,=*+-]))")


class Header:
    def __init__(self, text):
        self.facts = []  # Lines of C
        text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
        text = re.sub(r"\\\n", " ", text)
        code = []
        for line in text.splitlines():
            if line.lstrip().startswith("#"):
                self.directive(line.strip())
            else:
                code.append(line)
        self.tokens = []
        text, at = "\n".join(code).rstrip(), 0
        while at < len(text):
            match = TOKEN.match(text, at)
            if not match:
                sys.exit(f"facts.py: cannot read: {text[at:at + 60].strip()!r}")
            self.tokens.append(match.group().strip())
            at = match.end()
        self.at = 0
        while self.at < len(self.tokens):
            self.declaration()

    # ---- tokens

    def fail(self, words):
        sys.exit(f"facts.py: {words} near: {' '.join(self.tokens[max(0, self.at - 4):self.at + 8])}")

    def look(self, ahead=0):
        at = self.at + ahead
        return self.tokens[at] if at < len(self.tokens) else ""

    def take(self, expected=None):
        token = self.look()
        if not token or (expected is not None and token != expected):
            self.fail(f"expected {expected or 'more'}")
        self.at += 1
        return token

    def name(self):
        token = self.take()
        if not re.fullmatch(r"[A-Za-z_]\w*", token):
            self.fail("expected a name")
        return token

    # ---- facts

    def directive(self, line):
        if match := re.fullmatch(r"#define (\w+) (.+)", line):
            self.facts.append(f"CONSTANT({match[1]})")
        elif not re.fullmatch(r"#(include <\w+\.h>|ifndef \w+_H|define \w+_H|endif)", line):
            sys.exit(f"facts.py: cannot read: {line}")

    def declaration(self):
        """One declaration: a typedef, or an enum without a name."""
        if self.look() == "enum":
            self.take("enum")
            self.enumerators()
        else:
            self.take("typedef")
            kind = self.look()
            if kind in ("struct", "union", "enum") and self.look(2) == "{":
                self.take(kind)
                tag = self.name()
                if kind == "enum":
                    self.enumerators()
                else:
                    self.fields(tag, "")
                if self.name() != tag:
                    self.fail(f"the typedef of {kind} {tag} has another name")
                self.facts.append(f"TYPE({tag})")
            else:
                self.alias()
        self.take(";")

    def enumerators(self):
        self.take("{")
        while self.look() != "}":
            enumerator = self.name()
            self.take("=")
            self.take()
            self.facts.append(f"VALUE({enumerator})")
            if self.look() == ",":
                self.take(",")
        self.take("}")

    def fields(self, struct, path):
        """Fields of a struct or union, `path` deep in `struct`."""
        self.take("{")
        while self.look() != "}":
            if self.look() in ("struct", "union") and self.look(1) == "{":
                self.take()
                start = len(self.facts)
                if self.braces_are_followed_by_a_name():
                    name = self.name_after_braces()
                    self.fields(struct, f"{path}{name}.")
                    self.take(name)
                    self.facts.insert(start, f"FIELD({struct}, {path}{name})")
                else:
                    self.fields(struct, path)
            else:
                while self.look(1) not in (";", "["):
                    self.take()
                self.facts.append(f"FIELD({struct}, {path}{self.name()})")
                if self.look() == "[":
                    while self.take() != "]":
                        pass
            self.take(";")
        self.take("}")

    def closing(self):
        depth, at = 0, self.at
        while True:
            depth += {"{": 1, "}": -1}.get(self.tokens[at], 0)
            at += 1
            if depth == 0:
                return at

    def braces_are_followed_by_a_name(self):
        return self.tokens[self.closing()] != ";"

    def name_after_braces(self):
        return self.tokens[self.closing()]

    def alias(self):
        """A typedef of a scalar, a handle or a function pointer: compatible with its own right-hand side."""
        words = []
        while self.look() != ";":
            words.append(self.take())
        text = " ".join(words)
        if match := re.fullmatch(r"(.*) \( \* (\w+) \) (\(.*\))", text):
            name, other = match[2], f"{match[1]} (*){match[3]}"
        else:
            name, other = words[-1], " ".join(words[:-1])
        if name.startswith("sg__"):
            return  # Our own name: the toolkit has none to compare with.
        self.facts.append(f"TYPE({name})")
        self.facts.append(f"SAME({name}, {other})")


PROGRAM = r"""
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include FACTS_HEADER

#define TYPE(type) printf("sizeof(" #type ") %zu\nalignof(" #type ") %zu\n", sizeof(type), _Alignof(type));
#define FIELD(type, field) \
    printf("offsetof(" #type ", " #field ") %zu\nsizeof(" #type "." #field ") %zu\n", offsetof(type, field), \
           sizeof(((type *)0)->field));
#define VALUE(enumerator) printf("%s %lld\n", #enumerator, (long long)(enumerator));
#define CONSTANT(name) printf("%s %lld\n", #name, (long long)(intptr_t)(name));
#define SAME(type, ...) printf("%s is %s: %d\n", #type, #__VA_ARGS__, __builtin_types_compatible_p(type, __VA_ARGS__));

int main(void)
{
@FACTS@
    return 0;
}
"""


def program(text):
    lines = "\n".join("    " + fact for fact in Header(text).facts)
    return PROGRAM.replace("@FACTS@", lines)


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as header:
        print(program(header.read()))
