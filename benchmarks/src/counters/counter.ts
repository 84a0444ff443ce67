import type { Measurement, Totals, Workload } from './measurement.ts'

/**
 * exact: any difference fails, fewer too, since a cheaper publish has to become the new baseline. ceiling: up to a tenth
 * more passes, and so does fewer. floor: up to 0.02 less passes, and so does more. shown: never fails.
 */
export type Gate = 'exact' | 'ceiling' | 'floor' | 'shown'

/** One line of the table: a figure per message and how it is judged. */
export interface Counter {
  readonly name: string
  readonly gates: Readonly<Record<Workload, Gate>>
  /** null: does not apply, e.g. a share of updates where there were none. */
  readonly figure: (measurement: Measurement) => number | null
}

const exact = { publish: 'exact', consume: 'exact' } as const
const ceiling = { publish: 'ceiling', consume: 'ceiling' } as const
// A consumer looks when it is woken and when a timer says so, and its batches form by themselves: how often it asks, and
// what a page's next visitor finds to clean up, is a matter of timing. What becomes of each row is not.
const exactForPublishers = { publish: 'exact', consume: 'shown' } as const

export const counters: readonly Counter[] = [
  perMessage('insert statements', 'insertStatements', exactForPublishers),
  perMessage('claim statements', 'claimStatements', exactForPublishers),
  perMessage('delete statements', 'deleteStatements', exactForPublishers),
  perMessage('begin and commit', 'blockStatements', exactForPublishers),
  perMessage('other statements', 'otherStatements', exactForPublishers),
  perMessage('commits that wrote', 'commits', exactForPublishers),
  perMessage('notifications', 'notifications', exactForPublishers),
  perMessage('rows inserted', 'rowsInserted', exact),
  perMessage('rows updated', 'rowsUpdated', exact),
  perMessage('rows deleted', 'rowsDeleted', exact),
  {
    name: 'HOT share of updates',
    gates: { publish: 'floor', consume: 'floor' },
    figure: ({ totals }) => (totals.rowsUpdated === 0 ? null : totals.hotUpdates / totals.rowsUpdated),
  },
  perMessage('dead rows', 'deadRows', exactForPublishers),
  perMessage('WAL records', 'walRecords', ceiling),
  perMessage('WAL bytes', 'walBytes', ceiling),
]

function perMessage(name: string, total: keyof Totals, gates: Counter['gates']): Counter {
  return { name, gates, figure: ({ totals, messages }) => totals[total] / messages }
}
