import type { Paint } from './paint.ts'
import { thousands } from './paint.ts'
import type { Tally } from './shop.ts'

/** What one frame shows. */
export interface View {
  readonly state: 'open' | 'closing' | 'closed'
  readonly seconds: number
  readonly tally: Readonly<Tally>
  /** Rows in the outbox table now. */
  readonly waiting: number
  /** Dead letters now. */
  readonly dead: number
  /** Messages delivered in the last second. */
  readonly rate: number
  /** Earlier values of both, oldest first. */
  readonly past: readonly { readonly rate: number; readonly waiting: number }[]
}

/** How much past a sparkline has room for. */
export const sparklinePoints = 44

/** The live table of a terminal: always the same number of lines, none longer than 76 columns. */
export function frameLines(view: View, paint: Paint): string[] {
  const { tally, waiting, dead, rate, past } = view
  const rates = paint('green', sparkline(past.map((point) => point.rate)))
  const waits = paint('yellow', sparkline(past.map((point) => point.waiting)))
  const pair = (left: string, right: string): string => `  ${left}    ${right}`
  const cell = (label: string, count: number): string =>
    paint('dim', label.padEnd(22)) + paint('bold', thousands(count).padStart(13))
  const graph = (label: string, bars: string, count: number): string =>
    `  ${paint('dim', label.padEnd(22))}${bars}${paint('bold', thousands(count).padStart(8))}`
  return [
    '',
    heading(view, paint),
    '',
    pair(cell('orders committed', tally.ordersPlaced), cell('orders rolled back', tally.ordersDeclined)),
    pair(cell('coupons committed', tally.couponsKept), cell('coupons rolled back', tally.couponsWithdrawn)),
    pair(cell('messages delivered', tally.delivered), cell('deliveries retried', tally.retried)),
    pair(cell('timers armed', tally.timersArmed), cell('timers cancelled', tally.timersCancelled)),
    pair(cell('dead letters', dead), cell('dead letters replayed', tally.deadReplayed)),
    `  ${paint('dim', 'the last one died of'.padEnd(22))}${paint('red', tally.lastDeath.slice(0, 52).padStart(52))}`,
    '',
    graph('delivered per second', rates, rate),
    graph('waiting in the outbox', waits, waiting),
  ]
}

function heading({ state, seconds }: View, paint: Paint): string {
  const [left, key] = {
    open: ['The shop is open', 'Ctrl-C closes it'],
    closing: ['The shop closes: what waits is delivered', 'Ctrl-C skips that'],
    closed: ['The shop is closed', ''],
  }[state] as [string, string]
  const right = [key, `${seconds} s`].filter((text) => text !== '').join(' · ')
  return `  ${paint('bold', left)}${paint('dim', right.padStart(74 - left.length))}`
}

/** Each value as a bar of eighths; the highest is a full one. */
function sparkline(values: readonly number[]): string {
  const highest = Math.max(1, ...values)
  const bars = values.map((value) => ' ▁▂▃▄▅▆▇█'[Math.ceil((value / highest) * 8)])
  return bars.join('').padStart(sparklinePoints)
}

// 80 in all.
const columnWidths = [7, 10, 13, 11, 10, 7, 10, 12] as const

/** The same for a file or a log: the rows of a table, and its heading. */
export const plainHeading: string = plainLine([
  'time',
  'orders',
  'rolled back',
  'delivered',
  'retried',
  'dead',
  'waiting',
  'per second',
])

export function plainRow({ seconds, tally, waiting, dead, rate }: View): string {
  const { ordersPlaced, ordersDeclined, delivered, retried } = tally
  const counts = [ordersPlaced, ordersDeclined, delivered, retried, dead, waiting, rate]
  return plainLine([`${seconds} s`, ...counts.map(thousands)])
}

function plainLine(cells: readonly string[]): string {
  return cells.map((text, column) => text.padStart(columnWidths[column]!)).join('')
}
