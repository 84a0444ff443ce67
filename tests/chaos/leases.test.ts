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

// Shorter than the default of 30,000. An eighth of the lease is the time between two looks; no other sleep is as long. Less what has passed since it was chosen.
const shortLeaseMs = 24_000
const isUsualLook = (ms: number): boolean => ms > 3_250 && ms <= 3_750
const isShortLook = (ms: number): boolean => ms > 2_500 && ms <= 3_000
const pollMs = { min: 600_000, max: 600_000 }

/** Sleeps as long as it is asked to, but for the look at usual leases: that one never comes by itself. */
function createTestClock(asked: Collector<number>): Clock {
  return {
    now: systemClock.now,
    sleep(ms, signal) {
      asked.add(ms)
      return systemClock.sleep(isUsualLook(ms) ? 2 ** 30 : ms, signal)
    },
  }
}

function outboxWith(clock: Clock) {
  const options = { database: pool, schema: database.schema, logger: false, defaults: { pollMs } } as const
  return createOutbox({ ...options, [Symbol.for('postbox.internals')]: { clock } })
}

test('short leases are looked at eight times within their length from the start on', async () => {
  const asked = collector<number>('sleeps')
  const outbox = outboxWith(createTestClock(asked))
  outbox.subscribe('orders', () => {}, { leaseMs: shortLeaseMs })

  await using _running = await outbox.start()

  await asked.find(isShortLook)
  expect(asked.all.filter(isUsualLook)).toEqual([])
})

test('a subscriber that comes later with a shorter lease has it looked at as often as it needs, at once', async () => {
  const asked = collector<number>('sleeps')
  const outbox = outboxWith(createTestClock(asked))
  outbox.subscribe('orders', () => {})
  await using _running = await outbox.start()
  await asked.find(isUsualLook)

  outbox.subscribe('emails', () => {}, { leaseMs: shortLeaseMs })

  expect(await asked.find(isShortLook)).toBeGreaterThan(0)
})
