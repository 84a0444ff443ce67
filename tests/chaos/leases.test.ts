import type pg from 'pg'
import { createOutbox } from 'postbox'
import { beforeAll, expect, test } from 'vitest'
import { type Clock, systemClock } from '../../packages/postbox/src/runtime/clock.ts'
import { useDatabase } from '../support/database.ts'
import { type Collector, collector } from '../support/signals.ts'

const database = useDatabase()
let pool: pg.Pool

beforeAll(async () => {
  pool = database.pool()
  await createOutbox({ database: pool, schema: database.schema }).migrate()
})

// An eighth of the lease: of the default, and of the shortest that is allowed.
const usualLookMs = 3_750
const shortLookMs = 125

/** Sleeps as long as it is asked to, but for the look at usual leases: that one never comes by itself. */
function createTestClock(asked: Collector<number>): Clock {
  return {
    now: systemClock.now,
    sleep(ms, signal) {
      asked.add(ms)
      return systemClock.sleep(ms === usualLookMs ? 2 ** 30 : ms, signal)
    },
  }
}

function outboxWith(clock: Clock) {
  const options = { database: pool, schema: database.schema, logger: false } as const
  return createOutbox({ ...options, [Symbol.for('postbox.internals')]: { clock } })
}

test('short leases are looked at eight times within their length from the start on', async () => {
  const asked = collector<number>('sleeps')
  const outbox = outboxWith(createTestClock(asked))
  outbox.subscribe('orders', () => {}, { leaseMs: 1_000 })

  await using _running = await outbox.start()

  await asked.find((ms) => ms === shortLookMs)
  expect(asked.all).not.toContain(usualLookMs)
})

test('a subscriber that comes later with a shorter lease has it looked at as often as it needs, at once', async () => {
  const asked = collector<number>('sleeps')
  const outbox = outboxWith(createTestClock(asked))
  outbox.subscribe('orders', () => {})
  await using _running = await outbox.start()
  await asked.find((ms) => ms === usualLookMs)

  outbox.subscribe('emails', () => {}, { leaseMs: 1_000 })

  expect(await asked.find((ms) => ms === shortLookMs)).toBe(shortLookMs)
})
