// Processes of the version before and of this one, side by side on the tables of this one (docs/decisions/0007, 0019, 0026).
import { constant, type Failure, type Message, type Outbox, type PublishOptions } from 'postbox'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { killAt, startSurvivor } from '../chaos/kill.ts'
import { createDeliveredTable } from '../chaos/ledger.ts'
import { type Child, expectEnd, type Programs, usePrograms } from '../chaos/processes.ts'
import { createRandom } from '../chaos/random.ts'
import { sessionsOf } from '../chaos/sessions.ts'
import { type Build, directions, outboxOfBuild } from '../rolling/both-builds.ts'
import { holding } from '../rolling/holding.ts'
import { previousBuild } from '../rolling/previous.ts'
import { noPolling, watchSleep } from '../rolling/sleep-watch.ts'
import { layDown } from '../support/dead-letters.ts'
import { useBench } from '../support/decisions-bench.ts'
import { inTransaction } from '../support/in-transaction.ts'
import { collector, eventually, signal } from '../support/signals.ts'

const bench = useBench()
const { database, outboxOf, messages } = bench
const programsOf: Readonly<Record<Build, Programs>> = {
  'the version before': usePrograms({ postbox: previousBuild }),
  'this version': usePrograms(),
}

beforeAll(() => createDeliveredTable(database))

const previousOf = (options = {}): Outbox => outboxOfBuild(bench, 'the version before', options)
const fail = (): never => {
  throw new Error('not now')
}
const makeDue = (): Promise<unknown> => database.query('update outbox set due_at = now()')
/** How often the one message that waits has failed. Not how often it was meant to: a first retry may come at once. */
const failures = async (): Promise<number> => {
  const [{ attempts = 0, deliveries, last_error } = {}, ...others] = await messages()
  expect({ deliveries, last_error, others }).toEqual({
    deliveries: attempts,
    last_error: 'Error: not now',
    others: [],
  })
  return Number(attempts)
}
const untilEmpty = (): Promise<unknown> =>
  eventually(async () => (await messages()).length === 0, { what: 'every message to be settled' })

describe.each(directions)('what %s publishes and %s delivers', (from, to) => {
  test('arrives whole', async () => {
    const publisher = outboxOfBuild(bench, from, { generation: 7 })
    const got = collector<Message>('messages')
    const subscriber = outboxOfBuild(bench, to, { generation: 8 })
    subscriber.subscribe('orders', got.add)
    const headers = { type: 'order', 'x-tenant': 'ä' }
    const { id } = await publisher.publishNow('orders', { n: 1 }, { key: 'k', headers, correlationId: 'c' })
    await publisher.publishNow('orders', 'text')
    await publisher.publishNow('orders', Buffer.from([0, 255]))
    await publisher.publishNow('orders', null)

    expect(await subscriber.drain()).toMatchObject({ acked: 4, lost: 0 })

    expect(got.all.map(({ body }) => body)).toEqual([{ n: 1 }, 'text', Buffer.from([0, 255]), null])
    expect(got.all[0]).toMatchObject({ id, key: 'k', correlationId: 'c', attempt: 1, deliveries: 1 })
    expect(got.all[0]?.headers).toMatchObject(headers)
    expect(got.all.map(({ generation }) => generation)).toEqual([7, 7, 7, 7])
  })

  test('is announced to whoever sleeps, though nobody polls', async () => {
    const publisher = outboxOfBuild(bench, from)
    const got = signal<unknown>('the message')
    const watch = watchSleep()
    const subscriber = outboxOfBuild(bench, to, watch.options)
    subscriber.subscribe('orders', ({ body }) => got.send(body), { pollMs: noPolling })
    await using _running = await subscriber.start()
    await watch.asleep.wait()

    await publisher.publishNow('orders', 'wake up')

    expect(await got.wait()).toBe('wake up')
    await untilEmpty()
  })
})

describe.each(directions)('what %s has in hand, and %s goes on with', (from, to) => {
  test('is given back when it stops, and heard of though nobody polls', async () => {
    const stopping = outboxOfBuild(bench, from)
    const hand = holding(stopping, { concurrency: 1, prefetch: 5, pollMs: noPolling })
    const got = collector<unknown>('messages')
    const watch = watchSleep()
    const subscriber = outboxOfBuild(bench, to, watch.options)
    subscriber.subscribe('orders', ({ body }) => got.add(body), { pollMs: noPolling })
    await inTransaction(bench.pool(), (tx) => stopping.publishMany(tx, 'orders', [1, 2, 3, 4, 5, 6]))
    await stopping.start()
    await hand.held.wait()
    await eventually(async () => (await messages()).every(({ lease_token }) => lease_token !== null), {
      what: 'all to be claimed',
    })
    await using _running = await subscriber.start()
    await watch.asleep.wait()

    const stopped = stopping.stop()

    expect(new Set(await got.take(5))).toEqual(new Set([2, 3, 4, 5, 6]))
    hand.finish.send()
    await stopped
    await untilEmpty()
    expect(got.all).toHaveLength(5)
  })

  test('is run again where it stopped: failures are counted on, from the first one', async () => {
    const failing = outboxOfBuild(bench, from)
    const next = outboxOfBuild(bench, to)
    const attempts = collector<number>('attempts')
    failing.subscribe('orders', fail)
    next.subscribe('orders', ({ attempt }) => attempts.add(attempt))
    await failing.publishNow('orders', 1)
    await failing.drain()
    await makeDue()
    await failing.drain()
    const failed = await failures()
    expect(failed).toBeGreaterThanOrEqual(2)
    await makeDue()

    expect(await next.drain()).toMatchObject({ acked: 1 })
    expect(attempts.all).toEqual([failed + 1])
  })
})

describe.each(directions)('what %s is killed with, beside %s that goes on', (victim, other) => {
  let survivor: Child

  beforeAll(async () => {
    survivor = startSurvivor(database, programsOf[other])
    await survivor.until('ready')
  })

  afterAll(() => expectEnd(survivor))

  test.each([
    ['before_handler', 9],
    ['after_handler', 9],
  ] as const)('is delivered again when that was at %s, and nothing else is', async (point, nth) => {
    const scene = { database, pool: bench.pool(), programs: programsOf[victim], survivor }

    expect(await killAt(scene, { point, nth, random: createRandom(nth) })).not.toEqual([])
  })
})

test('a policy of this version counts the failures that the version before has had', async () => {
  const previous = previousOf()
  const told: Failure[] = []
  const retry = (failure: Failure): null => {
    told.push(failure)
    return null
  }
  const outbox = outboxOf()
  previous.subscribe('orders', fail)
  outbox.subscribe('orders', fail, { retry })
  await previous.publishNow('orders', 1)
  await previous.drain()
  const failed = await failures()
  const [row] = await messages()
  await makeDue()

  expect(await outbox.drain()).toMatchObject({ dead: 1 })
  expect(told).toMatchObject([{ attempt: failed + 1, firstAttemptAt: row?.['first_attempt_at'] }])
})

describe('dead letters of this version', () => {
  test('are none of the version before’s business, also those that lie among the messages', async () => {
    const previous = previousOf()
    previous.subscribe('orders', () => expect.unreachable())
    await layDown(database, 'quarantined', [{ timer: 't' }])
    await layDown(database, 'moved', [{}])

    expect(await previous.drain()).toMatchObject({ acked: 0, retried: 0, isEmpty: true })
    expect(await bench.dead()).toHaveLength(1)
    expect(await messages()).toMatchObject([{ lease_token: null, deliveries: 4, failure_reason: 'rejected' }])
  })

  test.each(['moved', 'quarantined'] as const)(
    'are delivered by the version before when they are replayed (%s)',
    async (place) => {
      const previous = previousOf()
      const got = signal<Message>('the message')
      previous.subscribe('orders', got.send)
      const [id] = await layDown(database, place, [{ timer: 't', generation: 3 }])

      expect(await outboxOf().deadLetters.replay(id!, { by: 'ann' })).toEqual({
        replayed: true,
        lands: 'anywhere',
      })
      expect(await previous.drain()).toMatchObject({ acked: 1 })

      expect(await got.wait()).toMatchObject({ id, attempt: 1, generation: 3 })
    },
  )
})

describe('a timer', () => {
  const soon = { timerId: 't', delayMs: 1 } satisfies PublishOptions
  const hour = { timerId: 't', delayMs: 3_600_000 } satisfies PublishOptions
  const replace = { ...hour, onConflict: 'replace' } as const
  const cancel = async (outbox: Outbox): Promise<boolean> => {
    let isCancelled = false
    await inTransaction(bench.pool(), async (tx) => {
      isCancelled = await outbox.cancelTimer(tx, 'orders', 't')
    })
    return isCancelled
  }
  const namesOf = async (): Promise<readonly unknown[]> =>
    (await messages()).map(({ timer_id, fired_timer_id }) => [timer_id, fired_timer_id])
  const namesShown = async (outbox: Outbox): Promise<readonly unknown[]> => {
    const shown: unknown[] = []
    await inTransaction(bench.pool(), async (tx) => {
      shown.push(...(await outbox.pending(tx)).map(({ timerId }) => timerId))
    })
    return shown
  }

  /** A process is killed with the timer in hand. Its lease ends, after what is done while it has not. */
  async function dieWith(build: Build, whileLeased: () => Promise<void>): Promise<void> {
    const { url, schema } = database
    await using victim = programsOf[build].worker({ url, schema, waits: true })
    await victim.until('delivered')
    victim.kill('SIGKILL')
    // A claim that was under way is carried out after the death of who sent it.
    await eventually(async () => (await sessionsOf(database, victim.name)).length === 0, {
      what: 'the last statement of the dead to end',
    })
    await whileLeased()
    await database.query(
      `update outbox set leased_until = now() - interval '1 second' where lease_token is not null`,
    )
  }

  test('that the version before has in hand is neither doubled, nor replaced, nor cancelled by this one', async () => {
    const previous = previousOf()
    const outbox = outboxOf()
    const hand = holding(previous)
    await outbox.publishNow('orders', 'first', soon)
    await using _running = await previous.start()
    await hand.held.wait()

    expect(await outbox.publishNow('orders', 'second', hour)).toBeNull()
    expect(await outbox.publishNow('orders', 'second', replace)).toBeNull()
    expect(await cancel(outbox)).toBe(false)
    hand.finish.send()
    await untilEmpty()
    expect(await outbox.publishNow('orders', 'third', hour)).not.toBeNull()
  })

  test('that the version before has failed keeps its name: this one keeps, replaces and cancels it', async () => {
    const previous = previousOf()
    const outbox = outboxOf()
    previous.subscribe('orders', fail)
    await previous.publishNow('orders', 'first', soon)
    await makeDue()
    await previous.drain()
    expect(await failures()).toBeGreaterThan(0)

    expect(await outbox.publishNow('orders', 'second', hour)).toBeNull()
    const second = await outbox.publishNow('orders', 'second', replace)
    expect(await messages()).toMatchObject([{ id: second?.id, attempts: 0, timer_id: 't' }])
    expect(await cancel(outbox)).toBe(true)
    expect(await messages()).toEqual([])
  })

  test('that the version before dies with keeps others out until its lease has ended; then this one delivers it, and gives its name up', async () => {
    const outbox = outboxOf()
    const hand = holding(outbox)
    const first = await outbox.publishNow('orders', 'first', soon)

    await dieWith('the version before', async () => {
      expect(await namesOf()).toEqual([['t', null]])
      expect(await outbox.publishNow('orders', 'second', hour)).toBeNull()
      expect(await cancel(outbox)).toBe(false)
    })
    await using _running = await outbox.start()
    await hand.held.wait()

    expect(outbox.told.of('dispatched')).toMatchObject([{ id: first?.id, deliveries: 2 }])
    expect(await namesOf()).toEqual([[null, 't']])
    expect(await outbox.publishNow('orders', 'second', hour)).not.toBeNull()
    hand.finish.send()
    await outbox.told.first('acked')
  })

  test('that this one has in hand has given its name up for the version before, too: that arms the next one, and cancels only it', async () => {
    const previous = previousOf()
    const outbox = outboxOf()
    const hand = holding(outbox)
    await previous.publishNow('orders', 'first', soon)
    await using _running = await outbox.start()
    await hand.held.wait()

    expect(await cancel(previous)).toBe(false)
    expect(await previous.publishNow('orders', 'second', hour)).not.toBeNull()
    expect(await previous.publishNow('orders', 'third', hour)).toBeNull()
    expect(await namesShown(previous)).toEqual([null, 't'])
    expect(await namesShown(outbox)).toEqual(['t', 't'])
    expect(await cancel(previous)).toBe(true)
    hand.finish.send()
    await outbox.told.first('acked')
    expect(await messages()).toEqual([])
  })

  test('that this one dies with is not lost: the version before fails it without its name, and this one takes the name back', async () => {
    const previous = previousOf()
    const outbox = outboxOf()
    previous.subscribe('orders', fail)
    await outbox.publishNow('orders', 'first', soon)
    await dieWith('this version', async () => expect(await namesOf()).toEqual([[null, 't']]))

    await previous.drain()
    const [row] = await messages()
    expect(row).toMatchObject({ timer_id: null, fired_timer_id: 't', last_error: 'Error: not now' })
    expect(await cancel(outbox)).toBe(false)
    await makeDue()
    const attempts: number[] = []
    const failing = ({ attempt }: Message): never => {
      attempts.push(attempt)
      return fail()
    }
    outbox.subscribe('orders', failing, { retry: constant({ delayMs: 3_600_000 }) })
    expect(await outbox.drain()).toMatchObject({ retried: 1 })

    expect(attempts).toEqual([Number(row?.['attempts']) + 1])
    expect(await namesOf()).toEqual([['t', null]])
    expect(await cancel(outbox)).toBe(true)
  })

  test('without its name runs beside the next one of that name, and both are delivered by the version before', async () => {
    const previous = previousOf()
    const got = collector<unknown>('messages')
    previous.subscribe('orders', ({ body }) => got.add(body))
    await previous.publishNow('orders', 'first', soon)
    await dieWith('this version', async () => {
      expect(await previous.publishNow('orders', 'second', soon)).not.toBeNull()
    })
    await makeDue()

    expect(await previous.drain()).toMatchObject({ acked: 2 })
    expect(new Set(got.all)).toEqual(new Set(['first', 'second']))
  })
})
