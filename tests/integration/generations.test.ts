// Code of two generations on one table: the older leaves what the newer has published where it is, and it costs neither of them anything.
import { createOutbox, type Message, noRetry } from 'postbox'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { deleteAcked } from '../../packages/postbox/src/sql/delete-acked.ts'
import { noPolling, watchSleep } from '../rolling/sleep-watch.ts'
import { useBench } from '../support/decisions-bench.ts'
import { inTransaction } from '../support/in-transaction.ts'
import { explainedWorker, type Reading } from '../support/plan.ts'
import { fencesOf, fill, lastAsked, openWorker, passBy, type Worker } from '../support/sessions.ts'
import { collector, eventually } from '../support/signals.ts'
import { watchStatements } from '../support/statements.ts'

const bench = useBench()
const { database, outboxOf, messages } = bench

const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n + 1)
const often = { pollMs: { min: 20, max: 40 } }
const fail = (): never => {
  throw new Error('not now')
}

describe('in a rolling deployment', () => {
  test('old code runs its own messages, new code those of both, and none is run twice', async () => {
    const delivered = collector<{ readonly by: number; readonly message: Message }>('deliveries')
    const codes = [1, 2].map((generation) => {
      const outbox = outboxOf({ generation })
      outbox.subscribe('orders', (message) => delivered.add({ by: generation, message }), {
        ...often,
        concurrency: 2,
      })
      return outbox
    })
    const publishers = [...codes, outboxOf()]
    const ids: string[] = []
    const publishAll = async (): Promise<void> => {
      for (const outbox of publishers)
        await inTransaction(bench.pool(), async (tx) => {
          for (const { id } of await outbox.publishMany(tx, 'orders', upTo(20))) ids.push(id)
        })
    }
    await publishAll()
    await using _old = await codes[0]!.start()
    await delivered.take(40)
    await using _new = await codes[1]!.start()
    await publishAll()

    const all = await delivered.take(120)

    await eventually(async () => (await messages()).length === 0, { what: 'all of them to be settled' })
    expect(all.map(({ message }) => message.id).toSorted()).toEqual(ids.toSorted())
    const newer = all.filter(({ by, message }) => (message.generation ?? by) > by)
    expect(newer).toEqual([])
    expect(all.filter(({ message }) => message.generation === 2)).toHaveLength(40)
    expect(all.map(({ message }) => message.deliveries)).toEqual(all.map(() => 1))
  })

  test.each([
    ['fresh', {}],
    ['due', { delayMs: 1 }],
  ])(
    'old code burns nothing of newer %s messages, its drain ends, and new code finds them',
    async (_, options) => {
      const [old, young] = [outboxOf({ generation: 1 }), outboxOf({ generation: 2 })]
      const got: unknown[] = []
      old.subscribe('orders', () => expect.unreachable(), { maxDeliveries: 1 })
      young.subscribe('orders', ({ body }) => got.push(body))
      for (const n of upTo(3)) await young.publishNow('orders', n, options)
      await database.query(`update outbox set due_at = now() where due_at is not null`)

      const drained = [await old.drain(), await old.drain()]

      expect(drained).toMatchObject([
        { acked: 0, isEmpty: true },
        { acked: 0, isEmpty: true },
      ])
      const untouched = {
        deliveries: 0,
        attempts: 0,
        lease_token: null,
        leased_until: null,
        last_error: null,
      }
      expect(await messages()).toMatchObject(upTo(3).map(() => untouched))
      // For the table as a whole they are ready: somebody has to deploy, or to roll back.
      expect(await old.stats()).toMatchObject({ orders: { ready: { count: 3 }, leased: { count: 0 } } })
      expect(await young.drain()).toMatchObject({ acked: 3, dead: 0 })
      expect(got).toEqual([1, 2, 3])
    },
  )

  test('old code sleeps beside newer messages, those whose time comes soon included', async () => {
    const pool = database.pool()
    onTestFinished(() => pool.end())
    const statements = watchStatements(pool, database.schema)
    const watch = watchSleep()
    const old = outboxOf({ generation: 1, database: pool, ...watch.options })
    old.subscribe('orders', () => expect.unreachable(), { pollMs: noPolling })
    const young = outboxOf({ generation: 2 })
    await young.publishNow('orders', 1)
    await young.publishNow('orders', 2, { delayMs: 60_000 })
    await fill(database, { rows: 5, generation: 2, dueAt: 'now()' })

    await using _old = await old.start()
    await watch.asleep.wait()

    // One to begin with, one before it sleeps, and one for each word of the listener's own.
    expect(statements.named('claim_messages').length).toBeLessThan(10)
    expect(await messages()).toMatchObject(upTo(7).map(() => ({ deliveries: 0 })))
  })

  test('old code takes what is published behind newer messages when it is told of it', async () => {
    const watch = watchSleep()
    const old = outboxOf({ generation: 1, ...watch.options })
    const got = collector<unknown>('messages')
    old.subscribe('orders', ({ body }) => got.add(body), { pollMs: noPolling })
    const young = outboxOf({ generation: 2 })
    for (const n of upTo(5)) await young.publishNow('orders', n)
    await using _old = await old.start()
    await watch.asleep.wait()

    await young.publishNow('orders', 'newer')
    await old.publishNow('orders', 'own')

    expect(await got.take(1)).toEqual(['own'])
    await old.told.first('acked')
  })
})

test('a message that died under code 2, replayed for code 3, is taken by code 3 only', async () => {
  const [second, third] = [outboxOf({ generation: 2 }), outboxOf({ generation: 3 })]
  const runs: unknown[] = []
  second.subscribe('orders', fail, { retry: noRetry() })
  third.subscribe('orders', ({ id, generation, attempt }) => runs.push({ id, generation, attempt }))
  const { id } = await second.publishNow('orders', 1)
  expect(await second.drain()).toMatchObject({ dead: 1 })

  expect(await second.deadLetters.replay(id, { by: 'ann', generation: 3 })).toEqual({
    replayed: true,
    lands: 'anywhere',
  })

  expect(await second.drain()).toMatchObject({ acked: 0, dead: 0, isEmpty: true })
  expect(await messages()).toMatchObject([{ id, generation: '3', deliveries: 0 }])
  expect(await third.drain()).toMatchObject({ acked: 1 })
  expect(runs).toEqual([{ id, generation: 3, attempt: 1 }])
})

test('a replay without a generation leaves the message to the code that it was for', async () => {
  const [first, second] = [outboxOf({ generation: 1 }), outboxOf({ generation: 2 })]
  first.subscribe('orders', () => expect.unreachable())
  second.subscribe(
    'orders',
    ({ attempt, deliveries }) => {
      if (deliveries === 1 && attempt === 1) fail()
    },
    { retry: noRetry() },
  )
  const { id } = await second.publishNow('orders', 1)
  await second.drain()

  await first.deadLetters.replay(id, { by: 'ann' })

  expect(await first.drain()).toMatchObject({ acked: 0, dead: 0 })
  expect(await messages()).toMatchObject([{ id, generation: '2' }])
  expect(await second.drain()).toMatchObject({ dead: 1 })
})

describe('what newer messages cost old code', () => {
  const newer = 2_000
  const looked = ({ lanes }: Reading): readonly number[] => lanes.map(({ rows }) => rows)

  beforeEach(({ onTestFinished }) => {
    onTestFinished(async () => {
      await database.query('truncate outbox restart identity')
    })
  })

  /** Newer messages in both lanes, with a few old ones behind them; all that is known of them is what claims have learnt. */
  const behindNewer = async (): Promise<ReturnType<typeof explainedWorker>> => {
    await fill(database, { rows: newer, generation: 2 })
    await fill(database, { rows: newer, generation: 2, dueAt: `now() - interval '1 hour'` })
    await fill(database, { rows: 50, generation: 1 })
    return explainedWorker(database, {}, 1)
  }
  const settled = async (worker: Worker, room = 10): Promise<number> => {
    const held = await worker.take(room)
    await worker.run(deleteAcked(worker.names, fencesOf(held)))
    return held.length
  }

  test('each lane is read once: the next claims begin behind them, full ones included', async () => {
    const { worker, lastClaim } = await behindNewer()

    expect(await settled(worker)).toBe(10)
    const first = looked(lastClaim())
    await eventually(
      async () => {
        worker.clock.advance(250)
        expect(await settled(worker)).toBe(10)
        return Number(lastAsked(worker).after) > newer
      },
      { what: 'the cursor to pass the newer messages' },
    )

    // The claim whose cursor has passed is the one that was explained last.
    expect(first).toEqual([newer, newer + 10])
    expect(looked(lastClaim())).toEqual([0, 10])
  })

  test('sweeps begin behind them, too, but for the tenth, which begins at zero', async () => {
    const { worker, lastClaim } = await behindNewer()
    await passBy(worker, 2 * newer)
    const sweep = () => worker.take(10, { kind: 'sweep' })
    // A transaction of anybody on this server holds them back while it is open.
    await eventually(
      async () => {
        await sweep()
        return Number(lastAsked(worker).after) > newer
      },
      { what: 'sweeps to begin behind the newer messages' },
    )

    const fresh: number[] = []
    for (let count = 0; count < 20; count++) {
      await sweep()
      fresh.push(looked(lastClaim())[1] ?? 0)
    }

    expect(fresh.filter((rows) => rows >= newer)).toHaveLength(2)
  })

  test('code of their generation that starts later takes them from the first claim on', async () => {
    const { worker } = await behindNewer()
    await passBy(worker, 2 * newer)
    const young = openWorker(bench.pool(), database.schema, 2)

    expect(await young.take(10)).toHaveLength(10)
    expect(await young.take(2 * newer)).toHaveLength(1_000)
  })

  test('a claim of a generation reads the lanes in the order of their indexes, and a hundred scheduled messages at most', async () => {
    await fill(database, { rows: newer, generation: 1 })
    await fill(database, {
      rows: newer,
      generation: 2,
      dueAt: `now() + interval '1 hour' + n * interval '1 s'`,
    })
    const { worker, lastClaim } = explainedWorker(database, {}, 1)

    await worker.take(100, { kind: 'sweep' })

    const { lanes, others, sorts, isCompiled } = lastClaim()
    expect(lanes.map(({ how }) => how)).toEqual(['Index Scan outbox_due', 'Index Scan outbox_ready'])
    expect(looked(lastClaim())).toEqual([0, 100])
    expect(others.filter(({ how }) => how.includes('Seq Scan'))).toEqual([])
    expect(Math.max(...others.map(({ rows }) => rows))).toBeLessThanOrEqual(100)
    expect({ sorts, isCompiled }).toEqual({ sorts: 0, isCompiled: false })
  })
})

test('an outbox without a generation claims whatever there is', async () => {
  const outbox = createOutbox({ database: bench.pool(), schema: database.schema, logger: false })
  outbox.subscribe('orders', () => {})
  for (const generation of [1, 7]) await outboxOf({ generation }).publishNow('orders', generation)

  expect(await outbox.drain()).toMatchObject({ acked: 2 })
})
