// What handlers decide, where the other files of this folder would not notice a mistake.
import { type Context, constant, type Message, noRetry, type OutboxOptions, TerminalError } from 'postbox'
import { describe, expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../packages/postbox/src/runtime/clock.ts'
import { useBench } from '../support/decisions-bench.ts'
import { fakeClock, loopsSleep } from '../support/fake-clock.ts'
import { inTransaction } from '../support/in-transaction.ts'
import { collector, eventually, signal } from '../support/signals.ts'
import { watchStatements } from '../support/statements.ts'

const bench = useBench()
const { database, outboxOf, messages, dead } = bench
const hour = 3_600_000

type Handle = (message: Message, context: Context) => unknown

const publishThree = (outbox: ReturnType<typeof outboxOf>) =>
  inTransaction(bench.pool(), (tx) => outbox.publishMany(tx, 'orders', [1, 2, 3]))

/** Delivers one message to a handler. What fails comes back in an hour, and not by chance before the drain is over. */
async function deliver(handler: Handle, options: object = {}) {
  const outbox = outboxOf()
  outbox.subscribe('orders', handler, { retry: constant({ delayMs: hour }), ...options })
  await outbox.publishNow('orders', 1)
  await outbox.drain()
  return { told: outbox.told, rows: await messages(), dead: await dead() }
}

test('a timer that goes on without its name is not cancelled with the one that has it now', async () => {
  const outbox = outboxOf()
  outbox.subscribe(
    'orders',
    async () => {
      await outbox.publishNow('orders', 'second', { timerId: 't', delayMs: hour })
      throw new Error('after it had armed the next')
    },
    { retry: constant({ delayMs: hour }) },
  )
  await outbox.publishNow('orders', 'first', { timerId: 't' })
  await outbox.drain()
  const answers: boolean[] = []
  await inTransaction(bench.pool(), async (tx) => {
    answers.push(await outbox.cancelTimer(tx, 'orders', 't'), await outbox.cancelTimer(tx, 'orders', 't'))
  })

  expect(answers).toEqual([true, false])
  expect(await messages()).toMatchObject([{ attempts: 1, timer_id: null, fired_timer_id: 't' }])
})

test('of many who arm one name at once one does, and one message waits', async () => {
  const outbox = outboxOf()
  const arm = (n: number) => outbox.publishNow('orders', n, { timerId: 't', delayMs: hour })
  const receipts = await Promise.all(Array.from({ length: 30 }, (_, n) => arm(n)))

  const written = receipts.filter((receipt) => receipt !== null)
  expect(written).toHaveLength(1)
  expect(await messages()).toMatchObject([{ id: written[0]?.id, timer_id: 't' }])
})

test('a timer that is replaced is another message, with an id of its own', async () => {
  const outbox = outboxOf()
  const first = await outbox.publishNow('orders', 'first', { timerId: 't', delayMs: hour })
  const second = await outbox.publishNow('orders', 'second', {
    timerId: 't',
    delayMs: hour,
    onConflict: 'replace',
  })

  expect(second?.id).not.toBe(first?.id)
  expect(await messages()).toMatchObject([{ id: second?.id, seq: second?.seq }])
})

test('a timer that is replaced by one for now is due, and not fresh: claims have passed its place long ago', async () => {
  const outbox = outboxOf()
  await outbox.publishNow('orders', 'first', { timerId: 't', delayMs: hour })
  await outbox.publishNow('orders', 'second', { timerId: 't', onConflict: 'replace' })
  const rows = await database.query('select due_at <= clock_timestamp() as is_due from outbox')

  expect(rows).toEqual([{ is_due: true }])
})

test('a timer that a stop gives back takes its name along: it can be cancelled', async () => {
  const started = signal('the handler starts')
  const outbox = outboxOf({ stopTimeoutMs: 1 })
  outbox.subscribe('orders', async (_, context) => {
    started.send()
    await new Promise((_, reject) =>
      context.signal.addEventListener('abort', () => reject(context.signal.reason)),
    )
  })
  await outbox.publishNow('orders', 'reminder', { timerId: 't' })
  const running = await outbox.start()
  await started.wait()
  await running.stop()

  expect(await messages()).toMatchObject([{ timer_id: 't', fired_timer_id: null, deliveries: 0 }])
})

describe('a handler that is out of time', () => {
  test('has failed, whatever it decides or publishes because its signal says so', async () => {
    const late = signal<unknown>('the late publish')
    const { rows, dead, told } = await deliver(
      (_, { signal: over, reject, publish }) =>
        new Promise(() =>
          over.addEventListener('abort', () => {
            reject('too late')
            publish('emails', 1).catch(late.send)
          }),
        ),
      { timeoutMs: 20 },
    )

    expect(await late.wait()).toMatchObject({ code: 'OUTBOX_DELIVERY_OVER' })
    expect(rows).toMatchObject([{ queue: 'orders', attempts: 1 }])
    expect(rows[0]?.['last_error']).toMatch(/took longer than 20 ms/)
    expect(dead).toEqual([])
    expect(told.of('retried')).toMatchObject([{ error: { code: 'OUTBOX_HANDLER_TIMEOUT' } }])
  })
})

describe('what is thrown', () => {
  const sqlError = (code: string): Error =>
    Object.assign(new Error('Failed query'), { cause: Object.assign(new Error('db'), { code }) })

  test.for([
    [
      'a TerminalError that is the cause of another',
      {},
      () => new Error('outer', { cause: new TerminalError('never') }),
      1,
    ],
    ['a missing table, which may be migrated soon', {}, () => sqlError('42P01'), 0],
    [
      'a violated constraint that `classify` calls transient',
      { classify: () => 'transient' },
      () => sqlError('23505'),
      0,
    ],
    [
      'a violated constraint, and `classify` is broken',
      { classify: () => expect.fail('oops') },
      () => sqlError('23505'),
      1,
    ],
  ] as readonly (readonly [string, object, () => unknown, number])[])(
    '%s',
    async ([, options, make, deaths]) => {
      const thrown = make()
      const { rows, dead, told } = await deliver(() => Promise.reject(thrown), options)

      expect({ dead: dead.length, left: rows.length }).toEqual({ dead: deaths, left: 1 - deaths })
      const isBroken = 'classify' in options && deaths === 1
      expect(told.of('warning')).toMatchObject(isBroken ? [{ code: 'classify_failed' }] : [])
    },
  )
})

describe('a handler of batches', () => {
  test('that must not fail has its messages run one by one, too, before one is rejected', async () => {
    const outbox = outboxOf()
    outbox.subscribeBatch(
      'orders',
      (got) => {
        if (got.some(({ body }) => body === 2)) throw new Error('two')
      },
      { size: 3, ack: 'reject-on-error', retry: constant({ delayMs: 1 }) },
    )
    await publishThree(outbox)
    await using _running = await outbox.start()
    await outbox.told.take('acked', 2)
    await outbox.told.first('dead')

    expect(await dead()).toMatchObject([
      { failure_reason: 'rejected', last_error: 'Error: two', attempts: 2 },
    ])
  })

  test('gets a message whose process died alone, and the others together', async () => {
    const runs = collector<unknown[]>('runs')
    const outbox = outboxOf()
    outbox.subscribeBatch('orders', (got) => runs.add(got.map(({ body }) => body)), { size: 3, maxWaitMs: 0 })
    await publishThree(outbox)
    await database.query(`update outbox set deliveries = 1 where seq = (select min(seq) + 1 from outbox)`)
    await outbox.drain()

    expect([...runs.all].sort((a, b) => a.length - b.length)).toEqual([[2], [1, 3]])
  })
})

test('a stop waits for a burial that is still to be tried again', async () => {
  // The delays between its tries fly; the time that a stop has does not.
  const sleep = (ms: number, signal: AbortSignal) => systemClock.sleep(ms > 2_000 ? ms : 20, signal)
  const internals = { [Symbol.for('postbox.internals')]: { clock: { ...systemClock, sleep } } }
  const outbox = outboxOf({ stopTimeoutMs: 30_000, ...internals } as OutboxOptions)
  outbox.subscribe('orders', (_, { reject }) => reject('no'))
  await database.query('alter table outbox_dead add constraint never check (false) not valid')
  try {
    await outbox.publishNow('orders', 'poison')
    const running = await outbox.start()
    await outbox.told.first('settle_failed')
    await running.stop()

    expect(outbox.told.of('dlq_written')).toMatchObject([{ isQuarantined: true }])
    expect(await messages()).toMatchObject([{ failed_at: expect.any(Date), lease_token: null }])
  } finally {
    await database.query('alter table outbox_dead drop constraint never')
  }
})

test('an error is cut by its bytes, though it has fewer characters than may be stored', async () => {
  const { rows } = await deliver(() => Promise.reject(new Error('ä'.repeat(5_000))))

  expect(String(rows[0]?.['last_error'])).toMatch(/^Error: ä+…$/)
  expect(Buffer.byteLength(String(rows[0]?.['last_error']))).toBeLessThanOrEqual(8_192)
})

test('a follow-on timer whose name somebody is about to take is written when that is over, and its handler not run again', async () => {
  const outbox = outboxOf()
  let runs = 0
  outbox.subscribe(
    'orders',
    (_, { publish }) => {
      runs++
      return publish('ticks', 'mine', { timerId: 't', delayMs: hour })
    },
    { retry: noRetry() },
  )
  const stranger = await database.client()
  await stranger.query('begin')
  await outbox.publish(stranger, 'ticks', 'other', { timerId: 't', delayMs: hour })
  await outbox.publishNow('orders', 1)
  await using _running = await outbox.start()
  const refused = await outbox.told.first('settle_failed')
  await stranger.query('rollback')
  await stranger.end()
  await outbox.told.first('acked')

  expect(refused).toMatchObject({ write: 'follow', delayMs: 1_000, error: { code: '55P03' } })
  expect(runs).toBe(1)
  expect(await messages()).toMatchObject([{ queue: 'ticks', timer_id: 't' }])
})

describe('an outbox that sleeps, on a clock that stands still', () => {
  const never = { pollMs: { min: hour, max: hour } }

  function sleeper() {
    const pool = database.pool()
    onTestFinished(() => pool.end())
    const clock = fakeClock()
    const statements = watchStatements(pool, database.schema)
    const outbox = outboxOf({
      database: pool,
      [Symbol.for('postbox.internals')]: { clock },
    } as OutboxOptions)
    /** It has lain down, and its three loops sleep: engine, lease keeper and heartbeat. */
    const liesStill = () =>
      eventually(() => statements.named('lie_down').some(({ rows }) => rows) && loopsSleep(clock), {
        what: 'the outbox to sleep',
      })
    return { outbox, clock, liesStill }
  }

  test('is woken by what another’s handler publishes', async () => {
    const { outbox, liesStill } = sleeper()
    outbox.subscribe('emails', () => {}, never)
    await using _running = await outbox.start()
    await liesStill()
    await deliver((_, { publish }) => publish('emails', 'hello'))

    expect(await outbox.told.first('acked')).toMatchObject({ queue: 'emails' })
  })

  test('sleeps no longer than until what it snoozed is due', async () => {
    const { outbox, clock, liesStill } = sleeper()
    const odd = 7_777
    let runs = 0
    outbox.subscribe('orders', (_, { snooze }) => void (runs++ === 0 && snooze(odd)), never)
    await using _running = await outbox.start()
    await liesStill()
    await outboxOf().publishNow('orders', 1)
    await outbox.told.first('snoozed')
    // Nothing else asks for so odd a time.
    await eventually(() => clock.left.includes(odd), { what: 'a sleep until the message is due' })
    await database.query(`update outbox set due_at = now() - interval '1 ms'`)
    clock.advance(odd)

    expect(await outbox.told.first('acked')).toMatchObject({ deliveries: 1 })
  })
})
