// Whose a timer's name is: the waiting timer's. A claim gives it up, and what goes back to waiting takes it again (docs/decisions/0019).
import type pg from 'pg'
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { recogniseDatabase } from '../../packages/postbox/src/adapters/recognise.ts'
import { migrate } from '../../packages/postbox/src/runtime/migrate.ts'
import { deleteAcked } from '../../packages/postbox/src/sql/delete-acked.ts'
import { migrations } from '../../packages/postbox/src/sql/migrations/index.ts'
import { type Names, resolveNames } from '../../packages/postbox/src/sql/names.ts'
import { peekPending } from '../../packages/postbox/src/sql/peek-pending.ts'
import { type Release, releaseLeases } from '../../packages/postbox/src/sql/release-leases.ts'
import { rescheduleRetried } from '../../packages/postbox/src/sql/reschedule-retried.ts'
import { createMeta, stepStatements } from '../../packages/postbox/src/sql/schema-script.ts'
import { snoozeMessages } from '../../packages/postbox/src/sql/snooze-messages.ts'
import type { Statement } from '../../packages/postbox/src/sql/statement.ts'
import { useDatabase } from '../support/database.ts'
import { benchOf, draftOf, fencesOf, makeTables, otherToken, stateOf } from '../support/settle-bench.ts'
import { eventually } from '../support/signals.ts'

const database = useDatabase()
let pool: pg.Pool
let names: Names
let bench: ReturnType<typeof benchOf>

beforeAll(async () => {
  pool = database.pool({ max: 6 })
  names = await makeTables(pool, { schema: database.schema, table: 'outbox' })
  bench = benchOf(names, pool)
})

beforeEach(({ onTestFinished }) => {
  onTestFinished(async () => {
    await database.query('truncate outbox restart identity')
  })
})

type PutBack = (fences: readonly Release[], takeNames: boolean) => Statement<{ readonly seq: string }>

/** The statements by which a message goes back to waiting. */
const puttingBack: readonly (readonly [string, PutBack])[] = [
  [
    'retried',
    (fences, takeNames) =>
      rescheduleRetried(
        names,
        fences.map((fence) => ({ ...fence, delayMs: 0, error: 'no' })),
        takeNames,
      ),
  ],
  [
    'snoozed',
    (fences, takeNames) =>
      snoozeMessages(
        names,
        fences.map((fence) => ({ ...fence, delayMs: 0 })),
        takeNames,
      ),
  ],
  ['released', (fences, takeNames) => releaseLeases(names, fences, takeNames)],
]

/** Whose the names are, row by row: waiting under one, or having given one up. */
const holders = (): Promise<readonly unknown[]> => bench.rows('timer_id as waits, fired_timer_id as fired')
const free = { waits: null, fired: 't' }
const taken = { waits: 't', fired: null }

/** A timer `t` in hand. */
async function fired(): Promise<readonly Release[]> {
  await bench.arm('t')
  return fencesOf(await bench.claim())
}

const shownTimers = async (): Promise<readonly unknown[]> =>
  (await bench.run(peekPending(names, { queue: null, limit: 10, mark: null }))).map(({ timer }) => timer)

/** Somebody's transaction around statements of an outbox, rolled back when the test ends. */
async function somebody() {
  const client = await pool.connect()
  let isOpen = true
  const end = async (how: 'commit' | 'rollback'): Promise<void> => {
    if (!isOpen) return
    isOpen = false
    await client.query(how)
    client.release()
  }
  onTestFinished(() => end('rollback'))
  await client.query('begin')
  return { ...benchOf(names, client), end }
}

/** A statement on a connection of this file has got as far as it can. */
const somebodyWaits = (): Promise<unknown> =>
  eventually(
    async () =>
      (
        await database.query(
          `select from pg_stat_activity where application_name like $1 and wait_event_type = 'Lock'`,
          [`${database.applicationName}%`],
        )
      ).length === 1,
    { what: 'the statement to wait' },
  )

describe('a timer that was claimed', () => {
  test('has given its name up, and its message tells it', async () => {
    await bench.arm('t')
    await bench.publish(draftOf())

    expect((await bench.claim()).map(({ timer }) => timer)).toEqual(['t', null])
    expect(await holders()).toEqual([free, { waits: null, fired: null }])
    expect(await shownTimers()).toEqual(['t', null])
  })

  test.each(['keep', 'replace'] as const)(
    'does not keep the next one of its name from being armed (%s), which is a message of its own',
    async (conflict) => {
      const running = await fired()

      expect(await bench.arm('t', { conflict })).toBe(1)
      expect(await bench.arm('t', { conflict: 'keep' })).toBe(0)
      expect(await holders()).toEqual([free, taken])
      await bench.run(deleteAcked(names, running))
      expect((await bench.claim()).map(({ seq, timer }) => [seq, timer])).toEqual([['2', 't']])
    },
  )

  test('cannot be cancelled, and the next one of its name can', async () => {
    await fired()

    expect(await bench.cancel('t')).toBe(false)
    await bench.arm('t')
    expect(await bench.cancel('t')).toBe(true)
    expect(await holders()).toEqual([free])
  })

  test('leaves its name free when its process dies, and whoever claims it then tells the name', async () => {
    await fired()
    await pool.query(`update outbox set leased_until = now() - interval '1 ms'`)

    expect(await bench.cancel('t')).toBe(false)
    expect((await bench.claim(5, otherToken)).map(({ timer }) => timer)).toEqual(['t'])
    expect(await bench.arm('t')).toBe(1)
  })
})

test('a claim tells when the first run of a message failed, if one has', async () => {
  const [fence] = await fired()
  await bench.run(rescheduleRetried(names, [{ ...fence!, delayMs: 0, error: 'no' }], true))
  await bench.publish(draftOf())
  const { rows } = await pool.query(
    'select (extract(epoch from first_attempt_at) * 1000)::text as first from outbox where seq = 1',
  )

  expect((await bench.claim()).map(({ first }) => first)).toEqual([rows[0].first, null])
})

describe.each(puttingBack)('a timer that is %s', (_, putBack) => {
  test('takes its name back: it can be cancelled, and is the one of its name', async () => {
    await bench.run(putBack(await fired(), true))

    expect(await holders()).toEqual([taken])
    expect(await shownTimers()).toEqual(['t'])
    expect(await bench.arm('t')).toBe(0)
    expect(await bench.cancel('t')).toBe(true)
  })

  test('goes on without its name when another has it, and takes it the next time that it is free', async () => {
    const running = await fired()
    await bench.arm('t', { schedule: { kind: 'after', delayMs: 3_600_000 } })

    expect(await bench.run(putBack(running, true))).toHaveLength(1)
    expect(await holders()).toEqual([free, taken])
    expect(await shownTimers()).toEqual(['t', 't'])
    expect((await bench.claim()).map(({ seq, timer }) => [seq, timer])).toEqual([['1', 't']])
    await bench.cancel('t')
    await bench.run(putBack(running, true))
    expect(await holders()).toEqual([taken])
  })

  test('goes on without its name when it is told to, though the name is free', async () => {
    await bench.run(putBack(await fired(), false))

    expect(await holders()).toEqual([free])
  })

  test('takes no notice of timers of its name in other queues, nor of one that is dead', async () => {
    const running = await fired()
    await bench.arm('t', { queue: 'mails' })
    await bench.arm('t')
    await pool.query(`update outbox set failed_at = now(), due_at = 'infinity' where seq = 3`)

    await bench.run(putBack(running, true))

    expect(await holders()).toEqual([taken, taken, taken])
  })

  test('does not wait for somebody who is about to arm its name: the statement fails, and does without', async () => {
    const running = await fired()
    await bench.publish(draftOf())
    const both = [...running, ...fencesOf(await bench.claim())]
    const before = await bench.rows('xmin::text, *')
    const other = await somebody()
    await other.arm('t')

    expect(await stateOf(bench.run(putBack(both, true)))).toBe('55P03')
    expect(await bench.rows('xmin::text, *')).toEqual(before)
    expect(await bench.run(putBack(both, false))).toHaveLength(2)
    await other.end('commit')
    expect(await holders()).toEqual([free, { waits: null, fired: null }, taken])
  })

  // With more patience than it has, to let him end in time.
  test.each([
    ['commit', { state: '23505', left: [free, taken] }],
    ['rollback', { state: null, left: [taken] }],
  ] as const)('has its name, or is refused, as soon as who armed it ends (%s)', async (end, expected) => {
    const running = await fired()
    const other = await somebody()
    await other.arm('t')
    const { text, values } = putBack(running, true)
    const failed = stateOf(pool.query(text.replace(`'100ms'`, `'10s'`), [...values]))
    await somebodyWaits()
    await other.end(end)

    expect({ state: await failed, left: await holders() }).toEqual(expected)
  })

  test('and has one beside it of the same name is refused with it; one by one, the first has the name', async () => {
    const first = await fired()
    await bench.arm('t')
    const second = fencesOf(await bench.claim())

    expect(await stateOf(bench.run(putBack([...first, ...second], true)))).toBe('23505')
    await bench.run(putBack(first, true))
    await bench.run(putBack(second, true))
    expect(await holders()).toEqual([taken, free])
  })

  test('leaves the connection as patient as it was', async () => {
    const client = await pool.connect()
    const own = benchOf(names, client)
    await own.run(putBack(await fired(), true))
    const { rows } = await client.query('show lock_timeout')
    client.release()

    expect(rows).toEqual([{ lock_timeout: '0' }])
  })
})

describe('a claim under way', () => {
  test.each([
    ['keep', 'commit', { armed: 1, left: [free, taken] }],
    ['keep', 'rollback', { armed: 0, left: [taken] }],
    ['replace', 'commit', { armed: 1, left: [free, taken] }],
    ['replace', 'rollback', { armed: 1, left: [taken] }],
  ] as const)('is waited for by who arms the name (%s), and seen (%s)', async (conflict, end, expected) => {
    await bench.arm('t')
    const other = await somebody()
    await other.claim()
    const arming = bench.arm('t', { conflict })
    await somebodyWaits()
    await other.end(end)

    expect({ armed: await arming, left: await holders() }).toEqual(expected)
  })

  test.each([
    ['commit', false, [free]],
    ['rollback', true, []],
  ] as const)('is waited for by who cancels the timer, and seen (%s)', async (end, cancelled, left) => {
    await bench.arm('t')
    const other = await somebody()
    await other.claim()
    const cancelling = bench.cancel('t')
    await somebodyWaits()
    await other.end(end)

    expect(await cancelling).toBe(cancelled)
    expect(await holders()).toEqual(left)
  })

  test('steps over a timer that somebody replaces or cancels, and waits for nobody', async () => {
    await bench.arm('t')
    await bench.arm('u')
    const other = await somebody()
    await other.arm('t', { conflict: 'replace' })
    await other.cancel('u')

    expect(await bench.claim()).toEqual([])
    await other.end('commit')
    expect((await bench.claim()).map(({ timer }) => timer)).toEqual(['t'])
  })

  test('takes a timer although somebody has just found it waiting', async () => {
    await bench.arm('t')
    const other = await somebody()

    expect(await other.arm('t')).toBe(0)
    expect(await bench.claim()).toHaveLength(1)
  })
})

describe('a process of the version before', () => {
  /** As its claim leaves a timer: leased, with its name. */
  const claimedBefore = async (): Promise<void> => {
    await bench.arm('t')
    await pool.query(`update outbox set lease_token = $1, leased_until = now() + interval '1 minute'`, [
      otherToken,
    ])
  }

  test('keeps the name of what it claimed: it is neither cancelled nor replaced nor armed', async () => {
    await claimedBefore()

    expect(await bench.cancel('t')).toBe(false)
    for (const conflict of ['keep', 'replace'] as const) expect(await bench.arm('t', { conflict })).toBe(0)
    expect(await holders()).toEqual([taken])
  })

  test('and dies has its timer claimed by this one, which gives the name up', async () => {
    await claimedBefore()
    await pool.query(`update outbox set leased_until = now() - interval '1 ms'`)

    expect((await bench.claim()).map(({ timer }) => timer)).toEqual(['t'])
    expect(await holders()).toEqual([free])
  })

  test('has made tables that are brought up to date with what waits in them', async () => {
    const old = resolveNames({ schema: database.schema, table: 'old' })
    const first = stepStatements(old, migrations[0]!, { autovacuum: {} })
    for (const text of [createMeta(old), ...first]) await pool.query(text)
    const own = benchOf(old, pool)
    await own.arm('t')

    await migrate(recogniseDatabase(pool)!, old)

    const fences = fencesOf(await own.claim())
    expect(await own.rows('timer_id, fired_timer_id')).toEqual([{ timer_id: null, fired_timer_id: 't' }])
    await own.run(deleteAcked(old, fences))
    const steps = migrations.map(({ version, name, breaking }) => ({ version, name, breaking }))
    expect((await pool.query('select version, name, breaking from old_meta order by version')).rows).toEqual(
      steps,
    )
  })
})
