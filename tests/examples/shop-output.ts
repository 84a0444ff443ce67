// What the demo printed, read back.

/** A line of numbers: the shop is open. */
export function isRow(line: string): boolean {
  return /^ +\d+ s /.test(line)
}

const counts = ['retried', 'waiting', 'died', 'replayed', 'cancelled', 'fired'] as const

export function lastRow(output: string): Record<(typeof counts)[number], number> {
  const row = output.split('\n').findLast(isRow) ?? ''
  const numbers = row.trim().split(/\s+/).slice(-counts.length).map(Number)
  return Object.fromEntries(counts.map((name, at) => [name, numbers[at]])) as ReturnType<typeof lastRow>
}

/** What the outbox has written down of its replay by filter. */
export function readOperation(output: string): Record<string, string> {
  const lines = output.matchAll(/^ {2}(replayed|by|filter|operation) +(.+)$/gm)
  return Object.fromEntries([...lines].map(([, label = '', text = '']) => [label, text]))
}

/** How many rows the verdict saw for one of its checks. */
export function rowsOf(output: string, check: string): number | undefined {
  return readVerdict(output).find(({ title }) => title === check)?.rows
}

export function readVerdict(output: string): { mark: string; title: string; rows: number; wrong: number }[] {
  return [...output.matchAll(/^ {2}([✓✗]) (.+?) +([\d,]+) +([\d,]+)$/gm)].map(
    ([, mark = '', title = '', rows = '', wrong = '']) => ({
      mark,
      title,
      rows: toNumber(rows),
      wrong: toNumber(wrong),
    }),
  )
}

export function failedChecks(output: string): string[] {
  return readVerdict(output)
    .filter(({ mark, wrong }) => mark === '✗' && wrong > 0)
    .map(({ title }) => title)
}

function toNumber(text: string): number {
  return Number(text.replaceAll(',', ''))
}
