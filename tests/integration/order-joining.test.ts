// Ordered queues: messages that have become due take their place in their key, whatever else is due.
import { afterEach, expect, onTestFinished, test } from 'vitest'
import { createOrderedClaimer } from '../../packages/postbox/src/runtime/claim-order.ts'
import { mostDueLooks } from '../../packages/postbox/src/sql/first-rows.ts'
import { joinKeys } from '../../packages/postbox/src/sql/join-keys.ts'
import { resolveNames } from '../../packages/postbox/src/sql/names.ts'
import { useBench } from '../support/decisions-bench.ts'
import { inTransaction } from '../support/in-transaction.ts'
import { openWorker } from '../support/sessions.ts'

const bench = useBench()
const { database, outboxOf } = bench
const names = resolveNames({ schema: database.schema, table: 'outbox' })

// Nobody is there whose leases they could be.
afterEach(() => database.query('delete from outbox'))

/** So many rows of `orders` that are due since so many minutes, with these columns set. */
async function fill(rows: number, since: number, columns: Readonly<Record<string, string>>): Promise<void> {
  const given = Object.entries(columns)
  await database.query(
    `insert into outbox (id, queue, body, due_at${given.map(([name]) => `, ${name}`).join('')})
     select gen_random_uuid(), 'orders', n::text::bytea, now() - $2::int * interval '1 min' + n * interval '1 ms'${given.map(([, value]) => `, ${value}`).join('')}
       from generate_series(1, $1::int) as n`,
    [rows, since],
  )
}

/** The keys of what joined, and its bodies. */
async function join(
  change = (text: string) => text,
  generation: number | null = null,
): Promise<readonly string[]> {
  const { text, values } = joinKeys(names, { queues: ['orders'], generation })
  await bench.pool().query(change(text), [...values])
  const rows = await database.query(
    `select key || convert_from(body, 'UTF8') as joined from outbox where key is not null and due_at is null order by seq`,
  )
  return rows.map(({ joined }) => String(joined))
}

test('timers of a key join while somebody publishes to another, of which as many as join at once were due before', async () => {
  await fill(1_500, 9, { later_key: `'hot'` })
  await fill(2, 5, { later_key: `'other'` })
  const outbox = outboxOf({ queues: { orders: { order: 'key' } } })

  await inTransaction(bench.pool(), async (tx) => {
    await outbox.publish(tx, 'orders', 1, { key: 'hot' })
    expect(await join()).toEqual(['other1', 'other2'])
  })
})

test('a key that was not to be had for the first of its timers is left by all of them', async () => {
  await fill(3, 5, { later_key: `'a'` })
  await database.query('create sequence tries')
  await database.query(
    `create function refused_once(bigint) returns boolean language sql as $$ select nextval('tries') > 1 $$`,
  )
  onTestFinished(async () => {
    await database.query('drop function refused_once')
    await database.query('drop sequence tries')
  })
  const refusing = (text: string) => text.replace('pg_try_advisory_xact_lock(', 'refused_once(')

  expect([await join(refusing), await join(refusing)]).toEqual([[], ['a1', 'a2', 'a3']])
})

const leased = { lease_token: 'gen_random_uuid()', leased_until: `now() + interval '1 h'` }

test.each([
  ['somebody holds', leased],
  ['are for newer code', { generation: '2' }],
])('a timer joins behind as many due rows as one statement looks at, which %s', async (_, columns) => {
  await fill(mostDueLooks, 9, columns)
  await fill(1, 5, { later_key: `'a'` })

  expect(await join((text) => text, 1)).toEqual(['a1'])
})

test('a timer that waits for newer code joins its key by older code, too: those behind it wait for it', async () => {
  await fill(1, 5, { later_key: `'a'`, generation: '2' })

  expect(await join((text) => text, 1)).toEqual(['a1'])
})

test('a timer that somebody holds stays his until his lease has ended', async () => {
  await fill(1, 5, { later_key: `'a'`, ...leased })
  await fill(1, 5, { later_key: `'b'`, ...leased, leased_until: `now() - interval '1 s'` })

  expect(await join()).toEqual(['b1'])
})

test('a process lets timers join by its own generation', async () => {
  await fill(1, 5, { later_key: `'a'` })
  const { lane, names, clock, exchanges } = openWorker(bench.pool(), database.schema)
  const claimer = createOrderedClaimer({ lane, names, clock, generation: 7 })

  await claimer.claim([{ queue: 'orders', room: 1, leaseMs: 60_000, isOrdered: true }], 'claim')

  const joins = exchanges.filter(({ statement }) => statement.name === 'join_keys')
  expect(joins.map(({ statement }) => statement.values)).toEqual([['["orders"]', 1, 7]])
})
