// Clauses of scenarios (tests/conformance/README.md) about publishing that no other test asks for.
import type pg from 'pg'
import { createOutbox, type OutboxEvent } from 'postbox'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { useDatabase } from '../support/database.ts'
import { inTransaction } from '../support/in-transaction.ts'
import { collector } from '../support/signals.ts'

const database = useDatabase()
let pool: pg.Pool

beforeAll(async () => {
  pool = database.pool({ max: 5 })
  await outboxOf().migrate()
})

beforeEach(async () => {
  await database.query('delete from outbox')
})

function outboxOf(options: object = {}) {
  return createOutbox({ database: pool, schema: database.schema, logger: false, ...options })
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n + 1)

// I-10
test('a message is seen by nobody else until its transaction commits, and by everybody then', async () => {
  const outbox = outboxOf()
  const client = await database.client()
  const seen: unknown[] = []
  const look = async (tx: pg.ClientBase): Promise<void> => {
    seen.push((await outbox.pending(tx)).map(({ body }) => body))
  }

  await client.query('begin')
  await outbox.publish(client, 'orders', 'one')
  await outbox.publishMany(client, 'orders', ['two', 'three'])
  await look(client)
  await inTransaction(pool, look)
  await client.query('commit')
  await inTransaction(pool, look)
  await client.end()

  const all = ['one', 'two', 'three']
  expect(seen).toEqual([all, [], all])
})

// U-PUB-09, U-PUB-10, I-28
describe('a sleeper is told', () => {
  /** How often the queue was told of by the time that the work is done. */
  async function toldBy(work: (outbox: ReturnType<typeof outboxOf>) => Promise<unknown>): Promise<number> {
    const channel = `postbox:${database.schema}.outbox`
    const ear = await database.client()
    const heard = collector<string>('notifications')
    ear.on('notification', ({ payload }) => heard.add(payload ?? ''))
    await ear.query(`listen "${channel}"`)

    await work(outboxOf({ wake: 'always' }))

    // It comes after all that were committed before it.
    await pool.query(`select pg_notify($1, 'end')`, [channel])
    await heard.find((payload) => payload === 'end')
    await ear.end()
    return heard.all.filter((payload) => payload === 'orders').length
  }

  const batch = (options: object) => (outbox: ReturnType<typeof outboxOf>) =>
    inTransaction(pool, (tx) => outbox.publishMany(tx, 'orders', upTo(3), options))

  test.each([
    ['an hour later', { delayMs: 3_600_000 }, 0],
    ['in the year 2500', { at: new Date('2500-01-01T00:00:00Z') }, 0],
    ['long ago', { at: new Date(0) }, 1],
    ['now', { delayMs: 0 }, 1],
  ])('of a batch that is due %s as often as it helps', async (_, options, times) => {
    expect(await toldBy(batch(options))).toBe(times)
  })

  test('once by a publish that is a transaction of its own', async () => {
    expect(await toldBy((outbox) => outbox.publishNow('orders', 1))).toBe(1)
  })
})

// U-PUB-18
test('a batch that the table refuses is told with its error, its bytes and nothing written, and throws it', async () => {
  const events: OutboxEvent[] = []
  const outbox = outboxOf({ onEvent: (event: OutboxEvent) => events.push(event) })
  await database.query(`alter table outbox add constraint good check (queue <> 'bad')`)
  const publishing = inTransaction(pool, (tx) => outbox.publishMany(tx, 'bad', ['four', 'three']))
  const error = await publishing.catch((thrown: unknown) => thrown)
  await database.query('alter table outbox drop constraint good')

  expect(error).toMatchObject({ code: '23514' })
  expect(events).toEqual([
    { kind: 'published', queue: 'bad', count: 0, bytes: 9, durationMs: expect.any(Number), error },
  ])
})

// U-PUB-21
test('pending shows the first thousand of what waits, unless it is told another number', async () => {
  const outbox = outboxOf()
  const seen: unknown[] = []
  await inTransaction(pool, async (tx) => {
    await outbox.publishMany(tx, 'orders', upTo(1_001))
    for (const options of [{}, { limit: 1_001 }])
      seen.push((await outbox.pending(tx, options)).map(({ body }) => body))
  })

  expect(seen).toEqual([upTo(1_000), upTo(1_001)])
})
