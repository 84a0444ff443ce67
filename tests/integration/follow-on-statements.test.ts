// The delete that publishes: what messages leave behind, in the statement that deletes them.
import type pg from 'pg'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Draft } from '../../packages/postbox/src/core/message.ts'
import {
  deleteWithFollowOns,
  type SettledWithFollowOns,
} from '../../packages/postbox/src/sql/delete-with-follow-ons.ts'
import type { Fence } from '../../packages/postbox/src/sql/fence.ts'
import type { Names } from '../../packages/postbox/src/sql/names.ts'
import { lieDown } from '../../packages/postbox/src/sql/sleep.ts'
import type { Wake } from '../../packages/postbox/src/sql/wake.ts'
import { useDatabase } from '../support/database.ts'
import { openTransaction } from '../support/sessions.ts'
import { benchOf, draftOf, fencesOf, makeTables, otherToken, send, stateOf } from '../support/settle-bench.ts'
import { collector } from '../support/signals.ts'

const database = useDatabase()
let pool: pg.Pool
let names: Names
let bench: ReturnType<typeof benchOf>

beforeAll(async () => {
  pool = database.pool({ max: 5 })
  names = await makeTables(pool, { schema: database.schema, table: 'outbox' })
  bench = benchOf(names, pool)
})

beforeEach(({ onTestFinished }) => {
  onTestFinished(async () => {
    await database.query('truncate outbox restart identity')
  })
})

/** So many messages in hand. */
async function held(count: number): Promise<readonly Fence[]> {
  for (let n = 0; n < count; n++) await bench.publish(draftOf())
  return fencesOf(await bench.claim())
}

const settle = (settled: readonly SettledWithFollowOns[], wake: Wake = 'poll') =>
  bench.run(deleteWithFollowOns(names, { settled, wake }))
const keyed = (...keys: readonly string[]): readonly Draft[] => keys.map((key) => draftOf({ key }))
const shown = async (): Promise<readonly unknown[]> => (await bench.rows('key')).map(({ key }) => key)
const replacing = { conflict: 'replace' } as const

test('follow-ons go to any queues, each with everything that it was given', async () => {
  const [fence] = await held(1)
  const draft = draftOf({
    ...{ queue: 'mails', key: `k'"`, headers: { a: `"\\` }, generation: 7, body: Buffer.from([0, 255]) },
    schedule: { kind: 'after', delayMs: 60_000 },
  })
  const timer = draftOf({
    queue: 'bills',
    timerId: 't',
    schedule: { kind: 'at', epochMs: 32_503_680_000_000 },
  })

  expect(await settle([{ ...fence!, followOns: [draft, timer] }])).toMatchObject([{ seq: fence!.seq }])

  const columns = `id, queue, key, timer_id, body, headers, generation::int, attempts, deliveries, lease_token`
  const fresh = { attempts: 0, deliveries: 0, lease_token: null }
  expect(await bench.rows(columns)).toEqual([
    {
      ...{
        id: draft.id,
        queue: 'mails',
        key: `k'"`,
        timer_id: null,
        body: draft.body,
        headers: draft.headers,
      },
      ...{ generation: 7, ...fresh },
    },
    {
      ...{ id: timer.id, queue: 'bills', key: null, timer_id: 't', body: timer.body, headers: null },
      ...{ generation: null, ...fresh },
    },
  ])
  expect(
    await bench.rows(
      `case queue when 'mails' then due_at - interval '1 minute' between created_at and now() else due_at = '3000-01-01Z' end as due`,
    ),
  ).toEqual([{ due: true }, { due: true }])
})

test('follow-ons get their seq in the order of the drafts, timers among them', async () => {
  const [first, second] = await held(2)
  const mixed = [
    draftOf({ key: 'a' }),
    draftOf({ key: 'b', timerId: 'b' }),
    draftOf({ key: 'c', queue: 'mails' }),
    draftOf({ key: 'd', timerId: 'd', ...replacing }),
    draftOf({ key: 'e' }),
  ]

  await settle([
    { ...first!, followOns: mixed },
    { ...second!, followOns: keyed('f', 'g') },
  ])

  expect(await shown()).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g'])
})

test('only a message whose delete landed leaves follow-ons, and one without any is deleted all the same', async () => {
  const [first, second, third] = await held(3)

  const written = await settle([
    { ...first!, followOns: keyed('first') },
    { ...second!, token: otherToken, followOns: keyed('lost') },
    { ...third!, followOns: [] },
  ])

  expect(written.map(({ seq }) => seq).toSorted()).toEqual([first!.seq, third!.seq])
  expect(await bench.rows('seq, key')).toMatchObject([{ seq: second!.seq, key: null }, { key: 'first' }])
})

test('a follow-on that the table refuses keeps its message, and the neighbours of both', async () => {
  const fences = await held(2)
  const before = await bench.rows('xmin::text, *')
  const bad = [draftOf(), draftOf({ queue: null as never })]
  const settled = fences.map((fence, n) => ({ ...fence, followOns: n === 0 ? keyed('good') : bad }))

  expect(await stateOf(settle(settled))).toBe('23502')
  expect(await bench.rows('xmin::text, *')).toEqual(before)
})

describe('a follow-on that is a timer', () => {
  test('is dropped when one of its name waits, and the others are not', async () => {
    await bench.arm('t', { key: 'waits', queue: 'mails' })
    const [fence] = await held(1)
    const followOns = [draftOf({ key: 'kept out', queue: 'mails', timerId: 't' }), ...keyed('plain')]

    await settle([{ ...fence!, followOns }])

    expect(await shown()).toEqual(['waits', 'plain'])
  })

  test('replaces one that waits, when it says so, and one that is to be kept beside it is kept', async () => {
    for (const timerId of ['kept', 'replaced']) await bench.arm(timerId, { key: 'old', queue: 'mails' })
    const [fence] = await held(1)
    const timer = { key: 'new', queue: 'mails' }
    const followOns = [
      draftOf({ ...timer, timerId: 'kept' }),
      draftOf({ ...timer, timerId: 'replaced', ...replacing }),
    ]

    await settle([{ ...fence!, followOns }])

    expect(await bench.rows('timer_id, key, due_at is not null as due')).toEqual([
      { timer_id: 'kept', key: 'old', due: false },
      { timer_id: 'replaced', key: 'new', due: true },
    ])
  })

  // Two debounced messages in one flush, say.
  test.each([
    ['the first of those that do not replace', ['keep', 'keep'], 0],
    ['the last of those that replace', ['replace', 'replace'], 1],
    ['one that replaces, whatever comes before it', ['keep', 'replace'], 1],
    ['one that replaces, whatever comes after it', ['replace', 'keep'], 0],
  ] as const)('of several of one name in a statement is %s', async (_, conflicts, chosen) => {
    const fences = await held(2)
    const drafts = conflicts.map((conflict, n) => draftOf({ key: `${n}`, timerId: 't', conflict }))

    await settle(fences.map((fence, n) => ({ ...fence, followOns: [drafts[n]!] })))
    const ofTwo = await shown()
    await pool.query('truncate outbox')
    const [one] = await held(1)
    await settle([{ ...one!, followOns: drafts }])

    expect([ofTwo, await shown()]).toEqual([[`${chosen}`], [`${chosen}`]])
  })

  test('is not dropped for one of its name whose message had lost its lease', async () => {
    const [lost, kept] = await held(2)
    const timer = (key: string) => [draftOf({ key, timerId: 't', ...replacing })]

    await settle([
      { ...kept!, followOns: timer('kept') },
      { ...lost!, token: otherToken, followOns: timer('lost') },
    ])

    expect(await shown()).toEqual([null, 'kept'])
  })

  test('may have the name that its own message fired by', async () => {
    await bench.arm('again', { key: 'first' })
    const [fence] = fencesOf(await bench.claim())

    await settle([{ ...fence!, followOns: [draftOf({ key: 'next', timerId: 'again' })] }])

    expect(await bench.rows('key, timer_id')).toEqual([{ key: 'next', timer_id: 'again' }])
  })

  test('is not waited for while somebody is about to take its name: nothing is written, for now', async () => {
    const [fence] = await held(1)
    const somebody = await openTransaction(pool)
    await somebody.query(
      `insert into outbox (id, queue, timer_id, body) values (gen_random_uuid(), 'orders', 't', '')`,
    )
    const settled = [{ ...fence!, followOns: [...keyed('plain'), draftOf({ timerId: 't' })] }]

    expect(await stateOf(settle(settled))).toBe('55P03')
    expect(await bench.rows('seq, lease_token is not null as leased')).toEqual([
      { seq: fence!.seq, leased: true },
    ])
    await somebody.commit()
    expect(await settle(settled)).toHaveLength(1)
    expect(await bench.rows('key, timer_id')).toMatchObject([{ timer_id: 't' }, { key: 'plain' }])
  })
})

describe('whoever sleeps', () => {
  /** Notifications of the outbox, up to a last one that is sent here. */
  const listening = async (client: pg.Client) => {
    const heard = collector<string | undefined>('notifications')
    client.on('notification', ({ payload }) => heard.add(payload))
    await client.query(`listen "${names.channel}"`)
    return async (): Promise<readonly (string | undefined)[]> => {
      await pool.query('select pg_notify($1, $2)', [names.channel, 'last'])
      await heard.find((payload) => payload === 'last')
      return heard.all.slice(0, -1).toSorted()
    }
  }
  const settled = async (): Promise<readonly SettledWithFollowOns[]> => {
    const fences = await held(2)
    const later = { schedule: { kind: 'after', delayMs: 3_600_000 } } as const
    return fences.map((fence) => ({
      ...fence,
      followOns: [
        draftOf({ queue: 'mails' }),
        draftOf({ queue: `bills'"` }),
        draftOf({ queue: 'mails' }),
        draftOf({ queue: 'later', ...later }),
      ],
    }))
  }

  test.each([
    ['always', [`bills'"`, 'mails']],
    ['poll', []],
    // Only who sleeps on mails is asleep.
    ['quiet', ['mails']],
  ] as const)('is told of the queues that have something for it soon (%s)', async (wake, told) => {
    const client = await database.client()
    const all = await listening(client)
    await send(client, lieDown(names, ['mails', 'later']))

    await settle(await settled(), wake)
    const heard = await all()
    await client.end()

    expect(heard).toEqual(told)
  })

  test('is not told of follow-ons that were not written', async () => {
    const client = await database.client()
    const all = await listening(client)
    const lost = (await settled()).map((one) => ({ ...one, token: otherToken }))

    await settle(lost, 'always')
    const heard = await all()
    await client.end()

    expect(heard).toEqual([])
  })

  test('and lies down while the delete is under way is held up until its commit', async () => {
    const [fence] = await held(1)
    const client = await pool.connect()
    await client.query('begin')
    const { text, values } = deleteWithFollowOns(names, {
      settled: [{ ...fence!, followOns: [draftOf({ queue: 'mails' })] }],
      wake: 'quiet',
    })
    await client.query(text, [...values])
    const sleeper = await database.client()
    const before = await send(sleeper, lieDown(names, ['mails']))
    await client.query('commit')
    const after = await send(sleeper, lieDown(names, ['mails']))
    client.release()
    await sleeper.end()

    expect([before, after].map(([row]) => row)).toMatchObject([{ clear: 'false' }, { clear: 'true' }])
  })
})
