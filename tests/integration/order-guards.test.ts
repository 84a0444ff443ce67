// What a claim in order must not take, by each of the ways on which it finds first rows, and what it tells of how far it looked.
import { describe, expect, test } from 'vitest'
import type { OrderedQueue } from '../../packages/postbox/src/sql/claim-in-order.ts'
import { mostDueLooks, mostRowLooks, spareLooks } from '../../packages/postbox/src/sql/first-rows.ts'
import { useDatabase } from '../support/database.ts'
import { useOrderClaims } from '../support/order-claims.ts'

const database = useDatabase()
const { publish, claim, claimAll } = useOrderClaims(database)

const nowhere = '1000'
const settled = (...keys: readonly string[]) => keys.map((key) => ({ key, after: '0' }))
const change = (set: string, where = 'true') => database.query(`update outbox set ${set} where ${where}`)

const lease = (until: string) => `lease_token = gen_random_uuid(), leased_until = now() ${until}`

/** More than a claim with room for one is offered. */
const many = Array.from({ length: 1 + spareLooks }, (_, n) => `a${n}`)

/** The ways to the first rows of all keys: what is asked for, and what is done to the rows before. */
const ways: Readonly<Record<string, { readonly wanted: Partial<OrderedQueue>; readonly set?: string }>> = {
  'that is fresh': { wanted: {} },
  'that is due': { wanted: { after: nowhere }, set: `due_at = now() - interval '1 s'` },
  'behind a settled one': { wanted: { after: nowhere, keys: settled('a', ...many, 'b') } },
  'that a sweep finds': { wanted: { after: nowhere, keysFrom: '' } },
}
const reasons = {
  'somebody holds': lease(`+ interval '1 h'`),
  'is of a newer generation': 'generation = 2',
  'is to be tried later': `due_at = now() + interval '1 h', attempts = 1`,
  'is parked': `due_at = 'infinity', failed_at = now(), failure_reason = 'rejected', parked_at = now()`,
} as const

describe.each(Object.entries(ways))('a first row %s', (_, { wanted, set = 'attempts = 0' }) => {
  test.each(Object.entries(reasons))(
    'which %s is left, and takes no room from another key, however many there are',
    async (_, reason) => {
      await publish(...many, 'b')
      await change(set)
      await change(reason, `seq <= ${many.length}`)

      const { seqs, left } = await claim(wanted, 1)

      expect({ seqs, left }).toEqual({ seqs: [many.length + 1], left: null })
    },
  )

  test('whose lease has ended is taken', async () => {
    await publish('a', 'b')
    await change(set)
    await change(lease(`- interval '1 s'`), 'seq = 1')

    expect((await claim(wanted)).seqs).toEqual([1])
  })

  test('is neither taken nor looked at while its queue is paused', async () => {
    await publish('a', 'b')
    await change(set)
    await database.query(`insert into outbox_queues (name, paused_at) values ('orders', now())`)

    const { seqs, queue } = await claim(wanted)

    expect([seqs, queue?.reached]).toEqual([[], null])
  })
})

test('messages without a key are each a first, beside keys that were settled, too', async () => {
  await publish(null, null, 'a', null)

  expect((await claim({ room: 2 })).seqs).toEqual([1, 2])
  expect((await claim({ room: 10, keys: settled('b') })).seqs).toEqual([3, 4])
})

test('each queue has a room, a lease, keys and an end of its own', async () => {
  await publish('x', 'a', 'a', 'b', 'c', 'd')
  await change(`queue = 'mails'`, 'seq <= 2')

  const { seqs, queue } = await claimAll([
    { queue: 'mails', room: 3, leaseMs: 600_000 },
    { queue: 'orders', room: 2, keys: settled('a', 'b') },
  ])

  expect(seqs).toEqual([1, 2, 3, 5])
  expect([queue?.queue, queue?.reached, queue?.more]).toEqual(['mails', '2', 'false'])
  const leases = await database.query(
    `select seq::int from outbox where leased_until > now() + interval '5 min' order by seq`,
  )
  expect(leases.map(({ seq }) => seq)).toEqual([1, 2])
})

test('what is due goes before what has waited longer', async () => {
  await publish('a', 'b')
  await change(`due_at = now() - interval '1 s'`, 'seq = 2')

  expect((await claim({})).seqs).toEqual([2])
})

test('what is due before the time that it is told is left to sweeps, whether it is in its key or has to join it', async () => {
  await publish('a', 'b', null)
  await change(`due_at = now() - interval '1 h'`)
  await change(`due_at = now() - interval '1 s'`, 'seq = 2')
  await change(`later_key = 'c'`, 'seq = 3')

  const { seqs, queue } = await claim({ room: 5, dueFromMs: Date.now() - 600_000 })
  const sweep = await claim({ room: 5 })

  expect([seqs, queue?.joining]).toEqual([[2], '0'])
  expect([sweep.seqs, sweep.queue?.joining]).toEqual([[1], '1'])
})

test('a message whose time has not come does not have to join its key yet', async () => {
  await publish(null)
  await change(`later_key = 'a', due_at = now() + interval '1 h'`)

  expect((await claim({})).queue?.joining).toBe('0')
})

describe('more due rows of a newer generation than a claim looks at', () => {
  const fillNewer = () =>
    database.query(
      `insert into outbox (id, queue, body, generation, due_at)
       select gen_random_uuid(), 'orders', '1', 2, now() - interval '1 h' from generate_series(1, ${mostDueLooks})`,
    )
  const behind = mostDueLooks + 1

  test('do not hide one that is due behind them', async () => {
    await fillNewer()
    await publish(null)
    await change(`due_at = now() - interval '1 s'`, `seq = ${behind}`)

    expect((await claim({}, 1)).seqs).toEqual([behind])
  })

  test('do not hide that one behind them has to join its key', async () => {
    await fillNewer()
    await publish(null)
    await change(`later_key = 'a', due_at = now() - interval '1 s'`, `seq = ${behind}`)

    const { seqs, queue } = await claim({}, 1)

    expect([seqs, queue?.joining]).toEqual([[], '1'])
  })
})

test('a message of a newer generation has to join its key when it is due, whoever looks: its place is that of its time', async () => {
  await publish(null)
  await change(`later_key = 'a', due_at = now() - interval '1 s', generation = 2`)

  expect((await claim({}, 1)).queue?.joining).toBe('1')
})

test('a message that somebody holds does not have to join its key', async () => {
  await publish(null)
  await change(
    `later_key = 'a', due_at = now() - interval '1 s', lease_token = gen_random_uuid(), leased_until = now() + interval '1 h'`,
  )

  expect((await claim({})).queue?.joining).toBe('0')
})

test.each([
  ['a claim', null],
  ['a sweep', ''],
])('what was due first is taken first by %s, whatever its place', async (_, keysFrom) => {
  await publish('a', 'b')
  await change(`due_at = now() - interval '1 s'`, 'seq = 1')
  await change(`due_at = now() - interval '1 h'`, 'seq = 2')

  expect((await claim({ room: 1, keysFrom })).seqs).toEqual([2])
})

describe('how far a claim has looked', () => {
  test('is up to the fresh row before the first for which there was no room', async () => {
    await publish('a', 'b', 'a', 'c')

    const { seqs, queue } = await claim({ room: 2 })

    expect([seqs, queue?.reached, queue?.more]).toEqual([[1, 2], '3', 'true'])
  })

  test('does not depend on settled keys for which there was no room', async () => {
    await publish('a', 'b')

    const { left, queue } = await claim({ after: '2', keys: settled('a', 'b') })

    expect([left, queue?.reached, queue?.more]).toEqual([['b'], null, 'false'])
  })

  test('is not the end while it has looked at as many rows as it may', async () => {
    await database.query(
      `insert into outbox (id, queue, key, body) select gen_random_uuid(), 'orders', 'a', '1' from generate_series(1, ${mostRowLooks + 1})`,
    )
    await change(lease(`+ interval '1 h'`), 'seq = 1')

    const first = await claim({})
    const second = await claim({ after: String(mostRowLooks) })

    expect([first.seqs, first.queue?.reached, first.queue?.more]).toEqual([[], String(mostRowLooks), 'true'])
    expect([second.seqs, second.queue?.reached, second.queue?.more]).toEqual([
      [],
      String(mostRowLooks + 1),
      'false',
    ])
  })
})
