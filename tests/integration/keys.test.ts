// Keys of ordered queues that wait until somebody decides: what operators see of them, and what they can do.
import { randomUUID } from 'node:crypto'
import type { Message, OutboxOptions, SubscribeOptions } from 'postbox'
import { createOutbox } from 'postbox'
import { describe, expect, test } from 'vitest'
import { resolveNames } from '../../packages/postbox/src/sql/names.ts'
import { replayDeadLetters } from '../../packages/postbox/src/sql/replay-dead-letters.ts'
import { layDown } from '../support/dead-letters.ts'
import { type Row, useBench } from '../support/decisions-bench.ts'
import { callReplay } from '../support/replayers.ts'
import { type Collector, collector, eventually } from '../support/signals.ts'

const bench = useBench()
const { database } = bench
const queues = { orders: { order: 'key' }, letters: {} } as const
const by = 'ann'
const names = resolveNames({ schema: database.schema, table: 'outbox' })

/** An outbox whose handler rejects what it is told to, the first time it comes, and its key then waits. */
function parking(options: SubscribeOptions = {}, given: OutboxOptions = {}) {
  const outbox = bench.outboxOf({ queues, ...given })
  const got = collector<Message>('deliveries')
  const bad = new Set<unknown>()
  outbox.subscribe(
    'orders',
    (message, context) => {
      got.add(message)
      if (bad.delete(message.body)) context.reject(`no ${message.body}`)
    },
    { failingHead: 'park', ...options },
  )
  const publish = async (...bodies: string[]): Promise<void> => {
    for (const body of bodies) await outbox.publishNow('orders', body, { key: body.charAt(0) })
  }
  return { outbox, got, bad, publish }
}

const bodies = ({ all }: Collector<Message>, key = 'a'): readonly unknown[] =>
  all.filter((message) => message.key === key).map(({ body }) => body)

const isEmpty = (): Promise<unknown> =>
  eventually(async () => (await bench.messages()).every((row) => row['failed_at'] !== null), {
    what: 'all that lives to be handled',
  })

describe('a key whose first message is dead', () => {
  test('waits, is told of and listed; resumed, it goes on with that very message', async () => {
    const { outbox, got, bad, publish } = parking()
    bad.add('a1')
    await using _ = await outbox.start()
    await publish('a1')
    const dead = await outbox.told.first('dead')
    await publish('a2', 'a3', 'b1')
    await got.find(({ body }) => body === 'b1')

    const { items, next } = await outbox.keys.list({ queue: 'orders' })
    expect(dead).toMatchObject({ queue: 'orders', key: 'a', isParked: true, reason: 'rejected' })
    expect(next).toBeNull()
    expect(items).toEqual([
      {
        ...{ queue: 'orders', key: 'a', state: 'parked', waiting: { count: 2, atLeast: false } },
        head: {
          ...{ id: dead.id, seq: dead.seq, attempts: 1, reason: 'rejected', error: 'no a1', dueAt: null },
          since: expect.any(Date),
        },
      },
    ])
    expect(await outbox.deadLetters.get(dead.id)).toMatchObject({ isParked: true, isQuarantined: false })
    expect((await outbox.stats())['orders']).toMatchObject({ parked: { count: 1, atLeast: false } })

    expect(await outbox.keys.resume('orders', 'a', { by })).toEqual({ resumed: true, id: dead.id })
    await got.find(({ body }) => body === 'a3')
    expect(bodies(got)).toEqual(['a1', 'a1', 'a2', 'a3'])
    await isEmpty()
    expect((await outbox.keys.list({ queue: 'orders' })).items).toEqual([])
  })

  test('goes on without it when it is skipped; it stays a dead letter, and the next message says so', async () => {
    const { outbox, got, bad, publish } = parking()
    bad.add('a1')
    await using _ = await outbox.start()
    await publish('a1')
    const { id } = await outbox.told.first('dead')
    await publish('a2', 'a3')

    expect(await outbox.keys.skip('orders', 'a', { by })).toEqual({ skipped: true, id })

    await got.find(({ body }) => body === 'a3')
    expect(got.all.map(({ body, afterDead }) => [body, afterDead])).toEqual([
      ['a1', null],
      ['a2', id],
      ['a3', null],
    ])
    expect(await outbox.deadLetters.get(id)).toMatchObject({ isParked: false, isQuarantined: true })
    expect(await outbox.keys.skip('orders', 'a', { by })).toEqual({ skipped: false, because: 'not_parked' })
    expect((await outbox.deadLetters.operations({ limit: 1 })).items).toMatchObject([
      { kind: 'skip', by, filter: { queue: 'orders', key: 'a', id }, changed: 1 },
    ])
  })

  test('goes on when it is discarded by its id, and not when others are, or all of an age', async () => {
    const { outbox, got, bad, publish } = parking()
    bad.add('a1')
    await using _ = await outbox.start()
    await publish('a1')
    const { id } = await outbox.told.first('dead')
    await publish('a2')

    expect(await outbox.deadLetters.discard({ queue: 'orders' }, { by })).toMatchObject({ discarded: 0 })
    expect(await outbox.deadLetters.purge({ olderThanMs: 0 })).toEqual({ purged: 0 })
    expect(await outbox.deadLetters.discard(id, { by })).toMatchObject({ discarded: 1 })

    const next = await got.find(({ body }) => body === 'a2')
    expect(next.afterDead).toBe(id)
    expect(await outbox.deadLetters.get(id)).toBeNull()
  })

  test('is resumed by a replay of it, in its place, by the library and by the SQL function', async () => {
    const { outbox, got, bad, publish } = parking()
    for (const body of ['a1', 'b1']) bad.add(body)
    await using _ = await outbox.start()
    await publish('a1', 'b1')
    const dead = await outbox.told.take('dead', 2)
    await publish('a2', 'b2')
    const idOf = (key: string): string => dead.find((event) => event.key === key)!.id

    const replayed = await outbox.deadLetters.replay(idOf('a'), { by })
    const { rows } = await bench.pool().query(callReplay, [idOf('b'), null, by])

    expect(replayed).toEqual({ replayed: true, lands: 'in_place' })
    expect(rows).toEqual([{ answer: 'replayed' }])
    await isEmpty()
    expect([bodies(got, 'a'), bodies(got, 'b')]).toEqual([
      ['a1', 'a1', 'a2'],
      ['b1', 'b1', 'b2'],
    ])
  })

  test('that is retried is listed with the time of its next run', async () => {
    const outbox = bench.outboxOf({ queues })
    outbox.subscribe('orders', () => Promise.reject(new Error('not now')), { retry: () => 3_600_000 })
    await using _ = await outbox.start()
    await outbox.publishNow('orders', 1, { key: 'a' })
    const { id } = await outbox.told.first('retried')
    await outbox.publishNow('orders', 2, { key: 'a' })

    const { items } = await outbox.keys.list({ queue: 'orders', blocked: 'retrying' })

    expect(items).toMatchObject([
      { key: 'a', state: 'retrying', waiting: { count: 1 }, head: { id, attempts: 1, reason: null } },
    ])
    expect(items[0]!.head.error).toContain('not now')
    expect(items[0]!.head.dueAt!.getTime()).toBeGreaterThan(Date.now() + 3_000_000)
    expect(items[0]!.head.since).toBeInstanceOf(Date)
    expect(await outbox.keys.resume('orders', 'a', { by })).toEqual({ resumed: false, because: 'not_parked' })
    expect((await outbox.keys.list({ queue: 'orders', blocked: 'parked' })).items).toEqual([])
  })
})

describe('whoever sleeps is woken by', () => {
  // Nobody polls before the test is over.
  const pollMs = { min: 60_000, max: 60_000 }

  test.each(['resume', 'skip', 'discard', 'replay'] as const)('a %s', async (how) => {
    const { outbox, got, bad, publish } = parking({ pollMs })
    bad.add('a1')
    await using _ = await outbox.start()
    await publish('a1')
    const { id } = await outbox.told.first('dead')
    await publish('a2')
    await outbox.publishNow('orders', 'c1', { key: 'c' })
    await got.find(({ body }) => body === 'c1')
    const decide = {
      resume: () => outbox.keys.resume('orders', 'a', { by }),
      skip: () => outbox.keys.skip('orders', 'a', { by }),
      discard: () => outbox.deadLetters.discard(id, { by }),
      replay: () => outbox.deadLetters.replay(id, { by }),
    }

    await decide[how]()

    expect((await got.find(({ body }) => body === 'a2')).key).toBe('a')
  })
})

describe('a dead letter that has lost its place', () => {
  test.each(['table', 'in-place'] as const)(
    'lands behind its key (%s), replayed by anybody',
    async (deadLetters) => {
      const { outbox, got, bad, publish } = parking({ failingHead: 'skip' }, { deadLetters })
      for (const body of ['a1', 'b1']) bad.add(body)
      const running = await outbox.start()
      await publish('a1', 'b1')
      const dead = await outbox.told.take('dead', 2)
      await running.stop()
      await publish('a2', 'b2')
      const idOf = (key: string): string => dead.find((event) => event.key === key)!.id
      // Whoever replays has not to know of the order.
      const operator = createOutbox({
        database: bench.pool(),
        schema: database.schema,
        logger: false,
        deadLetters,
      })

      const replayed = await operator.deadLetters.replay(idOf('a'), { by })
      await bench.pool().query(callReplay, [idOf('b'), null, by])
      await publish('a3', 'b3')

      expect(dead.map(({ isParked }) => isParked)).toEqual([false, false])
      expect(replayed).toEqual({ replayed: true, lands: 'behind_key' })
      const inTable = async (key: string): Promise<string[]> =>
        (await bench.messages()).filter((row: Row) => row['key'] === key).map(({ body }) => String(body))
      expect([await inTable('a'), await inTable('b')]).toEqual([
        ['a2', 'a1', 'a3'],
        ['b2', 'b1', 'b3'],
      ])
      await using _ = await outbox.start()
      await isEmpty()
      expect([bodies(got, 'a'), bodies(got, 'b')]).toEqual([
        ['a1', 'a2', 'a1', 'a3'],
        ['b1', 'b2', 'b1', 'b3'],
      ])
    },
  )

  test('lands behind its key by replayAll; those that hold theirs are in their places', async () => {
    const { outbox, got, bad, publish } = parking()
    for (const body of ['a1', 'b1']) bad.add(body)
    const running = await outbox.start()
    await publish('a1', 'b1')
    await outbox.told.take('dead', 2)
    await outbox.keys.skip('orders', 'a', { by })
    await running.stop()
    await publish('a2', 'b2')

    expect(await outbox.deadLetters.replayAll({}, { by })).toMatchObject({ replayed: 2, finished: true })

    await using _ = await outbox.start()
    await isEmpty()
    expect([bodies(got, 'a'), bodies(got, 'b')]).toEqual([
      ['a1', 'a2', 'a1'],
      ['b1', 'b1', 'b2'],
    ])
  })
})

test.each([
  [200, { exclusive: 200, shared: 1 }],
  [300, { exclusive: 1, shared: 0 }],
])('a batch of %i keys that are replayed takes no more locks than a publisher', async (count, locks) => {
  await database.query(
    `insert into outbox_queues (name, message_order) values ('orders', 'key') on conflict do nothing`,
  )
  const keys = Array.from({ length: count }, (_, n) => ({ key: `k${n}` }))
  await layDown(database, 'moved', [...keys, ...keys])
  const settings = { perSecond: null, limit: null, generation: null, delayMs: 0 }
  const query = { queue: 'orders', reason: null, sinceMs: null, untilMs: null, key: null, search: null }
  const batch = { operation: randomUUID(), stretch: { query, after: null, beforeMicros: null }, size: 600 }
  const { text, values } = replayDeadLetters(names, {
    ...{ ...batch, by, settings, historyLimit: 20, wake: 'poll' },
  })
  const client = await bench.pool().connect()
  try {
    await client.query('begin')
    await client.query(text, [...values])
    const { rows } = await client.query(
      `select count(*) filter (where mode = 'ExclusiveLock')::int as exclusive, count(*) filter (where mode = 'ShareLock')::int as shared
         from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()`,
    )
    expect(rows).toEqual([locks])
    expect((await client.query('select from outbox')).rowCount).toBe(2 * count)
  } finally {
    await client.query('rollback')
    client.release()
  }
})

test('of twenty operators at one key one decides, and nobody gets an error', async () => {
  const { outbox, bad, publish } = parking()
  bad.add('a1')
  const running = await outbox.start()
  await publish('a1')
  const { id } = await outbox.told.first('dead')
  await running.stop()
  await publish('a2', 'a3')

  const results = await Promise.all(
    Array.from({ length: 20 }, (_, n) => outbox.keys[n % 2 === 0 ? 'resume' : 'skip']('orders', 'a', { by })),
  )

  const decided = results.filter((one) => ('resumed' in one ? one.resumed : one.skipped))
  expect(decided).toMatchObject([{ id }])
  const noted = (await bench.messages()).filter((row: Row) => row['after_dead'] !== null)
  expect(noted).toHaveLength('skipped' in decided[0]! ? 1 : 0)
})

test('whatever operators do while it is handled, the messages of a key come one at a time, and never before one that is done', async () => {
  const outbox = bench.outboxOf({ queues })
  const running = new Set<string | null>()
  const done: { key: string | null; seq: bigint }[] = []
  const broken: string[] = []
  let runs = 0
  outbox.subscribe(
    'orders',
    async (message, context) => {
      if (running.has(message.key)) broken.push(`two of ${message.key}`)
      running.add(message.key)
      await new Promise(setImmediate)
      running.delete(message.key)
      if (++runs % 5 === 0) context.reject('now and then')
    },
    { failingHead: 'park', concurrency: 6, pollMs: { min: 20, max: 40 } },
  )
  const keyOf = new Map<string, string>()
  await using _ = await outbox.start()
  for (let n = 0; n < 120; n++) {
    const receipt = await outbox.publishNow('orders', n, { key: `k${n % 4}` })
    keyOf.set(receipt!.id, `k${n % 4}`)
  }
  for (let turn = 0; outbox.told.of('acked').length < 120; turn++) {
    const { items } = await outbox.keys.list({ queue: 'orders', blocked: 'parked' })
    for (const { key } of items) await outbox.keys[turn % 2 === 0 ? 'skip' : 'resume']('orders', key, { by })
    await outbox.deadLetters.replayAll({ queue: 'orders' }, { by })
  }

  for (const { id, seq } of outbox.told.of('acked'))
    done.push({ key: keyOf.get(id) ?? null, seq: BigInt(seq) })
  for (const key of new Set(keyOf.values())) {
    const seqs = done.filter((one) => one.key === key).map(({ seq }) => seq)
    expect(seqs).toEqual(seqs.toSorted((a, b) => (a < b ? -1 : 1)))
  }
  expect(broken).toEqual([])
})

describe('what is refused', () => {
  const { keys } = createOutbox({
    database: { query: async () => [], transaction: async () => null as never },
  })

  test.each([
    ['no key', () => keys.resume('orders', '', { by }), /`key` to be a non-empty string/],
    ['no queue', () => keys.skip('', 'a', { by }), /`queue`/],
    ['nobody', () => keys.skip('orders', 'a', {} as never), /`by` to be a non-empty string/],
    [
      'no options',
      () => keys.resume('orders', 'a', undefined as never),
      /the options of resume to be an object.*give \{ by \}/,
    ],
    [
      'an option that is none',
      () => keys.skip('orders', 'a', { by, how: 1 } as never),
      /unknown option `how`/,
    ],
    [
      'a list of no queue',
      () => keys.list(undefined as never),
      /the options of list to be an object.*give \{ queue \}/,
    ],
    [
      'a list of another kind',
      () => keys.list({ queue: 'q', blocked: 'dead' as never }),
      /'parked', 'retrying', or true/,
    ],
    [
      'a page of another list',
      () => keys.list({ queue: 'q', after: '1-d-1' }),
      /the `next` of a page of keys/,
    ],
    ['too long a page', () => keys.list({ queue: 'q', limit: 201 }), /from 1 to 200/],
  ])('%s', async (_what, call, sentence) => {
    await expect(call()).rejects.toThrow(sentence)
  })

  test('tables that are not there', async () => {
    const { keys } = createOutbox({ database: bench.pool(), schema: database.schema, table: 'none' })
    for (const call of [
      () => keys.list({ queue: 'orders' }),
      () => keys.resume('orders', 'a', { by }),
      () => keys.skip('orders', 'a', { by }),
    ])
      await expect(call()).rejects.toMatchObject({ code: 'OUTBOX_SCHEMA_MISSING' })
  })
})
