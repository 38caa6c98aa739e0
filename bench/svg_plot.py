"""A plot of a few lines as an SVG file."""
import math

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 640, 360, 70, 310, 50
COLOURS = ['#c03020', '#e09030', '#2060a0', '#40a0c0', '#308040', '#808080']


def frame(title, x_name, y_name):
    middle = (TOP + BOTTOM) / 2
    return [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="13">',
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
            f'<text x="{WIDTH / 2}" y="24" text-anchor="middle" font-size="15">{title}</text>',
            f'<path d="M{LEFT} {TOP}V{BOTTOM}H{WIDTH - 20}" fill="none" stroke="black"/>',
            f'<text x="{(LEFT + WIDTH) / 2}" y="{HEIGHT - 12}" text-anchor="middle">{x_name}</text>',
            f'<text x="18" y="{middle}" text-anchor="middle" transform="rotate(-90 18 {middle})">{y_name}</text>']


def write(path, title, x_name, y_name, lines, labels=None):
    """Lines of (name, values at 0, 1, 2, ..., or at |labels|), in the colours' order, on a logarithmic scale."""
    low, high = math.log10(min(min(values) for _, values in lines) / 1.2), math.log10(max(max(values) for _, values in lines) * 1.2)
    count = max(len(values) for _, values in lines)

    def x(i):
        return LEFT + 40 + i * (WIDTH - LEFT - 90) / max(count - 1, 1)

    def y(value):
        return BOTTOM - (math.log10(value) - low) / (high - low) * (BOTTOM - TOP)

    out = frame(title, x_name, y_name)
    for i in range(count):
        out.append(f'<text x="{x(i):.0f}" y="{BOTTOM + 20}" text-anchor="middle">{labels[i] if labels else i}</text>')
    marks = [digit * 10. ** power for power in range(math.floor(low), math.ceil(high)) for digit in (1, 2, 3, 5)]
    for value in [mark for mark in marks if low <= math.log10(mark) <= high]:
        out.append(f'<path d="M{LEFT} {y(value):.1f}H{WIDTH - 20}" stroke="#ddd"/>')
        out.append(f'<text x="{LEFT - 8}" y="{y(value) + 4:.1f}" text-anchor="end">{value:.2g}</text>')
    for k, ((name, values), colour) in enumerate(zip(lines, COLOURS)):
        points = ' '.join(f'{x(i):.1f},{y(v):.1f}' for i, v in enumerate(values))
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{x(i):.1f}" cy="{y(v):.1f}" r="3.5" fill="{colour}"/>' for i, v in enumerate(values)]
        out.append(f'<text x="{WIDTH - 30}" y="{TOP + 16 + 18 * k}" text-anchor="end" fill="{colour}">{name}</text>')
    with open(path, 'w') as f:
        f.write('\n'.join(out + ['</svg>']) + '\n')
