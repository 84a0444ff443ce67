import { type Context, constant, type Message, noRetry, TerminalError } from 'postbox'
import { describe, expect, test } from 'vitest'
import { useBench } from '../support/decisions-bench.ts'
import { signal } from '../support/signals.ts'

const bench = useBench()
const { database, outboxOf, messages, dead } = bench

type Handle = (message: Message, context: Context) => unknown

/** Delivers one message to a handler, until something became of it. */
async function deliver(handler: Handle, options: object = {}, outboxOptions: object = {}) {
  const outbox = outboxOf(outboxOptions)
  outbox.subscribe('orders', handler, { name: 'ship', ...options })
  await outbox.publishNow('orders', { item: 'tea' }, { headers: { type: 'placed' }, key: 'k' })
  const drained = await outbox.drain()
  return { drained, told: outbox.told, rows: await messages(), dead: await dead() }
}

/** What fails comes back when the test is over. */
const hour = constant({ delayMs: 3_600_000 })

const fail = (): never => {
  throw new Error('no stock')
}

describe('what a handler decides is what the row becomes', () => {
  test('ack deletes it, though the handler throws afterwards, which is told', async () => {
    const { rows, dead, told, drained } = await deliver((_, { ack }) => {
      ack()
      fail()
    })

    expect([rows, dead]).toEqual([[], []])
    expect(drained).toMatchObject({ acked: 1, retried: 0, dead: 0 })
    expect(told.of('warning')).toMatchObject([
      { code: 'thrown_after_decision', error: { message: 'no stock' } },
    ])
  })

  test('retry puts it back for when it says, and counts an attempt', async () => {
    const { rows, told, drained } = await deliver((_, { retry }) =>
      retry({ afterMs: 3_600_000, error: new Error('closed') }),
    )
    const [row] = await database.query(`select due_at > now() + interval '59 minutes' as later from outbox`)

    expect(rows).toMatchObject([
      { attempts: 1, deliveries: 1, last_error: 'Error: closed', lease_token: null },
    ])
    expect(row).toEqual({ later: true })
    expect(told.of('retried')).toMatchObject([
      { delayMs: 3_600_000, handler: 'ship', queue: 'orders', attempt: 1 },
    ])
    expect(drained).toMatchObject({ retried: 1 })
  })

  test('retry obeys the policy: when that allows no other run, the message is dead', async () => {
    const { rows, dead } = await deliver((_, { retry }) => retry({ afterMs: 5 }), { retry: noRetry() })

    expect(rows).toEqual([])
    expect(dead).toMatchObject([{ failure_reason: 'retry_terminal', attempts: 1, last_error: null }])
  })

  test('reject moves it to the dead letters with its reason', async () => {
    const { rows, dead, told, drained } = await deliver((_, { reject }) => reject('sold out'))

    expect(rows).toEqual([])
    expect(dead).toMatchObject([{ failure_reason: 'rejected', last_error: 'sold out', attempts: 1 }])
    expect(told.of('dead')).toMatchObject([{ reason: 'rejected', error: 'sold out', attempts: 1 }])
    expect(told.of('acked')).toEqual([])
    expect(drained).toMatchObject({ dead: 1 })
  })

  test('snooze puts it back, and counts neither attempt nor delivery', async () => {
    const { rows, told, drained } = await deliver((_, { snooze }) => snooze(3_600_000))

    expect(rows).toMatchObject([{ attempts: 0, deliveries: 0, last_error: null, lease_token: null }])
    expect(told.of('snoozed')).toMatchObject([{ delayMs: 3_600_000, handler: 'ship' }])
    expect(drained).toMatchObject({ snoozed: 1 })
  })

  test('the first decision counts', async () => {
    const { rows, dead } = await deliver((_, { snooze, reject, ack }) => {
      snooze(3_600_000)
      reject('too late')
      ack()
    })

    expect(rows).toHaveLength(1)
    expect(dead).toEqual([])
  })

  test('a function that is returned and not called is a failure', async () => {
    const { rows } = await deliver((_, context) => context.snooze, { retry: hour })

    expect(rows).toMatchObject([{ attempts: 1 }])
    expect(rows[0]?.['last_error']).toMatch(/returned .* instead of calling it/)
  })
})

describe('how a handler ends, by `ack`', () => {
  test.for([
    ['auto', 'returns', { left: 0, dead: [] }],
    ['auto', 'throws', { left: 1, dead: [] }],
    ['reject-on-error', 'returns', { left: 0, dead: [] }],
    ['reject-on-error', 'throws', { left: 0, dead: ['rejected'] }],
    ['manual', 'returns', { left: 0, dead: ['rejected'] }],
    ['manual', 'throws', { left: 1, dead: [] }],
    ['manual', 'acks', { left: 0, dead: [] }],
  ] as const)('%s, and it %s', async ([ack, how, expected]) => {
    const handler: Handle = (_, context) => (how === 'throws' ? fail() : how === 'acks' && context.ack())
    const { rows, dead } = await deliver(handler, { ack, retry: hour })

    expect({ left: rows.length, dead: dead.map((row) => row['failure_reason']) }).toEqual(expected)
  })
})

describe('what is thrown', () => {
  const sqlError = (code: string): Error =>
    Object.assign(new Error('Failed query'), { cause: Object.assign(new Error('db'), { code }) })

  test.for([
    ['a TerminalError', () => new TerminalError('never'), 'terminal_error'],
    ['a violated constraint, wrapped by an ORM', () => sqlError('23505'), 'terminal_error'],
    ['bad data, wrapped by an ORM', () => sqlError('22P02'), 'terminal_error'],
    ['a deadlock', () => sqlError('40P01'), null],
    ['a serialisation failure', () => sqlError('40001'), null],
    ['a lost connection', () => sqlError('08006'), null],
    ['a cancelled query', () => sqlError('57014'), null],
    ['anything else', () => new Error('who knows'), null],
    ['nothing', () => undefined, null],
  ] as readonly (readonly [string, () => unknown, string | null])[])('%s', async ([, make, reason]) => {
    const { rows, dead } = await deliver(() => {
      throw make()
    })

    expect(dead.map((row) => row['failure_reason'])).toEqual(reason === null ? [] : [reason])
    expect(rows).toHaveLength(reason === null ? 1 : 0)
  })

  test('is terminal when its class is named, or `classify` says so', async () => {
    class Gone extends Error {}
    const named = await deliver(
      () => {
        throw new Gone('410')
      },
      { terminalErrors: [Gone] },
    )
    const classified = await deliver(fail, { classify: () => 'terminal' })

    expect(named.dead).toMatchObject([{ failure_reason: 'terminal_error', last_error: 'Error: 410' }])
    expect(classified.dead.at(-1)).toMatchObject({
      failure_reason: 'terminal_error',
      last_error: 'Error: no stock',
    })
  })

  test.for([
    ['throws', () => fail()],
    ['returns NaN', () => Number.NaN],
    ['returns infinity', () => Number.POSITIVE_INFINITY],
    ['returns a promise', () => Promise.reject(new Error('async')) as never],
  ] as const)(
    'and a retry policy that %s: the message is dead, with what was thrown, and the policy is told of',
    async ([, retry]) => {
      const { dead, told } = await deliver(
        () => {
          throw new Error('original')
        },
        { retry },
      )

      expect(dead).toMatchObject([{ failure_reason: 'retry_terminal', last_error: 'Error: original' }])
      expect(told.of('warning')).toMatchObject([{ code: 'policy_failed' }])
    },
  )
})

test('a body that its queue does not allow is dead at once, and its handler not run', async () => {
  let runs = 0
  const outbox = outboxOf()
  outbox.subscribe('orders', () => runs++)
  await database.query(`insert into outbox (id, queue, body) values (gen_random_uuid(), 'orders', '{broken')`)
  await outbox.drain()

  expect(runs).toBe(0)
  expect(await dead()).toMatchObject([{ failure_reason: 'invalid_body', attempts: 1 }])
})

describe('a message that was delivered five times without an outcome', () => {
  const insert = (deliveries: number, attempts = 0) =>
    database.query(
      `insert into outbox (id, queue, body, deliveries, attempts) values (gen_random_uuid(), 'orders', '1', ${deliveries}, ${attempts})`,
    )
  const drainWith = async (options: object = {}) => {
    let runs = 0
    const outbox = outboxOf()
    outbox.subscribe('orders', () => runs++, options)
    await outbox.drain()
    return { runs, told: outbox.told, dead: await dead() }
  }

  test('is dead when it is claimed once more: its handler is not run', async () => {
    await insert(5)
    const { runs, dead, told } = await drainWith()

    expect(runs).toBe(0)
    expect(dead).toMatchObject([
      { failure_reason: 'max_deliveries', attempts: 0, deliveries: 5, first_attempt_at: null },
    ])
    expect(dead[0]?.['last_error']).toMatch(/^delivered 5 times without an outcome/)
    expect(told.of('dispatched')).toEqual([])
    expect(told.of('dead')).toMatchObject([{ reason: 'max_deliveries', durationMs: null, attempts: 0 }])
  })

  test.for([
    ['four times', 4, 0, {}],
    ['as often, but failed as often', 5, 5, {}],
    ['as often, with a higher limit', 5, 0, { maxDeliveries: 6 }],
    ['as often, without a limit', 500, 0, { maxDeliveries: null }],
  ] as const)('is run when it was delivered %s', async ([, deliveries, attempts, options]) => {
    await insert(deliveries, attempts)
    const { runs, dead } = await drainWith(options)

    expect({ runs, dead }).toEqual({ runs: 1, dead: [] })
  })
})

test('a handler that gives up because the process stops costs its message nothing', async () => {
  const started = signal('the handler starts')
  const outbox = outboxOf({ stopTimeoutMs: 1 })
  outbox.subscribe('orders', async (_, context) => {
    started.send()
    await new Promise((_, reject) =>
      context.signal.addEventListener('abort', () => reject(context.signal.reason)),
    )
  })
  await outbox.publishNow('orders', 1)
  const running = await outbox.start()
  await started.wait()
  await running.stop()

  expect(await messages()).toMatchObject([{ attempts: 0, deliveries: 0, lease_token: null, due_at: null }])
  expect(outbox.told.of('released')).toMatchObject([{ queue: 'orders' }])
  expect(outbox.told.of('retried')).toEqual([])
})

describe('success', () => {
  test('never touches the dead letters', async () => {
    await database.query('alter table outbox_dead rename to outbox_dead_away')
    try {
      const { rows, drained, told } = await (async () => {
        const outbox = outboxOf()
        outbox.subscribe('orders', (_, context) => void context.publish('others', 1))
        await outbox.publishNow('orders', 1)
        return { drained: await outbox.drain(), told: outbox.told, rows: await messages() }
      })()

      expect(rows).toMatchObject([{ queue: 'others' }])
      expect(drained).toMatchObject({ acked: 1 })
      expect(told.of('settle_failed')).toEqual([])
    } finally {
      await database.query('alter table outbox_dead_away rename to outbox_dead')
    }
  })
})

test('with deadLetters discard what is dead is deleted, and told', async () => {
  const { rows, dead, told } = await deliver(fail, { retry: noRetry() }, { deadLetters: 'discard' })

  expect([rows, dead]).toEqual([[], []])
  expect(told.of('dead')).toMatchObject([
    { reason: 'retry_terminal', queue: 'orders', handler: 'ship', key: 'k', type: 'placed', source: null },
  ])
  expect(told.of('dlq_written')).toEqual([])
})
