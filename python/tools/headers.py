"""Weir's public headers as Python objects: functions, structs, enums, callbacks, with the comment before each."""
import dataclasses
import pathlib
import re

LEFT_OUT = {'plugin.h', 'weir.h', 'export.h', 'ops.h'}  # the first is for C alone, the others declare nothing that bindings need


@dataclasses.dataclass
class Parameter:
    """A parameter or a field. |count|: of an array; |callback|: (result, parameters) of a function pointer."""
    type: str
    name: str
    count: int = 0
    callback: tuple | None = None
    comment: str = ''


@dataclasses.dataclass
class Function:
    name: str
    result: str
    parameters: list
    comment: str


@dataclasses.dataclass
class Api:
    functions: dict
    structs: dict  # name: fields
    enums: dict  # name of a constant: value
    callbacks: dict  # name of a type: (result, parameters)
    enum_types: set
    opaque: set


def strip(text):
    """Without preprocessor lines, macros and what is for C++ alone; DTYPEs come from an X macro and are added by hand."""
    text = re.sub(r'\\\n', ' ', text)
    text = re.sub(r'#ifdef __cplusplus.*?#endif[^\n]*', '', text, flags=re.S)
    return re.sub(r'^\s*#[^\n]*', '', text, flags=re.M)


def statements(text):
    """(comment, declaration) of everything at the top level."""
    comment, code, depth = [], '', 0
    for line in text.splitlines():
        bare, _, note = line.partition('//')
        if not code.strip() and not bare.strip():
            if '//' in line:
                comment.append(note.strip())
            else:
                comment = []
            continue
        code += bare + (f'/*{note.strip()}*/' if note else '') + '\n'
        depth += bare.count('{') - bare.count('}')
        ends = bare.rstrip()
        if depth == 0 and (ends.endswith(';') or ends.endswith('}')):
            yield ' '.join(comment), code
            comment, code = [], ''


def clean(code):
    return re.sub(r'\s+', ' ', re.sub(r'/\*.*?\*/', ' ', code, flags=re.S)).strip()


def notes(code):
    return ' '.join(re.findall(r'/\*(.*?)\*/', code, re.S))


def split_list(text):
    """Splits at commas outside of parentheses."""
    parts, depth, last = [], 0, ''
    for c in text:
        depth += (c == '(') - (c == ')')
        if c == ',' and depth == 0:
            parts.append(last)
            last = ''
        else:
            last += c
    return [p.strip() for p in parts + [last] if p.strip() and p.strip() != 'void']


def parameter(text):
    pointer = re.match(r'(.*?)\(\*(\w+)\)\((.*)\)$', text)
    if pointer:
        return Parameter('callback', pointer[2], callback=(pointer[1].strip(), [parameter(p) for p in split_list(pointer[3])]))
    match = re.match(r'(.*?[\s*])(\w+)(?:\[(\w+)\])?$', text)
    return Parameter(match[1].strip(), match[2], int(match[3]) if (match[3] or '').isdigit() else 4 if match[3] else 0)


def fields(body):
    """Comments stand above a field, beside it, or go on below where they began beside it."""
    out, above, code, beside = [], '', '', ''
    for line in body.splitlines():
        bare, note = clean(line), notes(line)
        if not bare:
            if out and line.startswith('     ') and not above:
                out[-1].comment += ' ' + note
            else:
                above += ' ' + note
            continue
        code, beside = f'{code} {bare}', f'{beside} {note}'
        if not bare.endswith(';'):
            continue
        for declaration in filter(str.strip, code.split(';')):
            first, *others = split_list(declaration)
            field = parameter(first)
            out += [field] + [Parameter(field.type, o.strip('* ')) for o in others]
            out[-1].comment = f'{above} {beside}'.strip()
        above = code = beside = ''
    return out


def add_enum(api, body):
    value = -1
    for item in split_list(clean(body)):
        name, _, given = item.partition('=')
        value = int(given, 0) if given.strip() else value + 1
        api.enums[name.strip()] = value


def add(api, comment, code):
    text = clean(code)
    if match := re.match(r'typedef struct (\w+) \w+;$', text):
        api.opaque.add(match[1])
    elif re.match(r'(typedef )?struct \w+ \{', text):
        name = re.search(r'struct (\w+)', text)[1]
        api.structs[name] = fields(code[code.index('{') + 1:code.rindex('}')])
    elif match := re.match(r'typedef enum (\w+) \{', text):
        api.enum_types.add(match[1])
        if match[1] != 'weir_dtype_t':
            add_enum(api, code[code.index('{') + 1:code.rindex('}')])
    elif text.startswith('enum {'):
        add_enum(api, code[code.index('{') + 1:code.rindex('}')])
    elif match := re.match(r'typedef (.*?)\(\*(\w+)\)\((.*)\)\s*;', text):
        api.callbacks[match[2]] = (match[1].strip(), [parameter(p) for p in split_list(match[3])])
    elif text.startswith('WEIR_API'):
        text = re.sub(r'WEIR_API|WEIR_MUST_USE|WEIR_PRINTF\([^)]*\)|__attribute__\(\(\w+\)\)', '', text).strip().rstrip(';').strip()
        match = re.match(r'(.*?[\s*])(weir_\w+)\s*\((.*)\)$', text)
        if '...' not in match[3]:
            api.functions[match[2]] = Function(match[2], match[1].strip(), [parameter(p) for p in split_list(match[3])], comment)


def load(folder):
    api = Api({}, {}, {}, {}, set(), set())
    for path in sorted(pathlib.Path(folder).glob('*.h')):
        if path.name not in LEFT_OUT:
            for comment, code in statements(strip(path.read_text())):
                add(api, comment, code)
    api.opaque -= set(api.structs)
    return api
