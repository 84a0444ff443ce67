// Guards that no other test would have missed: `npm run mutate` takes each of them out, and one of these goes red.
import type pg from 'pg'
import { createOutbox } from 'postbox'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createClaimer } from '../../packages/postbox/src/runtime/claimer.ts'
import { statementTimeout } from '../../packages/postbox/src/runtime/deadline.ts'
import { createLane, type Lane, type LaneParts } from '../../packages/postbox/src/runtime/lane.ts'
import { extendLeases, holdsLeases } from '../../packages/postbox/src/sql/extend-leases.ts'
import type { Names } from '../../packages/postbox/src/sql/names.ts'
import { checkClear, lieDown } from '../../packages/postbox/src/sql/sleep.ts'
import type { Statement } from '../../packages/postbox/src/sql/statement.ts'
import { useDatabase } from '../support/database.ts'
import { fakeClock } from '../support/fake-clock.ts'
import { inTransaction } from '../support/in-transaction.ts'
import { benchOf, draftOf, fencesOf, makeTables, otherToken, send } from '../support/settle-bench.ts'
import { signal } from '../support/signals.ts'

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
    await database.query('truncate outbox, outbox_dead restart identity')
  })
})

describe('of three leases, of which another has taken the second over,', () => {
  const takenOver = async () => {
    for (const timer of ['a', 'b', 'c']) await bench.arm(timer)
    const [first, second, third] = fencesOf(await bench.claim())
    return { mine: [first!, third!], all: [first!, { ...second!, token: otherToken }, third!] }
  }
  const seqsOf = (rows: readonly { readonly seq: string }[]) => rows.map(({ seq }) => seq).toSorted()

  test('the other two are renewed, and the end of his is left as it is', async () => {
    const { mine, all } = await takenOver()
    const [, before] = await bench.rows('leased_until')

    const renewed = await bench.run(
      extendLeases(
        names,
        all.map((fence) => ({ ...fence, leaseMs: 3_600_000 })),
      ),
    )

    expect(seqsOf(renewed)).toEqual(seqsOf(mine))
    expect((await bench.rows('leased_until'))[1]).toEqual(before)
  })

  test('the other two count as held, and his does not', async () => {
    const { mine, all } = await takenOver()

    expect(seqsOf(await bench.run(holdsLeases(names, all)))).toEqual(seqsOf(mine))
  })
})

test('what lies down while a quiet publisher is about to commit is not clear, and is when it has', async () => {
  const sleeper = await pool.connect()
  const clear = async (statement: ReturnType<typeof lieDown>) => (await send(sleeper, statement))[0]?.clear
  const seen: unknown[] = []
  const outbox = createOutbox({ schema: database.schema, queues: { orders: {} }, wake: 'quiet' })

  await inTransaction(pool, async (tx) => {
    await outbox.publish(tx, 'orders', 1)
    seen.push(await clear(lieDown(names, ['orders'])), await clear(checkClear(names, ['orders'])))
  })
  seen.push(await clear(checkClear(names, ['orders'])))

  expect(seen).toEqual(['false', 'false', 'true'])
  await sleeper.query('select pg_advisory_unlock_all()')
  sleeper.release()
})

describe('a claim that is answered after its deadline', () => {
  test('is heard all the same, where the connection is not ours to close', async () => {
    const answer = signal<readonly never[]>('the answer')
    const heard = signal<readonly unknown[]>('what nobody waited for any more')
    const run = async ({ name }: Statement) =>
      name === 'read_isolation' ? [{ isolation: 'read committed' }] : answer.wait()
    const transaction = () => Promise.reject(new Error('not asked for'))
    const database = { run, transaction, capacity: null } as LaneParts['database']
    const lane = createLane({ database, statementTimeoutMs: 1 })

    const late = lane.run({ name: 'claim_messages', text: '', values: [] }, { late: heard.send })
    await expect(late).rejects.toMatchObject({ code: 'OUTBOX_STATEMENT_TIMEOUT' })
    answer.send([])

    expect(await heard.wait()).toEqual([])
  })

  test('has its messages given back, as if they had not been claimed', async () => {
    await bench.publish(draftOf())
    await bench.arm('reminder')
    const givenBack = signal('the messages are given back')
    const run: Lane['run'] = async (given, { late } = {}) => {
      const statement = typeof given === 'function' ? given() : given
      const rows = statement === null ? [] : await bench.run(statement)
      if (statement?.name === 'release_leases') givenBack.send()
      if (statement?.name !== 'claim_messages') return rows
      late?.(rows)
      throw statementTimeout(statement.name, 1)
    }
    const claimer = createClaimer({ lane: { run, connection: 0 }, names, clock: fakeClock() })

    const claim = claimer.claim([{ queue: 'orders', room: 10, leaseMs: 60_000 }], 'claim')
    await expect(claim).rejects.toMatchObject({ code: 'OUTBOX_STATEMENT_TIMEOUT' })
    await givenBack.wait()

    const free = { lease_token: null, deliveries: 0 }
    expect(await bench.rows('lease_token, deliveries, timer_id')).toEqual([
      { ...free, timer_id: null },
      { ...free, timer_id: 'reminder' },
    ])
  })
})

test('postgres.js keeps no prepared statement of what an outbox publishes, claims and settles', async () => {
  const sql = database.postgresJs({ max: 1 })
  const outbox = createOutbox({
    database: sql,
    schema: database.schema,
    queues: { orders: {} },
    wake: 'poll',
  })
  outbox.subscribe('orders', () => {})

  await sql.begin((tx) => outbox.publish(tx, 'orders', 1))
  expect(await outbox.drain()).toMatchObject({ acked: 1 })

  // It prepares its own, `commit` for one.
  const ours = await sql.unsafe(
    `select statement from pg_prepared_statements where statement like '%outbox%'`,
  )
  expect([...ours]).toEqual([])
  await sql.end()
})
