"""Faults by rule: where in a C file each could be made, and the text with it in.

Rules are patterns, not a parser: they lean on clang-format's layout (one statement a line, blanks around binary operators). A
fault that does not compile is not counted, so that a pattern may err. Lines for want of memory are left alone: only the tests that
make allocations fail get there, and they go through few of the programs.
"""
import dataclasses
import re
import zlib

OPPOSITE = {'<': '<=', '<=': '<', '>': '>=', '>=': '>', '==': '!=', '!=': '==', '+': '-', '-': '+', '&&': '||', '||': '&&'}
OTHER_CODE = {'INVALID_ARGUMENT': 'INTERNAL', 'NOT_FOUND': 'INVALID_ARGUMENT', 'CANCELLED': 'ABORTED'}
# Names of files and functions that run on GPUs alone: without one, nothing notices. In files that are named for it functions are not
# passed over.
GPU = re.compile(r'cuda|cudnn|gpu')
# Dropping these hangs or aborts at once, which shows nothing.
NEVER_DROPPED = re.compile(r'lock|mutex|cond_(wait|init)|va_(start|end)|assert|\(void\)')


@dataclasses.dataclass(frozen=True)
class Fault:
    path: str
    rule: str
    start: int
    end: int
    new: str
    line: int
    id: str

    def apply(self, text):
        return text[:self.start] + self.new + text[self.end:]


def mask(text):
    """The text with comments, strings and preprocessor lines blanked; every other character stays where it is."""
    pattern = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*'
    return re.sub(pattern, lambda m: re.sub(r'[^\n]', ' ', m.group()), text, flags=re.S | re.M)


def bodies(code):
    """(header, start, end) of each function; tables, structs and enums are no functions."""
    depth, begin, last = 0, 0, 0
    for m in re.finditer(r'[{};]', code):
        if m.group() == '{':
            if depth == 0:
                begin = m.end()
            depth += 1
        elif m.group() == '}':
            depth -= 1
        if depth == 0:
            header = code[last:begin - 1]
            if m.group() == '}' and header.rstrip().endswith(')') and '=' not in header:
                yield header, begin, m.start()
            last = m.end()


def gpu_functions(text, code):
    """Names of the functions that run on GPUs alone: by their name, by what they call, or as nobody else calls them."""
    functions, outside, at = {}, '', 0
    for header, begin, end in bodies(code):
        functions[re.findall(r'(\w+)\(', header)[0]] = code[begin:end]
        outside, at = outside + text[at:begin], end
    outside += text[at:]
    found = {name for name, body in functions.items() if GPU.search(name)}
    inner = {name for name in functions if len(re.findall(rf'\b{name}\b', outside)) == 1}  # no table has it, nor a header
    found |= {name for name in inner if re.search(r'\bweir_cuda_(launch|build)\(', functions[name])}
    while True:
        callers = {name: {other for other, body in functions.items() if other != name and re.search(rf'\b{name}\b', body)}
                   for name in inner - found}
        more = {name for name, others in callers.items() if others and others <= found}
        if not more:
            return found
        found |= more


def swap(m):
    return f'{m.group(2)}, {m.group(1)}' if m.group(1) != m.group(2) else None


def drop(m):
    return None if NEVER_DROPPED.search(m.group()) else ';'


# Rule: pattern, and what a match becomes (None: not here).
RULES = {
    'compare': (r'(?<= )(?:[<>]=?|[!=]=)(?=\s)', lambda m: OPPOSITE[m.group()]),
    'arithmetic': (r'(?<=[\w)\]] )[+-](?= )', lambda m: OPPOSITE[m.group()]),
    'logic': r'(?<= )(?:&&|\|\|)(?=\s)',
    'not': (r'!(?=[\w(*])', lambda m: ''),
    'constant': (r'(?<![\w.\'{])\d+(?![\w.}])', lambda m: str(int(m.group()) + 1) if m.group()[0] != '0' or m.group() == '0' else None),
    'drop': (r'(?<=[;{}]\n) +[*\w][\w>.\[\]-]*(?:\(.*\)| = .*);$', drop),
    'count': (r'(?<=[;{}]\n) +(?:\+\+|--)[\w>.\[\]-]+;$', drop),
    'swallow': (r'\bWEIR_TRY\(', lambda m: 'weir_status_destroy('),
    'code': (r'(?<=\bWEIR_STATUS\()[A-Z_]+', lambda m: OTHER_CODE.get(m.group(), 'INVALID_ARGUMENT')),
    'swap': (r'(?<=[(,\s])([a-z]\w*), ([a-z]\w*)(?=[,)])', swap),
    'guard': (r'^ +if \(.*\) (?:return|goto|continue|break)\b.*;$', lambda m: ';'),
    'branch': (r'(?<=\bif )\(.*\)(?= \{$)', lambda m: f'(false && {m.group()})'),
    'status': (r'(?<=return )\w+\(.*\)(?=;$)', lambda m: 'NULL'),
}
RULES['logic'] = (RULES['logic'], lambda m: OPPOSITE[m.group()])


def faults(path, text):
    """All faults of all rules in one file."""
    code, found, seen = mask(text), [], {}
    passed_over = set() if GPU.search(path) else gpu_functions(text, code)
    for header, begin, end in bodies(code):
        if re.findall(r'(\w+)\(', header)[0] in passed_over:
            continue
        for rule, (pattern, change) in RULES.items():
            if rule == 'status' and 'weir_status_t*' not in header:
                continue
            for m in re.compile(pattern, re.M).finditer(code, begin, end):
                line = text[text.rfind('\n', 0, m.start()) + 1:text.find('\n', m.end())]
                new = change(m)
                if new is None or '\n' in m.group() or 'out_of_memory' in line or '_gpu(' in line:
                    continue
                key = rule, line, m.group(), new
                seen[key] = seen.get(key, 0) + 1
                name = f'{rule}:{path}:{zlib.crc32(repr((key, seen[key])).encode()):08x}'
                found.append(Fault(path, rule, m.start(), m.end(), new, text.count('\n', 0, m.start()) + 1, name))
    return found
