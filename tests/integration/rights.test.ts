// The grants of SECURITY.md, as they stand there: enough for what they promise.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { createOutbox, noRetry, type Outbox, type OutboxEvent, type OutboxOptions } from 'postbox'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { useDatabase } from '../support/database.ts'
import { inTransaction } from '../support/in-transaction.ts'

const database = useDatabase()
const id = Math.random().toString(36).slice(2, 8)
const roles = ['publisher', 'subscriber', 'operator'] as const
type Role = (typeof roles)[number]
const nameOf = (role: Role): string => `postbox_${role}_${id}`

beforeAll(async () => {
  const { schema } = database
  await createOutbox({ database: database.pool(), schema }).migrate()
  for (const role of roles) await database.query(`create role ${nameOf(role)}`)
  const security = readFileSync(join(import.meta.dirname, '..', '..', 'SECURITY.md'), 'utf8')
  const grants = security.match(/```sql\n([\s\S]*?)```/)?.[1] ?? ''
  const own = roles.reduce(
    (sql, role) => sql.replaceAll(new RegExp(`\\b${role}\\b`, 'g'), nameOf(role)),
    grants,
  )
  await database.query(own.replace('schema public', `schema ${schema}`))
})

afterAll(async () => {
  // After the schema's own afterAll would be too late: roles that have rights cannot be dropped.
  for (const role of roles) await database.query(`drop owned by ${nameOf(role)}; drop role ${nameOf(role)}`)
})

/** An outbox whose every connection has the rights of the role and no others. */
async function as<T>(
  role: Role,
  work: (outbox: Outbox, pool: pg.Pool) => Promise<T>,
  options: OutboxOptions = {},
): Promise<T> {
  const connectionString = inject('postgresUrl')
  const pool = new pg.Pool({
    connectionString,
    options: `-c role=${nameOf(role)}`,
    max: 4,
    idleTimeoutMillis: 0,
  })
  try {
    return await work(
      createOutbox({ database: pool, schema: database.schema, logger: false, ...options }),
      pool,
    )
  } finally {
    await pool.end()
  }
}

describe('with the rights of', () => {
  test('a publisher everything is published, replaced, cancelled and looked at', async () => {
    await as('publisher', (outbox, pool) =>
      inTransaction(pool, async (tx) => {
        const timer = { timerId: 't', delayMs: 3_600_000 }
        await outbox.publish(tx, 'published', 1)
        await outbox.publishMany(tx, 'published', [2, 3])
        await outbox.publish(tx, 'published', 4, timer)
        await outbox.publish(tx, 'published', 5, { ...timer, onConflict: 'replace' })
        expect(await outbox.pending(tx, { queue: 'published' })).toHaveLength(4)
        expect(await outbox.cancelTimer(tx, 'published', 't')).toBe(true)
      }),
    )
  })

  test('a subscriber everything is delivered, followed on, retried, buried and counted', async () => {
    const events: OutboxEvent[] = []
    const onEvent = (event: OutboxEvent): void => void events.push(event)
    await as('publisher', async (outbox) => {
      for (const body of ['ack', 'follow', 'retry', 'die']) await outbox.publishNow('orders', body)
    })
    const drained = await as(
      'subscriber',
      async (outbox) => {
        const handle = async (body: unknown, context: { publish(queue: string, body: unknown): unknown }) => {
          if (body === 'follow') await context.publish('elsewhere', 1)
          if (body === 'retry' || body === 'die') throw new Error(String(body))
        }
        outbox.subscribe('orders', ({ body }, context) => handle(body, context), {
          retry: ({ error }) => ((error as Error).message === 'die' ? null : 3_600_000),
        })
        const counts = await outbox.drain()
        expect((await outbox.stats())['orders']?.scheduled.count).toBe(1)
        return counts
      },
      { onEvent },
    )

    expect(drained).toMatchObject({ acked: 2, retried: 1, dead: 1, isEmpty: true })
    expect(events.map(({ kind }) => kind)).toContain('dlq_written')
    expect(events.map(({ kind }) => kind)).not.toContain('settle_failed')
  })

  test('an operator dead letters are listed, read, counted and replayed, and the schema is validated', async () => {
    await as('publisher', (outbox) => outbox.publishNow('doomed', 1))
    await as('subscriber', async (outbox) => {
      outbox.subscribe('doomed', () => Promise.reject(new Error('no')), { retry: noRetry() })
      await outbox.drain()
    })

    await as('operator', async (outbox) => {
      const { items } = await outbox.deadLetters.list({ queue: 'doomed' })
      expect(items).toHaveLength(1)
      expect(await outbox.deadLetters.count({ queue: 'doomed' })).toMatchObject({ count: 1 })
      expect(await outbox.deadLetters.get(items[0]!.id)).toMatchObject({ queue: 'doomed' })
      expect(await outbox.deadLetters.replay(items[0]!.id, { by: 'jo' })).toEqual({ replayed: true })
      await outbox.validateSchema()
    })
  })
})
