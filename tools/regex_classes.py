#!/usr/bin/env python3
"""Writes src/base/regex_classes.inc: which characters \\p{Lu}, \\p{Greek} and their kin of regular expressions stand for.

    regex_classes.py > src/base/regex_classes.inc

TensorFlow is asked about every character, since its answers ours are to be; names that it does not know are left out.
"""
import os

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
import numpy as np
import tensorflow as tf

CATEGORIES = 'Cc Cf Co Cs Ll Lm Lo Lt Lu Mc Me Mn Nd Nl No Pc Pd Pe Pf Pi Po Ps Sc Sk Sm So Zl Zp Zs'.split()
SCRIPTS = '''Adlam Ahom Anatolian_Hieroglyphs Arabic Armenian Avestan Balinese Bamum Bassa_Vah Batak Bengali Bhaiksuki Bopomofo Brahmi
Braille Buginese Buhid Canadian_Aboriginal Carian Caucasian_Albanian Chakma Cham Cherokee Chorasmian Common Coptic Cuneiform Cypriot
Cypro_Minoan Cyrillic Deseret Devanagari Dives_Akuru Dogra Duployan Egyptian_Hieroglyphs Elbasan Elymaic Ethiopic Garay Georgian
Glagolitic Gothic Grantha Greek Gujarati Gunjala_Gondi Gurmukhi Gurung_Khema Han Hangul Hanifi_Rohingya Hanunoo Hatran Hebrew Hiragana
Imperial_Aramaic Inherited Inscriptional_Pahlavi Inscriptional_Parthian Javanese Kaithi Kannada Katakana Kawi Kayah_Li Kharoshthi
Khitan_Small_Script Khmer Khojki Khudawadi Kirat_Rai Lao Latin Lepcha Limbu Linear_A Linear_B Lisu Lycian Lydian Mahajani Makasar
Malayalam Mandaic Manichaean Marchen Masaram_Gondi Medefaidrin Meetei_Mayek Mende_Kikakui Meroitic_Cursive Meroitic_Hieroglyphs Miao
Modi Mongolian Mro Multani Myanmar Nabataean Nag_Mundari Nandinagari New_Tai_Lue Newa Nko Nushu Nyiakeng_Puachue_Hmong Ogham Ol_Chiki
Ol_Onal Old_Hungarian Old_Italic Old_North_Arabian Old_Permic Old_Persian Old_Sogdian Old_South_Arabian Old_Turkic Old_Uyghur Oriya
Osage Osmanya Pahawh_Hmong Palmyrene Pau_Cin_Hau Phags_Pa Phoenician Psalter_Pahlavi Rejang Runic Samaritan Saurashtra Sharada Shavian
Siddham SignWriting Sinhala Sogdian Sora_Sompeng Soyombo Sundanese Sunuwar Syloti_Nagri Syriac Tagalog Tagbanwa Tai_Le Tai_Tham
Tai_Viet Takri Tamil Tangsa Tangut Telugu Thaana Thai Tibetan Tifinagh Tirhuta Todhri Toto Tulu_Tigalari Ugaritic Vai Vithkuqi Wancho
Warang_Citi Yezidi Yi Zanabazar_Square'''.split()
RUNES = np.array([c for c in range(0x110000) if not 0xd800 <= c < 0xe000])
TEXTS = tf.constant([chr(c).encode() for c in RUNES])


def class_of_each(names):
    """The names that TensorFlow knows, and for each character the place of its class among them, plus 1."""
    known, classes = [], np.zeros(0x110000, np.int64)
    for name in names:
        try:
            is_in = tf.strings.regex_full_match(TEXTS, '(?s)\\p{' + name + '}').numpy()
        except tf.errors.InvalidArgumentError:
            continue
        known.append(name)
        assert not classes[RUNES[is_in]].any(), f'{name} has characters of another class'
        classes[RUNES[is_in]] = len(known)
    return known, classes


def table(head, rows):
    print(f'static const {head} = {{')
    line = '   '
    for row in rows:
        if len(line) + len(row) > 97:
            print(line)
            line = '   '
        line += f' {row},'
    print(f'{line}\n}};\n')


def write(what, names):
    known, classes = class_of_each(names)
    if 'Cs' in known:  # characters that no text has
        classes[0xd800:0xe000] = known.index('Cs') + 1
    starts = [0, *(np.flatnonzero(np.diff(classes)) + 1)]
    table(f'char* const {what}_names[]', ['""', *(f'"{n}"' for n in known)])
    table(f'uint32_t {what}_starts[]', [f'{c << 8 | classes[c]:#x}' for c in starts])


def main():
    print('''// regex_classes.inc — The classes of Unicode's characters, of the version that TensorFlow has.
// Written by tools/regex_classes.py; not to be changed by hand. Sorted; the low byte is the place
// of the class's name.
// clang-format off
''')
    write('category', CATEGORIES)
    write('script', SCRIPTS)


if __name__ == '__main__':
    main()
