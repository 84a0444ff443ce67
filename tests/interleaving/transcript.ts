// What a person reads: one order step by step, and the table of all scenarios.
import { shortId, shortToken } from './books.ts'
import type { Explored } from './explore.ts'
import { deadLine, storedLine } from './reconcile.ts'
import type { Line, Run } from './run-order.ts'
import type { Finished, Snapshot, Told } from './terms.ts'

/** `key` is what POSTBOX_ORDER names the scenario or the twin by. */
export function transcriptOf(key: string, run: Run): string {
  const { order, lines, violation, impossibleAt } = run
  return [
    `${key}, order ${order}${lines.length < order.length ? ` as far as ${order.slice(0, lines.length)}` : ''}`,
    ...lines.map(lineText),
    ...(impossibleAt === null ? [] : [`  ${order[impossibleAt]} waits, and cannot have its turn`]),
    ...(violation === null ? [] : [`  broken: ${violation.promise}: ${violation.details}`]),
    `  again: POSTBOX_ORDER='${key}:${order}'`,
  ].join('\n')
}

function lineText({ letter, label, finished, snapshot }: Line, nth: number): string {
  const own = finished.find((one) => one.letter === letter && one.step.label === label)
  const others = finished.filter((one) => one !== own)
  const told = own === undefined ? '… waits' : toldText(own)
  return [
    `  ${String(nth + 1).padStart(2)} ${letter} ${label.padEnd(22)} ${told}`,
    ...others.map((one) => `     ${one.letter} ${`… ${one.step.label}`.padEnd(22)} ${toldText(one)}`),
    `${' '.repeat(30)}${snapshotText(snapshot)}`,
  ].join('\n')
}

function toldText({ told, waited }: Finished): string {
  const all = told.map(oneText).filter((text) => text !== '')
  return `${waited ? '(waited) ' : ''}${all.length === 0 ? 'nothing' : all.join(', ')}`
}

function oneText(told: Told): string {
  switch (told.kind) {
    case 'claimed':
      return `#${shortId(told.lease.id)} claimed by ${shortToken(told.lease.token)}`
    case 'claimed enough':
      return ''
    case 'started':
      return `#${shortId(told.lease.id)} started`
    case 'joined':
      return `${told.count} joined`
    case 'written':
      return `#${shortId(told.lease.id)} ${told.ending.kind} by ${shortToken(told.lease.token)}`
    case 'lease lost':
      return `#${shortId(told.lease.id)} not ${told.ending.kind}: lease lost`
    case 'armed':
      return `#${shortId(told.made.id)} written`
    case 'cancelled':
    case 'nothing to cancel':
    case 'kept':
      return `${told.timer} ${told.kind}`
    case 'replayed':
      return `#${shortId(told.id)} replayed`
    case 'not replayed':
      return `#${shortId(told.id)} ${told.because}`
    case 'worked':
      return `effect of #${shortId(told.id)}`
    case 'failed':
      return `failed: ${told.sqlState}`
    default:
      return told.kind
  }
}

function snapshotText({ messages, dead, effects }: Snapshot): string {
  const rows = [...messages.map(storedLine), ...dead.map(deadLine)]
  const all = [...rows, ...effects.map((id) => `effect of #${shortId(id)}`)]
  return `[${all.join(' | ')}]`
}

export function tableOf(explored: readonly Explored[]): string {
  const heads = [
    'scenario',
    'sessions',
    'steps',
    'orders',
    'run',
    'impossible',
    'waited',
    'violations',
    'errors',
  ]
  const rows = explored.map(({ scenario, orders, run, impossible, waited, violated, failures }) => [
    scenario.key,
    `${Object.keys(scenario.programs).length}`,
    Object.values(scenario.programs)
      .map(({ length }) => length)
      .join('+'),
    ...[orders, run, impossible, waited, violated.length].map(String),
    [...failures].map(([state, count]) => `${count} × ${state}`).join(', '),
  ])
  const sum = (pick: (one: Explored) => number): string =>
    String(explored.reduce((total, one) => total + pick(one), 0))
  const total = [
    `${explored.length} scenarios`,
    '',
    '',
    sum(({ orders }) => orders),
    sum(({ run }) => run),
    sum(({ impossible }) => impossible),
    sum(({ waited }) => waited),
    sum(({ violated }) => violated.length),
    '',
  ]
  return aligned([heads, ...rows, total])
}

/** The first column to the left, the others to the right. */
function aligned(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]!.map((_, nth) => Math.max(...rows.map((row) => row[nth]!.length)))
  return rows
    .map((row) =>
      row
        .map((cell, nth) => (nth === 0 ? cell.padEnd(widths[nth]!) : cell.padStart(widths[nth]!)))
        .join('  '),
    )
    .join('\n')
}
