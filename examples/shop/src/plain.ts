import type { View } from './frame.ts'

interface Column {
  readonly title: readonly [string, string]
  readonly width: number
  readonly value: (view: View) => string | number
}

// 80 wide in all. The rows come a second apart, so how much is delivered per second needs no column.
const columns: readonly Column[] = [
  { title: ['', 'time'], width: 7, value: ({ seconds }) => `${seconds} s` },
  { title: ['', 'orders'], width: 8, value: ({ tally }) => tally.ordersPlaced },
  { title: ['rolled', 'back'], width: 7, value: ({ tally }) => tally.ordersDeclined },
  { title: ['', 'delivered'], width: 10, value: ({ tally }) => tally.delivered },
  { title: ['', 'retried'], width: 8, value: ({ tally }) => tally.retried },
  { title: ['', 'waiting'], width: 8, value: ({ waiting }) => waiting },
  { title: ['dead', 'ever'], width: 6, value: ({ tally }) => tally.died },
  { title: ['dead', 'replayed'], width: 9, value: ({ tally }) => tally.deadReplayed },
  { title: ['timers', 'cancelled'], width: 10, value: ({ tally }) => tally.timersCancelled },
  { title: ['timers', 'fired'], width: 7, value: ({ tally }) => tally.remindersSent },
]

/** For a file or a log: two lines of headings, then rows. */
export const plainHeading: readonly string[] = [line(({ title }) => title[0]), line(({ title }) => title[1])]

export function plainRow(view: View): string {
  return line(({ value }) => value(view))
}

function line(cell: (column: Column) => string | number): string {
  return columns.map((column) => String(cell(column)).padStart(column.width)).join('')
}
