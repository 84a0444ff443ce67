import { createOutbox } from 'postbox'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { useDatabase } from '../support/database.ts'
import { fillDead, type Letter, layDown } from '../support/dead-letters.ts'

const database = useDatabase()

beforeAll(async () => {
  await createOutbox({ database: database.pool(), schema: database.schema, logger: false }).migrate()
})

beforeEach(async () => {
  await database.query('truncate outbox, outbox_dead, outbox_delivered restart identity')
})

interface Row {
  readonly [column: string]: unknown
}

const id = '01890000-0000-7000-8000-00000000000a'
const columns = [
  ...['id', 'queue', 'key', 'timer_id', 'status', 'attempts', 'deliveries', 'created_at', 'due_at'],
  ...['leased_until', 'first_attempt_at', 'last_attempt_at', 'delivered_at', 'failed_at', 'parked_at'],
  ...['failure_reason', 'last_error', 'generation', 'headers', 'body', 'failure_history'],
]
const insert = (names: string, values: string): Promise<unknown> =>
  database.query(`insert into outbox (id, queue, body, ${names}) values ('${id}', 'orders', '1', ${values})`)
const shown = (): Promise<Row[]> => database.query<Row>('select * from outbox_status')

const full = {
  id,
  queue: 'orders',
  key: 'k',
  timer: 't',
  body: 'b',
  headers: { type: 'order' },
  attempts: 3,
  deliveries: 5,
  created_at: '2026-01-01T00:00:00Z',
  first_attempt_at: '2026-01-01T00:00:01Z',
  last_attempt_at: '2026-01-01T00:00:02Z',
  generation: 9,
  failed_at: '2026-01-01T00:00:03Z',
  failure_reason: 'rejected',
  last_error: 'no',
  failure_history: { dropped: 1, cycles: [] },
} satisfies Letter

test('has these columns, in this order', async () => {
  await layDown(database, 'moved', [full])

  expect(Object.keys((await shown())[0]!)).toEqual(columns)
})

describe('a message that', () => {
  test.each([
    ['is fresh', { names: 'key', values: `'k'`, expected: { status: 'pending', due_at: null, key: 'k' } }],
    [
      'is due later',
      {
        names: 'timer_id, due_at',
        values: `'t', now() + interval '1 h'`,
        expected: { status: 'pending', timer_id: 't' },
      },
    ],
    [
      'was retried',
      {
        names: 'attempts, deliveries, last_error, first_attempt_at, due_at',
        values: `2, 3, 'no', now(), now()`,
        expected: { status: 'pending', attempts: 2, deliveries: 3, last_error: 'no' },
      },
    ],
    [
      'is held, and has given the name of its timer up',
      {
        names: 'lease_token, leased_until, fired_timer_id',
        values: `gen_random_uuid(), now() + interval '1 h', 't'`,
        expected: { status: 'in_flight', timer_id: 't' },
      },
    ],
    [
      'was held by somebody whose lease has ended',
      {
        names: 'lease_token, leased_until',
        values: `gen_random_uuid(), now() - interval '1 ms'`,
        expected: { status: 'pending', leased_until: expect.any(Date) },
      },
    ],
  ])('%s is shown once, as it is', async (_, { names, values, expected }) => {
    await insert(names, values)
    const rows = await shown()
    await database.query('delete from outbox')

    expect(rows).toEqual([expect.objectContaining({ id, delivered_at: null, failed_at: null, ...expected })])
  })

  test.each(['moved', 'quarantined'] as const)(
    'failed and was %s is shown with all that is known',
    async (place) => {
      await layDown(database, place, [full])

      expect(await shown()).toEqual([
        {
          ...{ id, queue: 'orders', key: 'k', timer_id: 't', status: 'failed', attempts: 3, deliveries: 5 },
          created_at: new Date(full.created_at),
          first_attempt_at: new Date(full.first_attempt_at),
          last_attempt_at: new Date(full.last_attempt_at),
          failed_at: new Date(full.failed_at),
          parked_at: null,
          ...{ due_at: null, leased_until: null, delivered_at: null, failure_reason: 'rejected' },
          ...{ last_error: 'no', generation: '9', headers: full.headers, body: Buffer.from('b') },
          failure_history: full.failure_history,
        },
      ])
    },
  )

  test('failed and holds its key is shown with since when', async () => {
    await layDown(database, 'quarantined', [full])
    await database.query('update outbox set parked_at = failed_at')

    expect(await shown()).toMatchObject([{ status: 'failed', key: 'k', parked_at: new Date(full.failed_at) }])
  })

  test('was delivered is shown with when', async () => {
    await database.query(
      `insert into outbox_delivered (id, queue, key, timer_id, body, attempts, deliveries, created_at, delivered_at, original_seq)
       values ($1, 'orders', 'k', 't', 'b', 1, 2, now(), '2026-01-01T00:00:04Z', 7)`,
      [id],
    )

    expect(await shown()).toMatchObject([
      {
        ...{ id, status: 'delivered', key: 'k', timer_id: 't', attempts: 1, deliveries: 2 },
        ...{ delivered_at: new Date('2026-01-01T00:00:04Z'), failed_at: null, leased_until: null },
      },
    ])
  })
})

test('a lease that ends while a transaction is open is over for its next statement', async () => {
  await database.query('begin')
  await insert('lease_token, leased_until', `gen_random_uuid(), now() + interval '1 microsecond'`)
  await database.query('select 1')

  const rows = await shown()
  await database.query('rollback')

  expect(rows).toMatchObject([{ status: 'pending' }])
})

describe('on tables with many rows', () => {
  beforeEach(async () => {
    await fillDead(database, 5_000)
    await database.query(
      `insert into outbox_delivered (id, queue, body, attempts, deliveries, created_at, original_seq)
       select gen_random_uuid(), 'orders', '1', 1, 1, now(), n from generate_series(1, 5000) as n`,
    )
    await database.query(
      `insert into outbox (id, queue, body) select gen_random_uuid(), 'orders', '1' from generate_series(1, 5000)`,
    )
    await database.query('analyze outbox, outbox_dead, outbox_delivered')
  })

  /** What a look-up reads: table and index, if any. */
  async function reads(condition: string): Promise<readonly string[]> {
    const [row] = await database.query<{ 'QUERY PLAN': [{ Plan: Plan }] }>(
      `explain (format json) select * from outbox_status ${condition}`,
    )
    return scansOf(row!['QUERY PLAN'][0].Plan).toSorted()
  }

  test('an id is looked up by an index, but among the messages that live: they have none', async () => {
    expect(await reads(`where id = '${id}'`)).toEqual([
      'outbox',
      'outbox',
      expect.stringMatching(/^outbox by outbox_failed/),
      'outbox_dead by outbox_dead_id',
      'outbox_delivered by outbox_delivered_id',
    ])
  })

  test.each([
    ['pending', ['outbox']],
    ['in_flight', ['outbox']],
    ['failed', [expect.stringMatching(/^outbox by outbox_failed/), 'outbox_dead']],
    ['delivered', ['outbox_delivered']],
    ['unheard of', []],
  ])('a condition on the status reads only where such messages lie: %s', async (status, tables) => {
    expect(await reads(`where status = '${status}'`)).toEqual(tables)
  })

  test('the last that failed are found by an index, without a look at the others', async () => {
    expect(await reads(`where status = 'failed' order by failed_at desc limit 10`)).toEqual([
      expect.stringMatching(/^outbox by outbox_failed/),
      'outbox_dead by outbox_dead_failed',
    ])
  })
})

interface Plan {
  readonly 'Relation Name'?: string
  readonly 'Index Name'?: string
  readonly Plans?: readonly Plan[]
}

function scansOf(plan: Plan, above?: string): readonly string[] {
  const { 'Relation Name': relation = above, 'Index Name': index, Plans: below = [] } = plan
  if (below.length > 0) return below.flatMap((one) => scansOf(one, plan['Relation Name']))
  if (relation === undefined) return []
  return [index === undefined ? relation : `${relation} by ${index}`]
}
