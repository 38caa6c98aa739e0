"""Regular expressions in RE2's syntax."""
import numpy as np

TEXTS = ['', 'a', 'b', 'ab', 'abc', 'aab', 'aaa', 'ABC', 'aBc', 'a b', 'a\nb', '\n', 'foo.bar', 'x1y22', '_id9', '-', ']', '[', '^', '$',
         'caf\u00e9', 'CAF\u00c9', '\u00e9', '\u03b1\u03b2', '\u0391', 'K', 'k', '\u212a', 's', '\u017f', '\U0001f600', '0x1F', '3.14',
         'aaaaaaaaaa', 'foo bar baz', 'a{2}', 'a\\d', '{', '}', '*', '\x00', '\t', ' ', 'abab', 'abcabcabc', 'a' * 60, '\u00c5', '\u0416']
BYTES = [b'\xff', b'a\xffb', b'\xc3', b'\xe0\x80\x80', b'\xed\xa0\x80', b'\xf4\x90\x80\x80', b'\xc3\xa9\xc3']
GOOD = ['', 'a', 'ab', 'a*', 'a+', 'a?', 'a{2}', 'a{2,}', 'a{1,3}', 'a{0}', '(a|b)*', 'a|b|', '|a', '(ab)+', '(?:ab)+', '(?P<n>ab)c',
        '.', '.*', '.+', '(?s).*', '(?s:.)', '[abc]+', '[^abc]*', '[a-z]+', '[a-zA-Z0-9_]*', '[]]', '[^]]*', '[-a]+', '[a-]+', '[a\\-z]+', '[\\]]',
        '[[:alpha:]]+', '[[:^alpha:]]+', '[[:digit:][:space:]]+', '[[:word:]]+', '[[:punct:]]+', '[[:xdigit:]]+', '[[:cntrl:]]', '[[:ascii:]]*',
        '[[:upper:]]+', '[[:graph:]]+', '[[:print:]]+', '[[:blank:]]', '[[:lower:]]+', '[[:alnum:]]+', '\\d+', '\\D+', '\\w+', '\\W+', '\\s+',
        '\\S+', '[\\d.]+', '[\\w]+', '[^\\s]+', '[\\D]+', '^abc$', '\\Aabc\\z', 'a^b', 'a$', '(?m)a$\\nb', '(?m)a\n^b', '\\bfoo\\b.*', 'a\\Bb',
        'a\\bb', '.*\\bbar\\b.*', '(?i)abc', '(?i)CAF\u00c9', '(?i:a)b', 'a(?i)b', '(?i)[a-c]+', '(?i)\u03b1', '(?i)k', '(?i)s', '(?i)\u00e5',
        '(?i)\u0436', '(?i)[^k]', '(?-i)a', '(?U)a+', '(?ims)A.*', '\\.', 'foo\\.bar', '\\x61', '\\x{61}', '\\x{1F600}', '\\141', '\\0', '\\n',
        '\\t', '\\Qa{2}\\E', '\\Qa\\d', 'a\\Q\\E', '\\C', '\\C*', 'a\\Cb', 'caf\u00e9', '[\u03b1-\u03c9]+', '[^\u00e9]', '[\u00e9]', '\\\\', 'a\\\\d',
        'a{', 'a{,2}', 'a{x}', '{', '}', ']', 'a{2', '(a*)*', '(a*)+', '(a|aa)+', '((a))', '()', '(|a)+', 'x*', '(?:)', 'a*?', 'a+?', 'a??',
        'a{1,2}?', '(a?){10}a{10}', '(a{10}){6}', '[a-c]{3}', '(abc){3}', '[[:foo]+', '[\\x00-\\x7f]*', '\\_', '\\-', '[0-9]+\\.[0-9]*', '[.]', '[$^*]+',
        '[\\n]', '[^\\n]*', '(?i)\u212a', '(?i)\u017f', '\\pL+', '\\p{Ll}*', '\\P{Lu}', '\\p{^Lu}+', '\\P{^Greek}*', '[\\p{Greek}\\pN]+', '[^\\p{L}]+', '\\p{Any}*',
        '\\pS|\\pZ|\\pP', '(?i)\\p{Lu}+', '\\p{Cc}', '\\p{Latin}+', '\\p{Common}', 'a.c', 'a|b*c', '^', '$', '^$', '^*', '(^|a)b', '\\b', '\\B', 'a{1000}']
BAD = ['(', ')', '(a', 'a)', '[', '[a', '[z-a]', '*', '+a', '?', 'a**', 'a*+', 'a{2}{3}', 'a{1001}', 'a{3,2}', '(a{100}){100}', '\\', 'a\\', '\\1', '\\8',
       '\\Z', '\\G', '\\x', '\\x{', '\\x{110000}', '\\xg1', '(?', '(?z)', '(?P<>a)', '(?P<a', '(?P=a)', '(?<n>a)b', '(?=a)', '(?!a)', '(?<=a)', '(?<!a)', '(?i',
       '(?-)', '[[:foo:]]', '[\\Z]', '\\y', '(|*)', '|*', '(*)', 'a|+', '[\\x{110000}]', '[a-\\d]', '\\E', '\\p', '\\p{', '\\p{Lu', '\\p{}', '\\pX', '\\p{greek}', '[\\p{G}]', '\\P{^}', '\\p{L}{2000}']


def strings(items):
    return np.array([s.encode() if isinstance(s, str) else s for s in items] + [None], object)[:-1]


REWRITES = ['', 'x', '[\\0]', '\\1', '\\', 'p\\xq', '\\\\', '<\\1|\\2>', '\\9', 'a\\0\\']
CHOICES = ['b*', '(a)(b)', '', 'x*', '^', '$', '(?m)^', '(?m)$', 'a+?', '(a*?)b', '(?U)a+', '(?U)a+?', '(a)|(b)', '(?:(a)|b)*', '(a|ab)(c|bcd)(d*)', 'a*',
           '(?P<n>b)', '(a*)(a+)', '(a*?)(a+?)', '\\b', '\\B', '(\\w+) (\\w+)', '((a)b|a(b))*', '(a{1,2}?)(a*)', '(a?)(ab)?', '(|a)+', '(a|b)*?c', '[^a]', '.', '\\C',
           '(?s).', '(?i)A', 'a(?:b|c|d){2,3}?(.)', '(a+)(b+)?', 'a.c|ab', 'ab|a.c', '(.)(.)', '()', 'a||b']


def replaces(check, rng):
    texts = strings(TEXTS + BYTES + ['baaac', 'abcd', 'aab', 'abab', 'a\nb\n', 'one two three'])
    for pattern in CHOICES:
        for rewrite in REWRITES:
            for is_global in (True, False):
                check('StaticRegexReplace', [texts], {'pattern': pattern, 'rewrite': rewrite, 'replace_global': is_global})
        check('RegexReplace', [texts, strings([pattern])[0], b'(\\0)'])
    for pattern in GOOD + BAD:
        check('StaticRegexReplace', [texts], {'pattern': pattern, 'rewrite': '[\\0]'})
    for shape in ((0,), (2, 3), (), (2, 0)):
        check('RegexReplace', [strings(['ab'] * int(np.prod(shape))).reshape(shape), b'a', b'x'])
    check('RegexReplace', [texts, strings(['a']), b'x'])
    check('RegexReplace', [texts, b'a', strings(['x'])])
    atoms = ['a', 'b', '.', '[ab]', '[^a]', '\\d', '(a|b)', '(?:ab)', '\\b', 'c', '(a*)', '(b+?)', '(ab|a)']
    subjects = strings([''.join(rng.choice(list('abc1 '), int(rng.integers(0, 8)))) for _ in range(60)])
    for _ in range(300):
        pattern = ''
        for _ in range(int(rng.integers(1, 6))):
            atom = str(rng.choice(atoms))
            pattern += atom + str(rng.choice(['', '', '?', '{1,2}', '|', '*', '+', '*?', '+?', '??']))
        groups = pattern.count('(') - pattern.count('(?:')
        rewrite = '<' + ''.join(f'\\{i},' for i in range(min(groups, 9) + 1)) + '>'
        check('StaticRegexReplace', [subjects], {'pattern': pattern, 'rewrite': rewrite})


def cases(check, rng):
    replaces(check, rng)
    texts = strings(TEXTS + BYTES)
    for pattern in GOOD + BAD:
        check('StaticRegexFullMatch', [texts], {'pattern': pattern})
        check('RegexFullMatch', [texts, strings([pattern])[0]])
    for bad in (b'\xff', b'[\xff]', b'a\xc3'):
        check('StaticRegexFullMatch', [texts], {'pattern': bad})
    for shape in ((0,), (2, 3), (), (2, 0)):
        check('StaticRegexFullMatch', [strings(['ab'] * int(np.prod(shape))).reshape(shape)], {'pattern': 'a.'})
    check('RegexFullMatch', [texts, strings(['a'])])
    atoms = ['a', 'b', '.', '[ab]', '[^a]', '\\d', '(a|b)', '(?:ab)', '\\b', 'c']
    subjects = strings([''.join(rng.choice(list('abc1 '), int(rng.integers(0, 8)))) for _ in range(60)])
    for _ in range(300):
        pattern = ''
        for _ in range(int(rng.integers(1, 6))):
            pattern += str(rng.choice(atoms)) + str(rng.choice(['', '', '*', '+', '?', '{1,2}', '|']))
        check('StaticRegexFullMatch', [subjects], {'pattern': pattern})
