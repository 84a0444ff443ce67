// Claims of ordered queues, one statement each, on rows that the test has written itself.
import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { createOutbox } from 'postbox'
import { beforeAll, beforeEach } from 'vitest'
import {
  claimInOrder,
  type OrderedClaimRow,
  type OrderedQueue,
  type OrderedQueueRow,
} from '../../packages/postbox/src/sql/claim-in-order.ts'
import { resolveNames } from '../../packages/postbox/src/sql/names.ts'
import type { TestDatabase } from './database.ts'

export interface OrderClaimed {
  /** What was taken, by seq. */
  readonly seqs: readonly number[]
  /** Settled keys for which there was no room. */
  readonly left: unknown
  /** What is told of the first queue that was asked for. */
  readonly queue: OrderedQueueRow | undefined
}

export interface OrderClaims {
  /** A row of queue `orders` for each key that is named, in this order: their seqs are 1, 2, 3 … */
  publish(...keys: readonly (string | null)[]): Promise<void>
  /** Of `orders` one row of all that is fresh, unless told otherwise. */
  claim(wanted: Partial<OrderedQueue>, generation?: number): Promise<OrderClaimed>
  claimAll(queues: readonly Partial<OrderedQueue>[], generation?: number): Promise<OrderClaimed>
}

const oneOfAll: OrderedQueue = {
  queue: 'orders',
  room: 1,
  leaseMs: 60_000,
  after: '0',
  dueFromMs: null,
  keys: [],
  keysFrom: null,
}

/** The tables of the file, emptied after each test. */
export function useOrderClaims(database: TestDatabase): OrderClaims {
  const names = resolveNames({ schema: database.schema, table: 'outbox' })
  let pool: pg.Pool
  beforeAll(async () => {
    pool = database.pool()
    await createOutbox({ database: pool, schema: database.schema, logger: false }).migrate()
  })
  beforeEach(({ onTestFinished }) => {
    onTestFinished(async () => {
      await database.query('truncate outbox, outbox_queues restart identity')
    })
  })
  const claimAll: OrderClaims['claimAll'] = async (wanted, generation) => {
    const queues = wanted.map((given) => ({ ...oneOfAll, ...given }))
    const { text, values } = claimInOrder(names, {
      token: randomUUID(),
      queues,
      generation: generation ?? null,
    })
    const { rows } = await pool.query<OrderedClaimRow & pg.QueryResultRow>(text, [...values])
    const queue = rows.filter((row) => row.kind === 'queue').find((row) => row.queue === queues[0]?.queue)
    const seqs = rows.filter((row) => row.kind === 'message').map(({ seq }) => Number(seq))
    return { seqs: seqs.toSorted((a, b) => a - b), left: JSON.parse(queue?.leftkeys ?? 'null'), queue }
  }
  return {
    async publish(...keys) {
      for (const key of keys) {
        await database.query(
          `insert into outbox (id, queue, key, body) values (gen_random_uuid(), 'orders', $1, '1')`,
          [key],
        )
      }
    },
    claim: (wanted, generation) => claimAll([wanted], generation),
    claimAll,
  }
}
