import type pg from 'pg'
import { constant, createOutbox, type LogEntry, type Outbox } from 'postbox'
import { beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import type { Failpoint } from '../../packages/postbox/src/runtime/failpoint.ts'
import { useDatabase } from '../support/database.ts'
import { type FakeClock, fakeClock, loopsSleep } from '../support/fake-clock.ts'
import { collector, eventually } from '../support/signals.ts'
import { type Statements, watchStatements } from '../support/statements.ts'

const database = useDatabase()
const internals = Symbol.for('postbox.internals')
// Nobody polls during a test: a timer that fires was slept for.
const never = { min: 3_600_000, max: 3_600_000 }
let publisher: Outbox

beforeAll(async () => {
  publisher = createOutbox({ database: database.pool({ max: 1 }), schema: database.schema, logger: false })
  await publisher.migrate()
})

beforeEach(async () => {
  await database.query('delete from outbox')
})

interface Sleeping {
  readonly outbox: Outbox
  readonly clock: FakeClock
  readonly statements: Statements
  readonly got: ReturnType<typeof collector<unknown>>
  readonly log: readonly LogEntry[]
}

/** An outbox that serves `orders` and sleeps, on a clock that stands still. */
function outboxOf(handler: (body: unknown) => void = () => {}, failpoint?: Failpoint): Sleeping {
  const pool: pg.Pool = database.pool()
  onTestFinished(() => pool.end())
  const clock = fakeClock()
  const log: LogEntry[] = []
  const logger = (entry: LogEntry): void => void log.push(entry)
  const options = { database: pool, schema: database.schema, logger, [internals]: { clock, failpoint } }
  const outbox = createOutbox(options)
  const got = collector<unknown>('messages')
  outbox.subscribe(
    'orders',
    ({ body }) => {
      got.add(body)
      handler(body)
    },
    { pollMs: never, retry: constant({ delayMs: 2_000 }) },
  )
  return { outbox, clock, got, log, statements: watchStatements(pool, database.schema) }
}

/** It lies down, and its three loops sleep: engine, lease keeper and heartbeat. */
const liesStill = ({ statements, clock }: Sleeping): Promise<unknown> =>
  eventually(() => statements.named('lie_down').some(({ rows }) => rows) && loopsSleep(clock), {
    what: 'the outbox to sleep',
  })

/** What the database says is left until the first message is due, in milliseconds. */
async function dueInMs(): Promise<number> {
  const [row] = await database.query<{ ms: number }>(
    'select (extract(epoch from min(due_at) - clock_timestamp()) * 1000)::float8 as ms from outbox',
  )
  return row!.ms
}

/** The time has come, for the database; the outbox learns of it from its clock alone. */
const makeDue = (): Promise<unknown> => database.query(`update outbox set due_at = now() - interval '1 ms'`)

/** Waits until the outbox has looked so often and sleeps again; tells how long it asked to sleep, to the next due time. */
async function sleepAfter({ statements, clock }: Sleeping, looks: number): Promise<number> {
  await eventually(
    () => statements.named('claim_messages').filter(({ rows }) => rows).length === looks && loopsSleep(clock),
    { what: `look ${looks} and the sleep after it` },
  )
  return clock.asked.at(-1)!
}

test('a timer on an idle queue is slept for until it is due, and nothing is sent before', async () => {
  const sleeping = outboxOf()
  const { outbox, clock, statements, got } = sleeping
  await using _running = await outbox.start()
  await liesStill(sleeping)
  statements.clear()

  await publisher.publishNow('orders', 'timer', { delayMs: 8_000 })
  const asked = await sleepAfter(sleeping, 1)
  const left = await dueInMs()
  await makeDue()
  clock.advance(asked - 1)
  await eventually(() => loopsSleep(clock), { what: 'the lease keeper to sleep again' })
  const sentBefore = statements.counts()
  clock.advance(1)

  expect(await got.take(1)).toEqual(['timer'])
  await eventually(() => statements.named('delete_acked')[0]?.rows, { what: 'the delete' })
  expect(asked).toBeLessThanOrEqual(8_000)
  expect(asked).toBeGreaterThanOrEqual(left)
  expect(asked).toBe(Math.ceil(Number(statements.named('claim_messages')[0]!.rows![0]!['nextdue'])))
  expect(sentBefore).toEqual({ claim_fresh: 1, claim_messages: 1 })
  expect(statements.counts()).toEqual({ claim_fresh: 1, claim_messages: 2, delete_acked: 1 })
})

test('a timer is slept for from when the claim was sent that saw it, however long its answer took', async () => {
  const tookMs = 300
  // The answer is there, and takes its time.
  const late = { isOn: false }
  const sleeping: Sleeping = outboxOf(undefined, {
    async reach(name) {
      if (late.isOn && name === 'after_claim') sleeping.clock.advance(tookMs)
    },
  })
  const { outbox, statements } = sleeping
  await using _running = await outbox.start()
  await liesStill(sleeping)
  statements.clear()
  late.isOn = true

  await publisher.publishNow('orders', 'timer', { delayMs: 8_000 })
  const asked = await sleepAfter(sleeping, 1)
  late.isOn = false

  expect(asked).toBe(Math.ceil(Number(statements.named('claim_messages')[0]!.rows![0]!['nextdue']) - tookMs))
  expect(statements.counts()).toEqual({ claim_fresh: 1, claim_messages: 1 })
})

test('a nearer timer that is armed during the sleep shortens it, and a farther one does not', async () => {
  const sleeping = outboxOf()
  const { outbox, clock, statements, got } = sleeping
  await using _running = await outbox.start()
  await liesStill(sleeping)
  statements.clear()

  await publisher.publishNow('orders', 'middle', { delayMs: 9_000 })
  const middle = await sleepAfter(sleeping, 1)
  const leftOfMiddle = await dueInMs()
  await publisher.publishNow('orders', 'near', { delayMs: 4_000 })
  const near = await sleepAfter(sleeping, 2)
  await publisher.publishNow('orders', 'far', { delayMs: 9_900 })
  const far = await sleepAfter(sleeping, 3)
  const leftOfNear = await dueInMs()
  await database.query(`update outbox set due_at = now() where due_at = (select min(due_at) from outbox)`)
  clock.advance(far)
  const next = await sleepAfter(sleeping, 4)

  expect(got.all).toEqual(['near'])
  expect(middle).toBeGreaterThanOrEqual(leftOfMiddle)
  expect(near).toBeLessThanOrEqual(4_000)
  expect(far).toBeGreaterThanOrEqual(leftOfNear)
  expect(far).toBeLessThanOrEqual(near)
  // The middle one is next, by the database's clock, which did not jump.
  expect(next).toBeGreaterThanOrEqual(await dueInMs())
  expect(next).toBeLessThanOrEqual(middle)
  await eventually(() => statements.named('delete_acked')[0]?.rows, { what: 'the delete' })
})

test('a timer that is cancelled during the sleep costs one look', async () => {
  const sleeping = outboxOf()
  const { outbox, clock, statements, got } = sleeping
  await using _running = await outbox.start()
  await liesStill(sleeping)
  statements.clear()
  await publisher.publishNow('orders', 'timer', { delayMs: 5_000, timerId: 'one' })
  const asked = await sleepAfter(sleeping, 1)

  await database.query('delete from outbox')
  clock.advance(asked)
  const after = await sleepAfter(sleeping, 2)

  expect(after).toBe(never.max)
  expect(got.all).toEqual([])
  expect(statements.counts()).toEqual({ claim_fresh: 1, claim_messages: 2 })
})

test('a message that failed is slept for until its retry is due', async () => {
  let runs = 0
  const sleeping = outboxOf(() => {
    if (++runs === 1) throw new Error('not yet')
  })
  const { outbox, clock, statements, got } = sleeping
  await using _running = await outbox.start()
  await liesStill(sleeping)

  await publisher.publishNow('orders', 1)
  const retry = await eventually(() => statements.named('reschedule_retried').find(({ rows }) => rows), {
    what: 'the retry to be written',
  })
  const [{ delayMs }] = JSON.parse(String(retry.values[0]))
  const asked = await eventually(() => loopsSleep(clock) && clock.left.find((ms) => ms <= delayMs + 1), {
    what: 'a sleep until the retry is due',
  })
  const left = await dueInMs()
  await makeDue()
  clock.advance(asked)

  await got.take(2)
  await eventually(() => statements.named('delete_acked')[0]?.rows, { what: 'the delete' })
  expect(asked).toBeGreaterThanOrEqual(left)
})
