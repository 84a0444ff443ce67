// Statements that write what became of messages, one by one. What the engine makes of their answers is in settling.test.ts.
import type pg from 'pg'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Draft } from '../../packages/postbox/src/core/message.ts'
import { buryDead } from '../../packages/postbox/src/sql/bury-dead.ts'
import { countMessages } from '../../packages/postbox/src/sql/count-messages.ts'
import { deadColumns, deathColumns, keptColumns } from '../../packages/postbox/src/sql/dead-columns.ts'
import { deleteAcked } from '../../packages/postbox/src/sql/delete-acked.ts'
import { deleteWithFollowOns } from '../../packages/postbox/src/sql/delete-with-follow-ons.ts'
import type { Names } from '../../packages/postbox/src/sql/names.ts'
import { peekPending } from '../../packages/postbox/src/sql/peek-pending.ts'
import { quarantineDead } from '../../packages/postbox/src/sql/quarantine-dead.ts'
import { type Release, releaseLeases } from '../../packages/postbox/src/sql/release-leases.ts'
import { rescheduleRetried } from '../../packages/postbox/src/sql/reschedule-retried.ts'
import { snoozeMessages } from '../../packages/postbox/src/sql/snooze-messages.ts'
import type { Statement } from '../../packages/postbox/src/sql/statement.ts'
import { useDatabase } from '../support/database.ts'
import { benchOf, draftOf, fencesOf, makeTables, otherToken, stateOf } from '../support/settle-bench.ts'

const database = useDatabase()
const hostile = `x'); drop table outbox; -- "\\ $1 😀`
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
    await database.query('truncate outbox, outbox_dead restart identity')
  })
})

type Settle = (names: Names, fences: readonly Release[]) => Statement<{ readonly seq: string }>

const burial = { reason: 'rejected', error: hostile, attempts: 1 }
const followOn = (): readonly Draft[] => [draftOf({ queue: 'mails' })]
const withAll = <T>(fences: readonly Release[], given: T) => fences.map((fence) => ({ ...fence, ...given }))

/** Every statement that settles, by what becomes of a message. */
const settling: readonly (readonly [string, Settle])[] = [
  ['deleted', deleteAcked],
  [
    'deleted, with follow-ons',
    (own, fences) =>
      deleteWithFollowOns(own, {
        settled: fences.map((fence) => ({ ...fence, followOns: followOn() })),
        wake: 'quiet',
      }),
  ],
  ...[false, true].flatMap((named): (readonly [string, Settle])[] => {
    const how = named ? ', with names' : ''
    const retried = { delayMs: 5, error: hostile }
    return [
      [`retried${how}`, (own, fences) => rescheduleRetried(own, withAll(fences, retried), named)],
      [`snoozed${how}`, (own, fences) => snoozeMessages(own, withAll(fences, { delayMs: 5 }), named)],
      [`released${how}`, (own, fences) => releaseLeases(own, fences, named)],
    ]
  }),
  ['buried', (own, fences) => buryDead(own, withAll(fences, burial))],
  ['quarantined', (own, fences) => quarantineDead(own, withAll(fences, burial))],
]

/** Messages in hand: timers, so that names are at stake, too. */
async function held(count: number): Promise<readonly Release[]> {
  for (let n = 0; n < count; n++) await bench.arm(`timer ${n}`)
  return fencesOf(await bench.claim())
}

const seqsOf = (rows: readonly { readonly seq: string }[]): readonly string[] =>
  rows.map(({ seq }) => seq).toSorted((a, b) => Number(a) - Number(b))

test('of messages that were claimed together, those that somebody else has by now are not deleted', async () => {
  const fences = await held(3)
  await database.query('update outbox set lease_token = $1 where seq = $2', [otherToken, fences[1]!.seq])

  expect(seqsOf(await bench.run(deleteAcked(names, fences)))).toEqual([fences[0]!.seq, fences[2]!.seq])
  expect(await bench.rows('seq::text, lease_token::text')).toEqual([
    { seq: fences[1]!.seq, lease_token: otherToken },
  ])
})

describe.each(settling)('messages that are %s', (_, settle) => {
  // N-02
  test('are written by the holder of their lease: the others come back, and one with a wrong token is left as it is', async () => {
    const [first, second, third] = await held(3)
    const before = await bench.rows('xmin::text, *')

    const written = await bench.run(settle(names, [first!, { ...second!, token: otherToken }, third!]))

    expect(seqsOf(written)).toEqual([first!.seq, third!.seq])
    expect((await bench.rows('xmin::text, *')).filter(({ seq }) => seq === second!.seq)).toEqual([before[1]])
    expect(await bench.deadRows('original_seq')).not.toContainEqual({ original_seq: second!.seq })
  })

  // N-05
  test('may be none', async () => {
    expect(await bench.run(settle(names, []))).toEqual([])
  })

  test('are written once: the same statement again writes nothing', async () => {
    const fences = await held(2)
    await bench.run(settle(names, fences))
    const [rows, dead] = [await bench.rows('xmin::text, *'), await bench.deadRows('xmin::text, *')]

    expect(await bench.run(settle(names, fences))).toEqual([])
    expect(await bench.rows('xmin::text, *')).toEqual(rows)
    expect(await bench.deadRows('xmin::text, *')).toEqual(dead)
  })

  test('are five hundred in one statement', async () => {
    await pool.query(
      `insert into outbox (id, queue, timer_id, body) select gen_random_uuid(), 'orders', 't' || n, '' from generate_series(1, 500) as n`,
    )
    const fences = fencesOf(await bench.claim())

    expect(seqsOf(await bench.run(settle(names, fences)))).toEqual(seqsOf(fences))
    expect(fences).toHaveLength(500)
    expect((await bench.rows('lease_token')).filter(({ lease_token }) => lease_token !== null)).toEqual([])
  })

  // I-21
  test('may lie in tables and schemas of any name', async ({ onTestFinished }) => {
    const schema = `${database.schema.slice(0, 20)} "S'\\`
    const odd = await makeTables(pool, { schema, table: `o"u't\\` })
    onTestFinished(async () => {
      await database.query(`drop schema ${odd.schema} cascade`)
    })
    const own = benchOf(odd, pool)
    await own.arm(hostile)

    const fences = fencesOf(await own.claim())

    expect(await own.run(settle(odd, fences))).toMatchObject([{ seq: fences[0]!.seq }])
  })
})

describe('a message that is retried', () => {
  // N-01
  test('is due after its own delay from when the statement began, by the clock of the database', async () => {
    const delays = [0, 1_500.5, 86_400_000]
    const fences = await held(3)
    const retries = fences.map((fence, n) => ({ ...fence, delayMs: delays[n]!, error: null }))

    await bench.run(rescheduleRetried(names, retries, true))

    const waits = await bench.rows('(extract(epoch from due_at - last_attempt_at) * 1000)::float8 as ms')
    expect(waits.map(({ ms }) => ms)).toEqual(delays)
  })

  test('has one attempt more, its last error or none, and the time of its first failure for ever', async () => {
    const counted =
      'attempts, deliveries, last_error, first_attempt_at, last_attempt_at > first_attempt_at as later'
    const [fence] = await held(1)
    await bench.run(rescheduleRetried(names, [{ ...fence!, delayMs: 0, error: hostile }], true))
    const [once] = await bench.rows(counted)
    await bench.claim()
    await bench.run(rescheduleRetried(names, [{ ...fence!, delayMs: 0, error: null }], true))
    const [twice] = await bench.rows(counted)

    expect(once).toMatchObject({ attempts: 1, deliveries: 1, last_error: hostile, later: false })
    expect(twice).toEqual({ ...once, attempts: 2, deliveries: 2, last_error: null, later: true })
  })
})

test('a message that is snoozed is due after its own delay, and nothing else tells that it was delivered', async () => {
  const [, ...fences] = await held(3)
  await bench.run(rescheduleRetried(names, withAll(fences, { delayMs: 0, error: 'before' }), true))
  const shown = `seq, attempts, deliveries, first_attempt_at, last_attempt_at, last_error, timer_id, fired_timer_id,
                 lease_token, leased_until`
  const before = (await bench.rows(shown)).slice(1)
  const again = fencesOf(await bench.claim())
  const snoozes = again.map((fence, n) => ({ ...fence, delayMs: 60_000 * (n + 1) }))

  await bench.run(snoozeMessages(names, snoozes, true))

  expect((await bench.rows(shown)).slice(1)).toEqual(before)
  const [row] = await pool
    .query(
      `select (extract(epoch from max(due_at) - min(due_at)) * 1000)::float8 as apart,
              min(due_at) between now() and now() + interval '60 seconds' as soon from outbox where seq > 1`,
    )
    .then(({ rows }) => rows)
  expect(row).toEqual({ apart: 60_000, soon: true })
})

describe('a message that is buried', () => {
  const kept = [...keptColumns].join(', ')
  const full = { key: hostile, headers: { [hostile]: hostile }, generation: 7, body: Buffer.from([0, 255]) }

  // I-21
  test('is moved with everything that it had, its own id and its timer’s name', async () => {
    await bench.arm(hostile, full)
    await pool.query(`update outbox set failure_history = '{"dropped": 1, "cycles": []}'`)
    const fences = fencesOf(await bench.claim())
    const [message] = await bench.rows(kept)

    await bench.run(buryDead(names, withAll(fences, burial)))

    expect(await bench.deadRows(kept)).toEqual([message])
    expect(message).toMatchObject({ key: hostile, headers: full.headers, generation: '7', deliveries: 1 })
    expect(await bench.deadRows('original_seq, timer_id, failure_reason, last_error')).toEqual([
      { original_seq: '1', timer_id: hostile, failure_reason: 'rejected', last_error: hostile },
    ])
    expect(await bench.rows('seq')).toEqual([])
  })

  // I-21
  test('stays, with its lease, when the dead letters refuse it or a neighbour', async () => {
    const [first, second] = await held(2)
    const before = await bench.rows('xmin::text, *')
    const unreasonable = { ...second!, ...burial, reason: null as never }

    expect(await stateOf(bench.run(buryDead(names, [{ ...first!, ...burial }, unreasonable])))).toBe('23502')
    expect(await bench.rows('xmin::text, *')).toEqual(before)
    expect(await bench.deadRows('original_seq')).toEqual([])
  })

  test('may have an id that is among the dead letters already', async () => {
    const draft = draftOf()
    for (let n = 0; n < 2; n++) {
      await bench.publish(draft)
      await bench.run(buryDead(names, withAll(fencesOf(await bench.claim()), burial)))
    }

    expect(await bench.deadRows('id')).toEqual([{ id: draft.id }, { id: draft.id }])
  })
})

describe.each([
  ['buried', buryDead, (columns: string) => bench.deadRows(columns)],
  ['quarantined', quarantineDead, (columns: string) => bench.rows(columns)],
])('the attempts of a message that is %s', (_, settle, read) => {
  const shown = 'attempts, first_attempt_at = failed_at as first, last_attempt_at = failed_at as last'
  /** Failed once already, and in hand again. */
  const failedOnce = async (): Promise<Release> => {
    const [fence] = await held(1)
    await bench.run(rescheduleRetried(names, [{ ...fence!, delayMs: 0, error: 'no' }], true))
    await bench.claim()
    return fence!
  }

  test('are those that it is told, and a run that is among them was just now', async () => {
    const [fence] = await held(1)
    await bench.run(settle(names, [{ ...fence!, ...burial, attempts: 1 }]))

    expect(await read(shown)).toEqual([{ attempts: 1, first: true, last: true }])
  })

  test('began with the first that failed', async () => {
    await bench.run(settle(names, [{ ...(await failedOnce()), ...burial, attempts: 2 }]))

    expect(await read(shown)).toEqual([{ attempts: 2, first: false, last: true }])
  })

  test('are none, at no time, when its handler has never been run to its end', async () => {
    const [fence] = await held(1)
    await bench.run(settle(names, [{ ...fence!, ...burial, attempts: 0 }]))

    expect(await read('attempts, first_attempt_at, last_attempt_at')).toEqual([
      { attempts: 0, first_attempt_at: null, last_attempt_at: null },
    ])
  })

  test('are as they were when its handler was not run to its end', async () => {
    await bench.run(settle(names, [{ ...(await failedOnce()), ...burial, attempts: 1, error: null }]))

    expect(await read(shown)).toEqual([{ attempts: 1, first: false, last: false }])
    expect(await read('last_error')).toEqual([{ last_error: null }])
  })
})

describe('a message that is quarantined', () => {
  const quarantined = async (): Promise<void> => {
    await bench.arm('t')
    await bench.run(quarantineDead(names, withAll(fencesOf(await bench.claim()), burial)))
  }

  test('is marked dead where it is, and due never', async () => {
    await quarantined()

    expect(
      await bench.rows(
        'due_at, failure_reason, last_error, attempts, deliveries, lease_token, leased_until, failed_at > created_at as failed',
      ),
    ).toEqual([
      {
        ...{
          due_at: Number.POSITIVE_INFINITY,
          failure_reason: 'rejected',
          last_error: hostile,
          failed: true,
        },
        ...{ attempts: 1, deliveries: 1, lease_token: null, leased_until: null },
      },
    ])
  })

  test('is claimed by nobody, does not wait, and is not counted', async () => {
    await quarantined()

    expect(await bench.claim()).toEqual([])
    expect(await bench.run(peekPending(names, { queue: null, limit: 10, mark: null }))).toEqual([])
    expect(await bench.run(countMessages(names, ['orders'], 10))).toMatchObject([
      { ready: '0', leased: '0', scheduled: '0', oldest: null },
    ])
  })

  test('holds its timer’s name no more, and remembers it', async () => {
    await quarantined()

    expect(await bench.cancel('t')).toBe(false)
    expect(await bench.arm('t')).toBe(1)
    expect(await bench.rows('timer_id, fired_timer_id')).toEqual([
      { timer_id: null, fired_timer_id: 't' },
      { timer_id: 't', fired_timer_id: null },
    ])
  })
})

test('every column of the dead letters is one that a burial keeps, one that it makes, or the table’s own key', async () => {
  const columnsOf = async (table: string): Promise<readonly unknown[]> =>
    (
      await database.query(
        'select column_name as name from information_schema.columns where table_schema = $1 and table_name = $2',
        [database.schema, table],
      )
    ).map(({ name }) => name)
  const [message, dead] = [await columnsOf('outbox'), await columnsOf('outbox_dead')]
  const shared = [...keptColumns, ...Object.keys(deathColumns), 'timer_id']
  const own = Object.keys(deadColumns).filter((column) => column !== 'timer_id')

  expect(dead.toSorted()).toEqual([...shared, ...own, 'dead_seq'].toSorted())
  expect(message.toSorted()).toEqual(
    [
      ...[...shared, 'seq', 'fired_timer_id', 'due_at', 'lease_token', 'leased_until'],
      ...['later_key', 'parked_at', 'after_dead'],
    ].toSorted(),
  )
})
