// Statements one by one, on tables of any name, with leases that a real claim made.
import type pg from 'pg'
import { recogniseDatabase } from '../../packages/postbox/src/adapters/recognise.ts'
import type { Draft } from '../../packages/postbox/src/core/message.ts'
import { deliveriesOf } from '../../packages/postbox/src/runtime/claim-answer.ts'
import { migrate } from '../../packages/postbox/src/runtime/migrate.ts'
import { cancelTimer } from '../../packages/postbox/src/sql/cancel-timer.ts'
import {
  type ClaimRow,
  claimMessages,
  type MessageRow,
} from '../../packages/postbox/src/sql/claim-messages.ts'
import { insertMessage } from '../../packages/postbox/src/sql/insert-message.ts'
import { type NameOptions, type Names, resolveNames } from '../../packages/postbox/src/sql/names.ts'
import type { Release } from '../../packages/postbox/src/sql/release-leases.ts'
import type { Statement } from '../../packages/postbox/src/sql/statement.ts'

const token = '0190163d-8694-739b-9aea-966c26f8ad91'
export const otherToken = '0190163d-8694-739b-9aea-966c26f8ad92'

type Queryable = Pick<pg.Pool | pg.PoolClient, 'query'>

export async function makeTables(pool: pg.Pool, options: NameOptions): Promise<Names> {
  const names = resolveNames(options)
  const database = recogniseDatabase(pool)
  if (database === null) throw new Error('expected a pool')
  await migrate(database, names)
  return names
}

let made = 0

/** A message of queue `orders` that is due at once; a timer, when it has a name. */
export function draftOf(given: Partial<Draft> = {}): Draft {
  const id = `0190163d-8694-739b-9aea-${String(++made).padStart(12, '0')}`
  const fixed = { id, queue: 'orders', key: null, timerId: null, headers: null, generation: null } as const
  const conflict = given.timerId === undefined || given.timerId === null ? 'none' : 'keep'
  return { ...fixed, conflict, body: Buffer.from('{}'), schedule: { kind: 'now' }, ...given }
}

export async function send<Row>(to: Queryable, { text, values }: Statement<Row>): Promise<readonly Row[]> {
  const { rows } = await to.query(text, [...values])
  return rows as Row[]
}

/** The statements of an outbox on one connection, or on any of a pool. */
export function benchOf(names: Names, on: Queryable) {
  const run = <Row>(statement: Statement<Row>): Promise<readonly Row[]> => send(on, statement)
  const publish = (draft: Draft) => run(insertMessage(names, draft, { wake: 'poll', mark: null }))
  return {
    run,
    publish,
    /** Whether it was armed: 1 row, or kept: none. */
    arm: async (timerId: string, given: Partial<Draft> = {}): Promise<number> =>
      (await publish(draftOf({ timerId, ...given }))).length,
    cancel: async (timerId: string): Promise<boolean> =>
      (await run(cancelTimer(names, { queue: 'orders', timerId, mark: null }))).length > 0,
    claim: (room = 500, as = token): Promise<readonly MessageRow[]> => claimOf(names, { run, room, as }),
    rows: async (columns: string): Promise<readonly Record<string, unknown>[]> =>
      (await on.query(`select ${columns} from ${names.messages} order by seq`)).rows,
    deadRows: async (columns: string): Promise<readonly Record<string, unknown>[]> =>
      (await on.query(`select ${columns} from ${names.dead} order by original_seq`)).rows,
  }
}

interface Claiming {
  readonly run: <Row>(statement: Statement<Row>) => Promise<readonly Row[]>
  readonly room: number
  readonly as: string
}

/** Everything that is free, in the order of seq. */
async function claimOf(names: Names, { run, room, as }: Claiming): Promise<readonly MessageRow[]> {
  const queue = { queue: 'orders', room, leaseMs: 60_000, after: '0', dueFromMs: null, sweep: true }
  const rows: readonly ClaimRow[] = await run(claimMessages(names, { token: as, queues: [queue] }))
  return rows.filter((row) => row.kind === 'message').sort((a, b) => Number(a.seq) - Number(b.seq))
}

export function fencesOf(rows: readonly MessageRow[], as = token): readonly Release[] {
  return rows.map((row) => ({ seq: row.seq, token: as, deliveriesBefore: deliveriesOf(row) - 1 }))
}

/** The SQLSTATE of what goes wrong; null when nothing does. */
export async function stateOf(failing: Promise<unknown>): Promise<unknown> {
  try {
    await failing
    return null
  } catch (error) {
    return (error as { code?: unknown }).code
  }
}
