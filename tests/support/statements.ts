// What an outbox sends, by the names that its statements have in the source.
import type pg from 'pg'
import { claimFresh } from '../../packages/postbox/src/sql/claim-fresh.ts'
import { claimMessages } from '../../packages/postbox/src/sql/claim-messages.ts'
import { extendLeases, holdsLeases } from '../../packages/postbox/src/sql/extend-leases.ts'
import {
  cancelTransaction,
  doomTransaction,
  fenceTransaction,
  readTransactionStatus,
  restorePatience,
} from '../../packages/postbox/src/sql/fence-transaction.ts'
import { readIsolation, rollback } from '../../packages/postbox/src/sql/isolation.ts'
import { type Names, resolveNames } from '../../packages/postbox/src/sql/names.ts'
import { pauseQueue, resumeQueue } from '../../packages/postbox/src/sql/pause-queue.ts'
import { readPauses } from '../../packages/postbox/src/sql/read-pauses.ts'
import { checkClear, getUp, lieDown, sendWord } from '../../packages/postbox/src/sql/sleep.ts'
import type { Statement } from '../../packages/postbox/src/sql/statement.ts'
import { settling } from './settling-statements.ts'

export interface Sent {
  /** The statement's name; the first word of its text, where it has none (`listen`). */
  readonly name: string
  readonly values: readonly unknown[]
  /** The server process it was sent to. */
  readonly pid: number
  /** null: not answered yet, or failed. */
  rows: readonly Record<string, unknown>[] | null
}

export interface Statements {
  readonly all: readonly Sent[]
  named(name: string): readonly Sent[]
  /** How many of each name. */
  counts(): Readonly<Record<string, number>>
  /** Counts from here on. */
  clear(): void
}

/** Writes down every statement on any connection of the pool, from those that are still to be made on. */
export function watchStatements(pool: pg.Pool, schema: string): Statements {
  const nameOf = namesByText(resolveNames({ schema, table: 'outbox' }))
  let all: Sent[] = []
  pool.on('connect', (client) => {
    const query: (...given: unknown[]) => unknown = client.query.bind(client) as never
    const watched = (...given: unknown[]): unknown => {
      const { text, values } = sentBy(given)
      const { processID: pid } = client as unknown as { processID: number }
      const sent: Sent = { name: nameOf(text), values, pid, rows: null }
      all.push(sent)
      const answer = query(...given)
      if (answer instanceof Promise) answer.then(({ rows }) => Object.assign(sent, { rows })).catch(() => {})
      return answer
    }
    Object.assign(client, { query: watched })
  })
  const named = (name: string): readonly Sent[] => all.filter((sent) => sent.name === name)
  return {
    get all() {
      return all
    },
    named,
    counts: () => Object.fromEntries(all.map(({ name }) => [name, named(name).length])),
    clear() {
      all = []
    },
  }
}

/** Text and values, or one object of both: a statement that the connection keeps. */
function sentBy([first, second]: readonly unknown[]): { text: string; values: readonly unknown[] } {
  const { text, values } = Object(first) as { readonly text?: unknown; readonly values?: unknown }
  const given = text === undefined ? second : values
  return { text: String(text ?? first), values: Array.isArray(given) ? given : [] }
}

function namesByText(names: Names): (text: string) => string {
  const statements = [
    claimMessages(names, { token: '', queues: [] }),
    claimFresh(names, { token: '', queue: '', room: 0, leaseMs: 0, after: '0' }),
    claimFresh(names, { token: '', queue: '', room: 0, leaseMs: 0, after: '0', generation: 0 }),
    claimMessages(names, { token: '', queues: [], generation: 0 }),
    ...settling(names, ''),
    fenceTransaction(names, []),
    readTransactionStatus(''),
    cancelTransaction({ xid: '', pid: '' }),
    doomTransaction,
    restorePatience(''),
    extendLeases(names, []),
    holdsLeases(names, []),
    lieDown(names, []),
    checkClear(names, []),
    getUp(names, []),
    sendWord(''),
    pauseQueue(names, { queue: '', by: '', wake: 'quiet' }),
    resumeQueue(names, { queue: '', by: '', wake: 'quiet' }),
    readPauses(names, []),
    readIsolation,
    rollback,
  ]
  const known = new Map(
    statements.flatMap(({ text, keptText = text, name }: Statement<unknown>) => [
      [text, name],
      [keptText, name],
    ]),
  )
  return (text) => known.get(text) ?? text.trim().split(/\s/)[0] ?? ''
}
