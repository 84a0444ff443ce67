import type pg from 'pg'
import { createOutbox, type Outbox } from 'postbox'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { useDatabase } from '../support/database.ts'

const database = useDatabase()
let pool: pg.Pool

beforeAll(async () => {
  pool = database.pool()
  await outboxOf().migrate()
})

beforeEach(async () => {
  await database.query('delete from outbox')
})

function outboxOf(options: object = {}): Outbox {
  return createOutbox({ database: pool, schema: database.schema, logger: false, ...options })
}

describe('stats', () => {
  const none = { count: 0, atLeast: false }
  const insert = (count: number, columns: string, values: string): Promise<unknown> =>
    database.query(
      `insert into outbox (id, queue, body${columns}) select gen_random_uuid(), 'orders', ''${values} from generate_series(1, $1)`,
      [count],
    )

  test('count what is ready, leased and scheduled, and tell how long the oldest has been ready', async () => {
    const outbox = outboxOf()
    outbox.subscribe('orders', () => {})
    outbox.subscribe('emails', () => {})
    const lease = ', lease_token, leased_until'
    await insert(3, ', created_at', `, now() - interval '2 min'`)
    await insert(2, lease, `, gen_random_uuid(), now() + interval '1 min'`)
    await insert(1, lease, `, gen_random_uuid(), now() - interval '1 ms'`)
    await insert(4, ', due_at', `, now() + interval '1 min'`)
    await insert(5, ', created_at, due_at', `, now() - interval '1 h', now() - interval '1 min'`)
    await insert(
      1,
      `, due_at${lease}`,
      `, now() - interval '1 h', gen_random_uuid(), now() + interval '1 min'`,
    )
    await insert(9, ', due_at', `, 'infinity'`)

    const { orders, emails } = await outbox.stats()

    expect(orders).toEqual({
      ready: { count: 9, atLeast: false },
      leased: { count: 3, atLeast: false },
      scheduled: { count: 4, atLeast: false },
      parked: { count: 0, atLeast: false },
      oldestReadyMs: expect.any(Number),
      paused: null,
    })
    // Of a message that was due, since then: not the hour since it was published.
    expect(orders!.oldestReadyMs).toBeGreaterThanOrEqual(120_000)
    expect(orders!.oldestReadyMs).toBeLessThan(3_600_000)
    expect(emails).toEqual({
      ready: none,
      leased: none,
      scheduled: none,
      parked: none,
      oldestReadyMs: null,
      paused: null,
    })
    await database.query('delete from outbox')
  })

  test('stop counting at ten thousand, and say that there are at least as many', async () => {
    const outbox = outboxOf({ queues: { orders: {} } })
    await insert(10_001, '', '')
    await insert(10_001, ', due_at', `, now() + interval '1 h'`)

    const { orders } = await outbox.stats()

    expect(orders).toMatchObject({
      ready: { count: 10_000, atLeast: true },
      scheduled: { count: 10_000, atLeast: true },
    })
  })

  test('say what to do when the tables were never made', async () => {
    const outbox = outboxOf({ table: 'never_made', queues: { orders: {} } })

    await expect(outbox.stats()).rejects.toMatchObject({ code: 'OUTBOX_SCHEMA_MISSING' })
  })
})
