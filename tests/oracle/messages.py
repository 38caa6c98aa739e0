"""Whether a message of Weir's says what TensorFlow's says."""
import re

LEAST_SAID = 0.55  # of TensorFlow's words: programs look for them


def bare(message):
    """|message| without the node or the device that TensorFlow names at its end, or before it."""
    message = re.sub(r'^\{\{function_node [^}]*\}\} ', '', message)
    return re.split(r" for '\{\{node| with input shapes:|\n\t \[\[\{\{node|; NodeDef: |NodeDef '| on /job:localhost/", message)[0]


def words(message):
    """Words, numbers and shapes."""
    return re.findall(r'[A-Za-z]{2,}|\[[^\]]*\]|-?\d+', message)


def numbers(message):
    """As they are, and without those in names."""
    return set(re.findall(r'(?<![\w.])-?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?!\w)', message))


def share_said(got, want):
    """Of what TensorFlow's message |want| says, the share that Weir's says, too. All of it where the two tell of other features."""
    features = [re.findall('(?:Name|Key|Feature): ([\\w<>]+)', message) for message in (got, want)]
    if features[0] != features[1]:
        return 1
    wanted, said = words(want), set(words(got))
    return sum(w in said for w in wanted) / max(1, len(wanted))


def other_number(got, want):
    """Whether |got| lacks a number of |want| and has one that |want| has not."""
    said, wanted = numbers(got), numbers(want)
    return bool(wanted - said and said - wanted)


def compare_messages(got, want):
    """None, or what is wrong with |got| where TensorFlow says |want|."""
    got, want = bare(got), bare(want)
    if share_said(got, want) < LEAST_SAID:
        return 'says something else'
    return 'says another number' if other_number(got, want) else None
