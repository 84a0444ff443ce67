import { createOutbox, type LogEntry, type Message, type Outbox } from 'postbox'
import { beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import type { FailpointName } from '../../packages/postbox/src/runtime/failpoint.ts'
import { useDatabase } from '../support/database.ts'
import { type FakeClock, fakeClock, hasHeard } from '../support/fake-clock.ts'
import { collector, eventually, signal } from '../support/signals.ts'
import { type Statements, watchStatements } from '../support/statements.ts'

const database = useDatabase()
const internals = Symbol.for('postbox.internals')
const never = { min: 3_600_000, max: 3_600_000 }
const leaseMs = 8_000

beforeAll(async () => {
  await createOutbox({ database: database.pool({ max: 1 }), schema: database.schema }).migrate()
})

beforeEach(async () => {
  await database.query('delete from outbox')
})

interface Held {
  readonly outbox: Outbox
  readonly clock: FakeClock
  readonly statements: Statements
  readonly log: readonly LogEntry[]
}

/** An outbox on a clock that stands still; `reach` may hold it at a failpoint. */
function outboxOf(reach: (name: FailpointName) => Promise<void> = async () => {}): Held {
  const pool = database.pool()
  onTestFinished(() => pool.end())
  const clock = fakeClock()
  const log: LogEntry[] = []
  const logger = (entry: LogEntry): void => void log.push(entry)
  const inside = { clock, failpoint: { reach } }
  const options = { database: pool, schema: database.schema, logger, [internals]: inside }
  return { outbox: createOutbox(options), clock, log, statements: watchStatements(pool, database.schema) }
}

interface Row {
  readonly seq: string
  readonly token: string | null
  readonly until: string | null
  readonly attempts: number
  readonly deliveries: number
}

const rows = (): Promise<Row[]> =>
  database.query(
    'select seq::text, lease_token::text as token, leased_until::text as until, attempts, deliveries from outbox order by seq',
  )

const isEmpty = async (): Promise<boolean> => (await rows()).length === 0

/** Its three loops sleep: engine, lease keeper and heartbeat. Handlers may run. */
const asleep = ({ clock, statements }: Held): Promise<unknown> =>
  eventually(
    () => statements.named('lie_down').some((sent) => sent.rows) && clock.left.length >= 3 && hasHeard(clock),
    { what: 'the outbox to sleep' },
  )

/** Lets so many eighths of a lease pass, one by one: so often does the lease keeper look. */
async function passEighths(held: Held, count: number, ofMs = leaseMs): Promise<void> {
  for (let eighth = 0; eighth < count; eighth++) {
    held.clock.advance(ofMs / 8)
    await asleep(held)
  }
}

/** A handler that tells its signal when it starts and ends when it may. */
function handlerOf() {
  const started = collector<{ message: Message; signal: AbortSignal }>('handlers that started')
  const go = signal('leave to finish')
  const work = async (message: Message, context: { signal: AbortSignal }): Promise<void> => {
    started.add({ message, signal: context.signal })
    await go.wait()
  }
  return { started, go, work }
}

test('a lease is renewed when half of it is over, and again, for as long as the handler runs', async () => {
  const held = outboxOf()
  const { outbox, statements, clock } = held
  const { started, go, work } = handlerOf()
  outbox.subscribe('orders', work, { pollMs: never, leaseMs })
  await outbox.publishNow('orders', 1)
  await using _running = await outbox.start()
  const [handler] = await started.take(1)
  await asleep(held)
  const ends = [(await rows())[0]!.until!]

  await passEighths(held, 3)
  const renewedEarly = statements.named('extend_leases').length
  for (let renewals = 1; renewals <= 5; renewals++) {
    await passEighths(held, renewals === 1 ? 1 : 4)
    await eventually(() => statements.named('extend_leases')[renewals - 1]?.rows, {
      what: `renewal ${renewals}`,
    })
    ends.push((await rows())[0]!.until!)
  }
  go.send()
  await eventually(isEmpty, { what: 'the row to be deleted' })

  expect(renewedEarly).toBe(0)
  expect(statements.named('extend_leases').length).toBe(5)
  expect(ends).toEqual([...new Set(ends)].sort())
  expect(clock.now()).toBe(2.5 * leaseMs)
  expect(handler!.signal.aborted).toBe(false)
  expect(held.log).toEqual([])
})

test.each(['before', 'after'])(
  'the shortest lease that may be asked for is renewed in time, subscribed %s the start',
  async (when) => {
    const held = outboxOf()
    const { outbox, statements } = held
    const { started, go, work } = handlerOf()
    const subscribe = (): void => outbox.subscribe('orders', work, { pollMs: never, leaseMs: 1_000 })
    if (when === 'before') subscribe()
    else outbox.subscribe('emails', () => {})
    await outbox.publishNow('orders', 1)
    await using _running = await outbox.start()
    await asleep(held)
    if (when === 'after') subscribe()
    const [handler] = await started.take(1)

    await passEighths(held, 5, 1_000)

    await eventually(() => statements.named('extend_leases')[0]?.rows, {
      what: 'the renewal of a lease of which five eighths are over',
    })
    expect(handler!.signal.aborted).toBe(false)
    go.send()
    await eventually(isEmpty, { what: 'the row to be deleted' })
  },
)

test('a handler whose lease was taken over is told before the lease would have ended, and writes nothing', async () => {
  const held = outboxOf()
  const { outbox, statements, log } = held
  const { started, go, work } = handlerOf()
  outbox.subscribe('orders', work, { pollMs: never, leaseMs })
  await outbox.publishNow('orders', 1)
  await using _running = await outbox.start()
  const [handler] = await started.take(1)
  await asleep(held)

  const thief = '00000000-0000-0000-0000-000000000001'
  await database.query('update outbox set lease_token = $1', [thief])
  await passEighths(held, 4)
  await eventually(() => handler!.signal.aborted, { what: 'the handler to be told' })
  const toldAt = held.clock.now()
  go.send()
  await outbox.stop()

  expect(toldAt).toBeLessThan(leaseMs)
  expect(handler!.signal.reason).toMatchObject({ code: 'OUTBOX_LEASE_LOST' })
  expect(statements.counts()).toMatchObject({ extend_leases: 1, holds_leases: 1 })
  expect(statements.counts()).not.toHaveProperty('delete_acked')
  expect(await rows()).toMatchObject([{ token: thief, attempts: 0 }])
  expect(log).toMatchObject([
    { level: 'warn', message: expect.stringContaining('lease lost'), fields: { queue: 'orders' } },
  ])
  await database.query('delete from outbox')
})

test('a handler whose lease cannot be renewed is told before it ends; what it came to is still written', async () => {
  const mayRenew = signal('leave to renew')
  const held = outboxOf(async (name) => {
    if (name === 'before_renewal') await mayRenew.wait()
  })
  const { outbox, clock } = held
  const { started, go, work } = handlerOf()
  outbox.subscribe('orders', work, { pollMs: never, leaseMs })
  await outbox.publishNow('orders', 1)
  await using _running = await outbox.start()
  const [handler] = await started.take(1)
  await asleep(held)

  await passEighths(held, 5)
  const toldEarly = handler!.signal.aborted
  await passEighths(held, 2)
  const told = handler!.signal.aborted
  go.send()
  await eventually(isEmpty, { what: 'the row to be deleted' })
  mayRenew.send()

  expect({ toldEarly, told }).toEqual({ toldEarly: false, told: true })
  expect(clock.now()).toBeLessThan(leaseMs)
  expect(handler!.signal.reason).toMatchObject({ code: 'OUTBOX_LEASE_LOST' })
})

test('a message that waited for a slot until its lease was over is not started but given back', async () => {
  const mayRenew = signal('leave to renew')
  const held = outboxOf(async (name) => {
    if (name === 'before_renewal') await mayRenew.wait()
  })
  const { outbox, clock, statements } = held
  const { started, go, work } = handlerOf()
  outbox.subscribe('orders', work, { pollMs: never, leaseMs, concurrency: 1, prefetch: 3 })
  for (const body of ['a', 'b', 'c']) await outbox.publishNow('orders', body)
  await using _running = await outbox.start()
  await started.take(1)
  await asleep(held)
  const leased = await rows()

  clock.advance(leaseMs)
  go.send()
  await eventually(() => statements.named('release_leases')[0]?.rows, { what: 'the release' })
  mayRenew.send()
  await started.take(3)
  await eventually(isEmpty, { what: 'the rows to be deleted' })

  expect(leased.every(({ token }) => token === leased[0]!.token)).toBe(true)
  expect(statements.named('release_leases')[0]!.rows).toMatchObject(
    leased.slice(1).map(({ seq }) => ({ seq })),
  )
  // Given back, they were claimed anew, as if nobody had had them.
  expect(started.all.map(({ message }) => [message.body, message.deliveries])).toEqual([
    ['a', 1],
    ['b', 1],
    ['c', 1],
  ])
})

test('a handler that takes longer than timeoutMs has failed: its signal aborts and its slot is free', async () => {
  const held = outboxOf()
  const { outbox, clock, log } = held
  const { started, go, work } = handlerOf()
  outbox.subscribe('orders', work, { pollMs: never, concurrency: 1, timeoutMs: 500 })
  for (const body of ['stuck', 'next']) await outbox.publishNow('orders', body)
  await using _running = await outbox.start()
  const [stuck] = await started.take(1)

  clock.advance(499)
  const toldEarly = stuck!.signal.aborted
  clock.advance(1)
  const [, next] = await started.take(2)
  const [row] = await eventually(async () => (await rows()).filter(({ attempts }) => attempts === 1), {
    what: 'the failure to be written',
  })
  go.send()
  await eventually(async () => (await rows()).length === 1, { what: 'the next one to be deleted' })

  expect(toldEarly).toBe(false)
  expect(stuck!.signal.reason).toMatchObject({ code: 'OUTBOX_HANDLER_TIMEOUT' })
  expect(next).toMatchObject({ message: { body: 'next' }, signal: { aborted: false } })
  expect(row).toMatchObject({ token: null, attempts: 1 })
  expect(log).toMatchObject([
    { message: expect.stringContaining('will be retried'), error: { code: 'OUTBOX_HANDLER_TIMEOUT' } },
  ])
})

test('a handler that ends within timeoutMs is not told anything, and leaves no sleep behind', async () => {
  const held = outboxOf()
  const { outbox, clock, statements } = held
  const { started, go, work } = handlerOf()
  outbox.subscribe('orders', work, { pollMs: never, timeoutMs: 500 })
  await outbox.publishNow('orders', 1)
  await using _running = await outbox.start()
  const [handler] = await started.take(1)
  await asleep(held)
  const whileItRuns = [...clock.left]

  go.send()
  await eventually(() => statements.named('delete_acked')[0]?.rows, { what: 'the delete' })

  expect(whileItRuns).toContain(500)
  expect(clock.left).not.toContain(500)
  expect(handler!.signal.aborted).toBe(false)
})
