// What was published, and whether the deliveries add up to it.
import type pg from 'pg'
import { createOutbox } from 'postbox'
import { expect } from 'vitest'
import type { TestDatabase } from '../support/database.ts'
import { longWaitLimitMs } from '../support/patience.ts'
import { eventually } from '../support/signals.ts'
import type { Random } from './random.ts'

export interface Ledger {
  /** A transaction with one to five messages; every fourth is rolled back, whole or to a savepoint. */
  publish(random: Random): Promise<void>
  /** One such transaction after the other, whenever there is room, until it is over. */
  publishUntil(isOver: () => boolean, random: Random): Promise<void>
  /** One message that commits. */
  publishOne(body: unknown): Promise<string>
  /** Resolves when no row is left. */
  untilEmpty(withinMs?: number): Promise<void>
  /** Every message that was committed was delivered, no other was, nothing is left. Returns those delivered more than once. */
  assertConserved(): Promise<readonly Repeated[]>
}

/** A message that was delivered more than once, and by whom, in the order of its deliveries. */
export interface Repeated {
  readonly id: string
  readonly workers: readonly number[]
}

/** Where the tables are. */
export type Books = Pick<TestDatabase, 'query' | 'schema'>

/** Where workers record what they deliver. */
export async function createDeliveredTable(database: Books): Promise<void> {
  await database.query(
    'create table delivered (id uuid not null, worker int not null, deliveries int not null)',
  )
}

/** Begins a new page: the tables are emptied. */
export async function openLedger(database: Books, pool: pg.Pool): Promise<Ledger> {
  const outbox = createOutbox({ database: pool, schema: database.schema })
  const committed = new Set<string>()
  await database.query('truncate outbox, outbox_dead, delivered')
  const publish = async (random: Random): Promise<void> => {
    const client = await pool.connect()
    const bodies = Array.from({ length: 1 + random.below(5) }, (_, index) => index)
    await client.query('begin')
    const kept = await outbox.publishMany(client, 'orders', bodies)
    const isRolledBack = random.isBelow(0.25)
    if (isRolledBack && random.isBelow(0.5)) {
      await client.query('savepoint s')
      await outbox.publishMany(client, 'orders', bodies)
      await client.query('rollback to savepoint s')
    }
    const isKept = !isRolledBack || random.isBelow(0.5)
    await client.query(isKept ? 'commit' : 'rollback')
    client.release()
    if (isKept) for (const { id } of kept) committed.add(id)
  }
  return {
    publish,
    async publishUntil(isOver, random) {
      while (!isOver()) {
        await publish(random)
        await eventually(async () => isOver() || (await hasRoom(database)), {
          what: 'room for more messages',
        })
      }
    },
    async publishOne(body) {
      const { id } = await outbox.publishNow('orders', body)
      committed.add(id)
      return id
    },
    untilEmpty: (withinMs = longWaitLimitMs) => untilEmpty(database, withinMs),
    async assertConserved() {
      const deliveries = await database.query<{ id: string; workers: number[] }>(
        'select id::text, array_agg(worker order by deliveries) as workers from delivered group by id',
      )
      const delivered = new Set(deliveries.map(({ id }) => id))
      expect({
        lost: [...committed].filter((id) => !delivered.has(id)),
        invented: [...delivered].filter((id) => !committed.has(id)),
        left: await database.query('select id, deliveries from outbox'),
        dead: await database.query('select id from outbox_dead'),
      }).toEqual({ lost: [], invented: [], left: [], dead: [] })
      return deliveries.filter(({ workers }) => workers.length > 1)
    },
  }
}

async function hasRoom(database: Books): Promise<boolean> {
  const rows = await database.query('select from outbox where lease_token is null limit 30')
  return rows.length < 30
}

async function untilEmpty(database: Books, withinMs: number): Promise<void> {
  const count = async (): Promise<number> => {
    const [row] = await database.query<{ count: number }>('select count(*)::int as count from outbox')
    return row?.count ?? 0
  }
  await eventually(async () => (await count()) === 0, { what: 'every message to be delivered', withinMs })
}
