// First rows that somebody has locked (a transaction that cancels or replaces a timer, another claim): they hold nothing back but their key.
import type pg from 'pg'
import { createOutbox } from 'postbox'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { claimInOrder, type OrderedQueue } from '../../packages/postbox/src/sql/claim-in-order.ts'
import { spareLooks } from '../../packages/postbox/src/sql/first-rows.ts'
import { resolveNames } from '../../packages/postbox/src/sql/names.ts'
import { useDatabase } from '../support/database.ts'
import { useOrderClaims } from '../support/order-claims.ts'
import { openTransaction } from '../support/sessions.ts'

const database = useDatabase()
const { publish, claim } = useOrderClaims(database)
let pool: pg.Pool

beforeAll(() => {
  pool = database.pool()
})

const nowhere = '100000'
const longDue = `due_at = now() - interval '1 h' + seq * interval '1 ms'`
const settled = (...keys: readonly string[]) => keys.map((key) => ({ key, after: '0' }))
const change = (set: string, where = 'true') => database.query(`update outbox set ${set} where ${where}`)
const fill = (rows: number) =>
  database.query(
    `insert into outbox (id, queue, body) select gen_random_uuid(), 'orders', '1' from generate_series(1, ${rows})`,
  )
/** Rows that somebody has until the test is over. */
async function lock(where: string): Promise<void> {
  const user = await openTransaction(pool)
  await user.query(`select from outbox where ${where} for update`)
}

const ways: Readonly<Record<string, { readonly wanted: Partial<OrderedQueue>; readonly set?: string }>> = {
  'that are fresh': { wanted: {} },
  'that are due': { wanted: { after: nowhere }, set: longDue },
  'behind settled ones': { wanted: { after: nowhere, keys: settled('a', 'b', 'c', 'd') } },
  'that a sweep finds': { wanted: { after: nowhere, keysFrom: '' } },
}

describe.each(Object.entries(ways))('first rows %s', (_, { wanted, set = 'attempts = 0' }) => {
  test('which somebody has locked leave their room to the next, in turn', async () => {
    await publish('a', 'b', 'c', 'd')
    await change(set)
    await lock('seq <= 2')

    const { seqs } = await claim(wanted)

    expect(seqs).toEqual([3])
  })
})

test('what is due and locked leaves its room to what is fresh', async () => {
  await publish(null, 'a', 'b')
  await change(longDue, 'seq = 1')
  await lock('seq = 1')

  expect((await claim({})).seqs).toEqual([2])
})

test('a claim locks no more rows than it has room for, however many it might take', async () => {
  await publish('a', 'b', 'c', 'd', 'e')
  await change(longDue, 'seq <= 2')
  await lock('seq = 1')
  const claimer = await pool.connect()
  onTestFinished(async () => {
    await claimer.query('rollback')
    claimer.release()
  })
  await claimer.query('begin')
  const names = resolveNames({ schema: database.schema, table: 'outbox' })
  const wanted = { queue: 'orders', room: 2, leaseMs: 60_000, after: '0', dueFromMs: null }
  const queues = [
    { ...wanted, keys: settled('e'), keysFrom: '' },
    { ...wanted, queue: 'mails', room: 9, keys: [], keysFrom: null },
  ]
  const { text, values } = claimInOrder(names, { token: crypto.randomUUID(), queues })
  await claimer.query(text, [...values])

  const free = await database.query('select seq::int from outbox order by seq for update skip locked')

  expect(free.map(({ seq }) => seq)).toEqual([4, 5])
})

describe('where somebody has locked more than a claim offers', () => {
  test('of what is fresh, it says how far it has looked, and the next finds the rest behind that', async () => {
    const most = 1 + spareLooks
    await fill(most + 2)
    await lock(`seq <= ${most}`)

    const first = await claim({})
    const second = await claim({ after: String(first.queue?.reached) })

    const { reached, more, leftover } = first.queue ?? {}
    expect({ seqs: first.seqs, reached, more, leftover }).toEqual({
      seqs: [],
      reached: String(most),
      more: 'true',
      leftover: 'true',
    })
    expect(second.seqs).toEqual([most + 1])
  })

  test('of what is due, it says that something was left', async () => {
    const most = 1 + spareLooks
    await fill(most + 1)
    await change(longDue)
    await lock(`seq <= ${most}`)

    const { seqs, queue } = await claim({})

    expect([seqs, queue?.leftover]).toEqual([[], 'true'])
  })
})

test('where all that could be had is locked, and no more than a claim offers, nothing was left', async () => {
  await publish(null, 'a')
  await change(longDue, 'seq = 1')
  await lock('true')

  const { seqs, queue } = await claim({})

  expect([seqs, queue?.more, queue?.leftover]).toEqual([[], 'false', 'false'])
})

test('a drain that may run one message at a time runs all but the timer that somebody is cancelling', async () => {
  const outbox = createOutbox({
    database: pool,
    schema: database.schema,
    logger: false,
    queues: { orders: { order: 'key' } },
  })
  const got: unknown[] = []
  outbox.subscribe('orders', ({ body }) => void got.push(body), { concurrency: 1, prefetch: 0 })
  await outbox.publishNow('orders', 'cancelled', { timerId: 'x', delayMs: 60_000 })
  await outbox.publishNow('orders', 'due', { delayMs: 60_000 })
  await change(longDue)
  for (const body of ['a1', 'a2']) await outbox.publishNow('orders', body, { key: 'a' })
  const user = await pool.connect()
  onTestFinished(async () => {
    await user.query('rollback')
    user.release()
  })
  await user.query('begin')
  await outbox.cancelTimer(user, 'orders', 'x')

  const { isEmpty } = await outbox.drain()

  expect([isEmpty, got]).toEqual([true, ['due', 'a1', 'a2']])
})
