export interface Bar {
  readonly label: string
  readonly value: number
  readonly min: number
  readonly max: number
  readonly text: string
  /** A limit is nobody's to reach: it is drawn as an outline. */
  readonly kind: 'ours' | 'peer' | 'limit'
}

export interface Chart {
  readonly title: string
  /** What the numbers are. */
  readonly unit: string
  readonly bars: readonly Bar[]
}

/** `character`: no font of a system is wider than this on average. */
const size = { width: 760, character: 7.5, row: 26, bar: 16, top: 58, cap: 4 }

/** Horizontal bars with their spread, for light and dark pages. Text, not a picture of text: it can be read aloud, searched and compared. */
export function barChart({ title, unit, bars }: Chart): string {
  const left = 16 + size.character * Math.max(0, ...bars.map(({ label }) => label.length))
  const longest = Math.max(...bars.map(({ max }) => max))
  const right = 16 + size.character * Math.max(0, ...bars.map(({ text }) => text.length))
  const room = size.width - left - right
  const lengthOf = (value: number): number => Math.max(1, (value / longest) * room)
  const height = size.top + Math.max(1, bars.length) * size.row + 8
  const rows = bars.map((bar, index) => row(bar, { y: size.top + index * size.row, left, lengthOf }))
  const nothing = `<text class="unit" x="8" y="${size.top + 12}">nobody has a figure</text>`
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size.width} ${height}" role="img" aria-label="${escaped(`${title}: ${unit}`)}">
<style>
text { font: 13px system-ui, sans-serif; fill: #24292f } .title { font-weight: 600 } .label { text-anchor: end } .unit { fill: #57606a }
.peer { fill: #afb8c1 } .ours { fill: #54aeff } .limit { fill: none; stroke: #8c959f; stroke-dasharray: 4 3 } .spread { stroke: #24292f; stroke-width: 1.5; fill: none }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .unit { fill: #9198a1 } .peer { fill: #59626d } .ours { fill: #1f6feb } .limit { stroke: #9198a1 } .spread { stroke: #e6edf3 } }
</style>
<text class="title" x="8" y="20">${escaped(title)}</text>
<text class="unit" x="8" y="40">${escaped(unit)}</text>
${rows.length === 0 ? nothing : rows.join('\n')}
</svg>
`
}

interface Place {
  readonly y: number
  readonly left: number
  readonly lengthOf: (value: number) => number
}

function row({ label, value, min, max, text, kind }: Bar, { y, left, lengthOf }: Place): string {
  const middle = y + size.bar / 2
  const [from, to] = [left + lengthOf(min), left + lengthOf(max)].map((x) => x.toFixed(1))
  const cap = `m0 ${-size.cap}v${2 * size.cap}`
  const spread = `M${from} ${middle}H${to}M${from} ${middle}${cap}M${to} ${middle}${cap}`
  return [
    `<text class="label" x="${left - 8}" y="${middle + 4}">${escaped(label)}</text>`,
    `<rect class="${kind}" x="${left}" y="${y}" width="${lengthOf(value).toFixed(1)}" height="${size.bar}"/>`,
    ...(Number(to) - Number(from) < size.cap ? [] : [`<path class="spread" d="${spread}"/>`]),
    `<text x="${(Number(to) + 6).toFixed(1)}" y="${middle + 4}">${escaped(text)}</text>`,
  ].join('\n')
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}
