// Clauses of scenarios (tests/conformance/README.md) about delivering and stopping that no other test asks for.
import type { Message, OutboxEvent, OutboxOptions } from 'postbox'
import { describe, expect, onTestFinished, test } from 'vitest'
import { useBench } from '../support/decisions-bench.ts'
import { type FakeClock, fakeClock } from '../support/fake-clock.ts'
import { openWorker, seqsOf } from '../support/sessions.ts'
import { collector, eventually, signal } from '../support/signals.ts'

const bench = useBench()
const { database, outboxOf, messages } = bench
const never = { min: 3_600_000, max: 3_600_000 }
const stopTimeoutMs = 15_000
const graceMs = 1_000

const inside = (internals: object): OutboxOptions =>
  ({ stopTimeoutMs, [Symbol.for('postbox.internals')]: internals }) as OutboxOptions

const fill = (count: number): Promise<unknown> =>
  database.query(
    `insert into outbox (id, queue, body) select gen_random_uuid(), 'orders', '1' from generate_series(1, $1)`,
    [count],
  )

const untilEmpty = (): Promise<unknown> =>
  eventually(async () => (await messages()).length === 0, { what: 'the rows to be deleted' })

/** A handler that ends when it may. */
function held() {
  const started = collector<unknown>('handlers that started')
  const go = signal('leave to finish')
  const work = async ({ body }: Message): Promise<void> => {
    started.add(body)
    await go.wait()
  }
  return { started, go, work }
}

/** Lets the time that a stop has pass, and the grace after it, once. */
async function passStop(clock: FakeClock): Promise<void> {
  for (const ms of [stopTimeoutMs, graceMs]) {
    await eventually(() => clock.left.includes(ms), { what: `the stop to wait for ${ms} ms` })
    clock.advance(ms)
  }
}

// I-05
test('two claims of ten at once over twenty messages have all of them, and none in common', async () => {
  const [one, two] = [openWorker(bench.pool(), database.schema), openWorker(bench.pool(), database.schema)]
  await fill(20)
  const all = (await messages()).map(({ seq }) => Number(seq))
  const goOn = await holdAt(all[0]!)

  const first = one.take(10)
  await eventually(async () => (await waitingForLocks()) === 1, { what: 'the first claim to be under way' })
  const second = await two.take(10)
  await goOn()
  const claimed = [await first, second]
  await database.query('delete from outbox')

  expect(claimed.map((taken) => taken.length)).toEqual([10, 10])
  expect(claimed.flatMap(seqsOf)).toEqual(all)
})

/** Whoever writes that row waits, in the middle of its statement, until it is told to go on. */
async function holdAt(seq: number): Promise<() => Promise<void>> {
  const holder = await database.client()
  await holder.query('select pg_advisory_lock(20)')
  await database.query(
    'create function hold() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock(20); return new; end $$',
  )
  await database.query(
    `create trigger hold before update on outbox for each row when (old.seq = ${seq}) execute function hold()`,
  )
  onTestFinished(async () => void (await database.query('drop function hold cascade')))
  return () => holder.end()
}

// I-17
test('five hundred messages are delivered once each by eight slots, with at most four connections taken from the pool', async () => {
  const pool = database.pool({ max: 12 })
  onTestFinished(() => pool.end())
  let taken = 0
  pool.on('acquire', () => taken++)
  const outbox = outboxOf({ database: pool })
  const got = collector<string>('messages')
  outbox.subscribe('orders', ({ id }) => got.add(id), { concurrency: 8 })
  await fill(500)

  expect(await outbox.drain()).toMatchObject({ acked: 500, lost: 0, isEmpty: true })
  expect(new Set(got.all).size).toBe(500)
  expect(taken).toBeLessThanOrEqual(4)
})

//
test('a message that is done and not yet written keeps its lease, however long that takes', async () => {
  const clock = fakeClock()
  const mayFlush = signal('leave to write')
  const reach = async (name: string): Promise<void> => {
    if (name === 'before_flush') await mayFlush.wait()
  }
  const leaseMs = 8_000
  const outbox = outboxOf(inside({ clock, failpoint: { reach } }))
  const got = collector<unknown>('runs')
  outbox.subscribe('orders', ({ body }) => got.add(body), { pollMs: never, leaseMs })
  await outbox.publishNow('orders', 1)
  await using _running = await outbox.start()
  await got.take(1)

  for (let renewals = 1; renewals <= 3; renewals++) {
    await eventually(() => clock.left.some((ms) => ms <= leaseMs / 8), { what: 'the lease keeper to sleep' })
    clock.advance(leaseMs / 2)
    await outbox.told.take('lease_renewed', renewals)
  }
  mayFlush.send()
  await outbox.told.first('acked')

  expect(clock.now()).toBeGreaterThan(leaseMs)
  expect(got.all).toEqual([1])
  expect(outbox.told.of('lease_lost')).toEqual([])
  expect(await messages()).toEqual([])
})

//
test('every message that was dispatched ends once: lost, interrupted by a stop, or failed by what surrounds its handler', async () => {
  const outbox = outboxOf({ stopTimeoutMs: 1 })
  const steal = `update outbox set lease_token = gen_random_uuid(), leased_until = now() + interval '1 h' where id = $1`
  outbox.subscribe(
    'orders',
    async ({ body, id }, context) => {
      if (body === 'lost') await database.query(steal, [id])
      if (body === 'publishes nonsense') await context.publish('emails', Number.NaN)
      if (body === 'fails') throw new Error('no')
      if (body === 'is stopped') await aborted(context.signal)
    },
    { retry: () => expect.fail('a broken policy') },
  )
  for (const body of ['lost', 'publishes nonsense', 'fails', 'is stopped'])
    await outbox.publishNow('orders', body)
  const running = await outbox.start()
  await outbox.told.take('dispatched', 4)
  await outbox.told.first('lease_lost')
  await outbox.told.take('dead', 2)
  await running.stop()
  await database.query('update outbox set lease_token = null, leased_until = null')

  const kinds = ['dispatched', 'acked', 'retried', 'snoozed', 'released', 'dead', 'lease_lost'] as const
  const counts = kinds.map((kind) => [kind, outbox.told.of(kind as OutboxEvent['kind']).length])
  expect(Object.fromEntries(counts)).toEqual({
    ...{ dispatched: 4, dead: 2, lease_lost: 1, released: 1 },
    ...{ acked: 0, retried: 0, snoozed: 0 },
  })
})

function aborted(given: AbortSignal): Promise<never> {
  return new Promise((_, reject) => given.addEventListener('abort', () => reject(given.reason)))
}

describe('a stop', () => {
  // I-20
  test('waits for the handlers of all subscribers together, once, and leaves their messages leased', async () => {
    const clock = fakeClock()
    const outbox = outboxOf(inside({ clock }))
    const { started, go, work } = held()
    const queues = ['orders', 'emails', 'invoices']
    for (const queue of queues) outbox.subscribe(queue, work, { pollMs: never })
    for (const queue of queues) await outbox.publishNow(queue, queue)
    const running = await outbox.start()
    await started.take(3)

    const stopped = running.stop()
    await passStop(clock)
    await stopped
    const left = await messages()
    go.send()
    await untilEmpty()

    expect(left.map((row) => row['lease_token'])).toEqual(queues.map(() => expect.any(String)))
    expect(outbox.told.of('drain_timeout')).toEqual([{ kind: 'drain_timeout', stopTimeoutMs, messages: 3 }])
  })

  // U-SUB-15
  test('does not wait for a delete that hangs: the message stays, and goes when the delete is through', async () => {
    const clock = fakeClock()
    const outbox = outboxOf(inside({ clock }))
    const { started, go, work } = held()
    outbox.subscribe('orders', work, { pollMs: never })
    await outbox.publishNow('orders', 1)
    const running = await outbox.start()
    await started.take(1)
    const blocker = await database.client()
    await blocker.query('begin')
    await blocker.query('select from outbox for update')
    go.send()
    await eventually(async () => (await waitingForLocks()) === 1, { what: 'the delete to wait' })

    const stopped = running.stop()
    await passStop(clock)
    await stopped
    const [left, ended] = [await messages(), outbox.told.of('acked')]
    await blocker.query('rollback')
    await blocker.end()
    await outbox.told.first('acked')

    expect([left.length, ended]).toEqual([1, []])
    expect(outbox.told.of('drain_timeout')).toMatchObject([{ messages: 1 }])
    expect(await messages()).toEqual([])
  })
})

async function waitingForLocks(): Promise<number> {
  const waiting = await database.query(
    `select 1 from pg_stat_activity where application_name like $1 and wait_event_type = 'Lock'`,
    [`%${database.applicationName.slice(-8)}%`],
  )
  return waiting.length
}
