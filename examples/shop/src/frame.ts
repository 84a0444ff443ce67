import type { Paint } from './paint.ts'
import { thousands } from './paint.ts'
import type { Tally } from './shop.ts'

/** What one frame, or one row, shows. */
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
  const { pair, cell, halves, error, graph } = parts(paint)
  const rates = paint('green', sparkline(past.map((point) => point.rate)))
  const waits = paint('yellow', sparkline(past.map((point) => point.waiting)))
  const timers = halves(['cancelled', tally.timersCancelled], ['fired', tally.remindersSent])
  const deaths = halves(['replayed', tally.deadReplayed], ['waiting', dead])
  return [
    '',
    heading(view, paint),
    '',
    pair(cell('orders committed', tally.ordersPlaced), cell('orders rolled back', tally.ordersDeclined)),
    pair(cell('coupons committed', tally.couponsKept), cell('coupons rolled back', tally.couponsWithdrawn)),
    pair(cell('reminder timers armed', tally.timersArmed), timers),
    pair(cell('messages delivered', tally.delivered), cell('deliveries retried', tally.retried)),
    error('last retried after', tally.lastFailure),
    pair(cell('dead letters ever', tally.died), deaths),
    error('last died of', tally.lastDeath),
    '',
    graph('delivered per second', rates, rate),
    graph('waiting in the outbox', waits, waiting),
  ]
}

type Half = readonly [label: string, count: number]

/** What the lines are made of: two cells of 35 columns (or two halves instead of one), or one thing beside its label. */
function parts(paint: Paint) {
  const label = (text: string): string => paint('dim', text.padEnd(22))
  const number = (count: number, width: number): string => paint('bold', thousands(count).padStart(width))
  const half = ([text, count]: Half, width: number): string =>
    paint('dim', text) + number(count, width - text.length)
  return {
    pair: (left: string, right: string): string => `  ${left}    ${right}`,
    cell: (text: string, count: number): string => label(text) + number(count, 13),
    halves: (left: Half, right: Half): string => `${half(left, 19)} ${half(right, 15)}`,
    error: (text: string, message: string): string =>
      `  ${label(text)}${paint('red', message.slice(0, 52).padStart(52))}`,
    graph: (text: string, bars: string, count: number): string =>
      `  ${label(text)}${bars}${number(count, 8)}`,
  }
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
