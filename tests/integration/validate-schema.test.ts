import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { createOutbox, type SchemaDifference } from 'postbox'
import { beforeAll, describe, expect, test } from 'vitest'
import { recogniseDatabase } from '../../packages/postbox/src/adapters/recognise.ts'
import type { StorageModes } from '../../packages/postbox/src/core/storage-modes.ts'
import { validateSchema } from '../../packages/postbox/src/runtime/validate-schema.ts'
import { resolveNames } from '../../packages/postbox/src/sql/names.ts'
import { useDatabase } from '../support/database.ts'
import { longTestLimitMs } from '../support/patience.ts'
import { collector } from '../support/signals.ts'
import { differencesOf, driftOf, mend, objects, type Validated } from './validate-schema-mending.ts'
import { kindsFor, mutationsOf } from './validate-schema-mutations.ts'
import { everythingIn, objectsOf, pictureOf } from './validate-schema-objects.ts'
import type { Mutation } from './validate-schema-spoiling.ts'

const database = useDatabase()
// Each of six hundred takes some forty milliseconds. Columns and indexes, which are four of five, are shared out: each in a third of its ways here,
// and by turns, so that each way is tried; all of it in ../large/validate-schema.test.ts.
const share = expect.getState().testPath?.includes('/large/') ? 1 : 3
const types = [
  'table',
  'column',
  'default value',
  'sequence',
  'table constraint',
  'index',
  'storage parameter',
  'view',
  'function',
]
let pool: pg.Pool
let outbox: Validated
let mutations: readonly Mutation[]
/** Those of them that are tried. */
let tried: readonly Mutation[]
let everything: readonly string[]
let fresh: readonly string[]

const query = (text: string, values?: unknown[]): Promise<Record<string, unknown>[]> =>
  database.query(text, values)
const picture = (): Promise<readonly string[]> => pictureOf(query, database.schema)
const nameOf = ({ touches, kind }: Mutation): string => `${touches}, ${kind}`
/** A column or a table that is gone takes its rows along; nothing else does. */
const losesRows = ({ touches, kind }: Mutation): boolean =>
  kind === 'drop' && /^(table|column) /.test(touches)
/** What is done to which type of object. */
const waysOf = (all: readonly Mutation[]): ReadonlySet<string> =>
  new Set(all.map((mutation) => `${typeOf(mutation)}, ${mutation.kind}`))
const typeOf = ({ touches }: Mutation): string | undefined =>
  types.toSorted((a, b) => b.length - a.length).find((type) => touches.startsWith(`${type} `))

function shareOf(all: readonly Mutation[]): readonly Mutation[] {
  const touched = [...new Set(all.map(({ touches }) => touches))]
  return touched.flatMap((object, turn) => {
    const ways = all.filter(({ touches }) => touches === object)
    return /^(column|index) /.test(object) ? ways.filter((_, way) => (turn + way) % share === 0) : ways
  })
}

/** As an outbox with these options does it. */
function validating(modes: StorageModes): Validated {
  const names = resolveNames({ schema: database.schema, table: 'outbox' })
  return {
    validateSchema: () => validateSchema(recogniseDatabase(pool)!, names, { autovacuum: true, ...modes }),
  }
}

beforeAll(async () => {
  pool = database.pool({ max: 1 })
  await createOutbox({ database: pool, schema: database.schema, logger: false }).migrate()
  // Everything that is made is used.
  outbox = validating({ deadLetters: 'table', delivered: 'table' })
  const made = await objectsOf(query, database.schema)
  mutations = mutationsOf(database.schema, made)
  tried = shareOf(mutations)
  fresh = await picture()
  everything = [
    ...(await everythingIn(query, database.schema)),
    ...made.columns.map(({ table, name }) => `column ${table}.${name}`),
    ...made.storage.map(({ table, name }) => `storage parameter ${name} of ${table}`),
  ]
})

/** Spoils one thing after the other; each must be named, mended, and then valid again. */
async function prove(spoilt: readonly Mutation[]): Promise<void> {
  expect(spoilt.length).toBeGreaterThan(0)
  for (const mutation of spoilt) {
    await query(mutation.sql)
    const found = await differencesOf(outbox)
    expect(objects(found), nameOf(mutation)).toContain(mutation.object)
    await mend(query, found)
    expect(await differencesOf(outbox), nameOf(mutation)).toEqual([])
  }
  expect(await picture()).toEqual(fresh)
}

test('a schema as it was made is valid', async () => {
  expect(await differencesOf(outbox)).toEqual([])
})

test('everything that a migration makes is spoilt in each way that applies to it', () => {
  const isTried = (object: string, kind: string): boolean =>
    mutations.some((mutation) => mutation.touches === object && mutation.kind === kind)
  const untried = everything.flatMap((object) =>
    kindsFor(object).flatMap((kind) => (isTried(object, kind) ? [] : [`${object}, ${kind}`])),
  )

  expect(untried).toEqual([])
  expect(everything.length).toBeGreaterThan(120)
  expect(new Set(tried.map(({ touches }) => touches))).toEqual(
    new Set(mutations.map(({ touches }) => touches)),
  )
  expect(waysOf(tried)).toEqual(waysOf(mutations))
  expect(mutations.filter((mutation) => typeOf(mutation) === undefined)).toEqual([])
})

test(
  'a table, or a column, that is dropped is named, and made again by the SQL of the error',
  async () => {
    await prove(tried.filter(losesRows))
  },
  longTestLimitMs,
)

describe('with a row in every table', () => {
  const tables = [
    ...['outbox', 'outbox_dead', 'outbox_delivered', 'outbox_handled'],
    ...['outbox_queues', 'outbox_operations', 'outbox_meta'],
  ]
  const rows = (): Promise<unknown[]> =>
    query(tables.map((table) => `select to_jsonb(t) as row from ${table} as t`).join(' union all '))

  beforeAll(async () => {
    const common = {
      id: '0190163d-8694-739b-9aea-966c26f8ad91',
      queue: 'orders',
      key: 'k',
      timer_id: 't',
      body: '\\x00ff5c',
      headers: { tenant: 'ä' },
      attempts: 1,
      deliveries: 2,
      created_at: '2024-01-01T00:00:00.123456Z',
      first_attempt_at: '2024-01-02T00:00:00Z',
      last_attempt_at: '2024-01-03T00:00:00Z',
      generation: 3,
      failed_at: '2024-01-04T00:00:00Z',
      failure_reason: 'rejected',
      last_error: 'Error: no',
      failure_history: { dropped: 0, cycles: [] },
    }
    const lease = { lease_token: common.id, leased_until: '2024-01-05T00:00:00Z' }
    const order = { later_key: 'k', parked_at: '2024-01-06T00:00:00Z', after_dead: randomUUID() }
    await insert('outbox', {
      ...{ ...common, ...lease, ...order },
      due_at: '2024-01-06T00:00:00Z',
      fired_timer_id: 'f',
    })
    await insert('outbox_dead', { ...common, original_seq: 1 })
    const { first_attempt_at, last_attempt_at, failed_at, failure_reason, last_error, ...delivered } = common
    await insert('outbox_delivered', { ...delivered, original_seq: 1, delivered_at: failed_at })
    await insert('outbox_operations', {
      ...{ operation_id: common.id, kind: 'replay', started_by: 'me', filter: {}, settings: {} },
      ...{
        started_at: first_attempt_at,
        updated_at: last_attempt_at,
        finished_at: failed_at,
        last_due_at: failed_at,
      },
      ...{ changed: 1, conflicts: 2, place: {} },
    })
    await insert('outbox_handled', { consumer: 'c', id: 'i', handled_at: failed_at })
    const resumed = { resumed_at: '2024-01-06T00:00:00Z', resumed_by: 'you' }
    await insert('outbox_queues', {
      name: 'orders',
      paused_at: '2024-01-07T00:00:00Z',
      paused_by: 'me',
      ...resumed,
    })
  })

  async function insert(table: string, row: object): Promise<void> {
    const names = Object.keys(row).join(', ')
    await query(
      `insert into ${table} (${names}) select ${names} from jsonb_populate_record(null::${table}, $1)`,
      [JSON.stringify(row)],
    )
  }

  test.each(types)(
    'each %s that is spoilt is named and mended, and no row is lost',
    async (type) => {
      const before = await rows()

      await prove(tried.filter((mutation) => typeOf(mutation) === type && !losesRows(mutation)))

      expect(await rows()).toEqual(before)
    },
    longTestLimitMs,
  )

  test('a column whose values are gone is named, and not filled with values that were made up', async () => {
    await query('alter table outbox_dead drop column body cascade')
    const found = await differencesOf(outbox)

    await expect(mend(query, found)).rejects.toMatchObject({ code: '23502' })
    expect(await query('select id from outbox_dead')).toHaveLength(1)

    await query('alter table outbox_dead add column body bytea; update outbox_dead set body = $$\\x00ff5c$$')
    await mend(query, await differencesOf(outbox))
    expect(await picture()).toEqual(fresh)
  })
})

describe.each(
  (['table', 'in-place', 'discard'] as const).flatMap((deadLetters) =>
    (['table', 'delete'] as const).map((delivered): StorageModes => ({ deadLetters, delivered })),
  ),
)('with dead letters in mode $deadLetters and delivered messages in mode $delivered', (modes) => {
  const used = (table: string): boolean =>
    (table !== 'outbox_dead' || modes.deadLetters !== 'discard') &&
    (table !== 'outbox_delivered' || modes.delivered === 'table')
  const within = (name: string): string => `"${database.schema}"."${name}"`

  test('a schema as it was made is valid', async () => {
    expect(await differencesOf(validating(modes))).toEqual([])
  })

  test('a table that is spoilt is named if it is used, and no other is', async () => {
    const spoilt = ['outbox', 'outbox_dead', 'outbox_delivered', 'outbox_handled', 'outbox_operations']
    for (const table of spoilt) await query(`alter table ${table} set unlogged`)

    const found = objects(await differencesOf(validating(modes)))
    await mend(query, await differencesOf(outbox))

    expect(found).toEqual(spoilt.filter(used).map((table) => `table ${within(table)}`))
  })

  test('the view shows the tables that are left, and all of them again when they are made', async () => {
    const unused = ['outbox_dead', 'outbox_delivered'].filter((table) => !used(table))
    await query('drop view outbox_status')
    // Dead letters that lie in place are listed with those that were moved before: both places are always read.
    for (const table of unused) await query(`drop table ${table}`)

    const found = await differencesOf(validating(modes))
    await mend(query, found)

    expect(objects(found)).toEqual([`view ${within('outbox_status')}`])
    expect(await differencesOf(validating(modes))).toEqual([])
    await query('select from outbox_status')
    await mend(query, await differencesOf(outbox))
    expect(await differencesOf(validating(modes))).toEqual([])
    expect(await picture()).toEqual(fresh)
  })
})

describe('many at once', () => {
  /** One for each object, those first that take the others along. */
  const spoilAll = async (): Promise<readonly Mutation[]> => {
    const chosen = [
      ...mutations.filter(({ touches, kind }) => touches.startsWith('storage') && kind === 'drop'),
      ...mutations.filter(({ touches, kind }) => touches.startsWith('index') && kind === 'uniqueness'),
      ...mutations.filter(({ touches, kind }) => touches.startsWith('table constraint') && kind === 'drop'),
      ...mutations.filter(({ touches, kind }) => touches.startsWith('column') && kind === 'type'),
      ...mutations.filter(({ touches, kind }) => touches.startsWith('sequence') && kind === 'cache'),
      ...mutations.filter(({ touches, kind }) => touches.startsWith('table ') && kind === 'persistence'),
      ...mutations.filter(({ touches, kind }) => touches.startsWith('function') && kind === 'settings'),
    ]
    for (const { sql } of chosen) await query(sql)
    return chosen
  }

  test('are one error, in one order, with the SQL that mends all of it', async () => {
    await query(
      'delete from outbox; delete from outbox_dead; delete from outbox_delivered; delete from outbox_handled; delete from outbox_queues; delete from outbox_operations',
    )
    const chosen = await spoilAll()
    const error = await driftOf(outbox)
    const found: readonly SchemaDifference[] = error?.differences ?? []

    // Where columns are altered, the view had to go.
    const view = `view "${database.schema}"."outbox_status"`
    expect(new Set(objects(found))).toEqual(new Set([...chosen.map(({ object }) => object), view]))
    expect(objects(found).at(-1)).toBe(view)
    expect(await differencesOf(outbox)).toEqual(found)
    const places = found.map(({ object, expected, found: is, sql }) => {
      const lines = sql.split('\n').map((line) => `     ${line}`)
      const text = `${object}: expected ${expected}, found ${is}. Mended by\n${lines.join('\n')}\n`
      return error?.message.indexOf(text) ?? -1
    })
    expect(places.every((place, index) => place > (places[index - 1] ?? 0))).toBe(true)

    await query(found.map(({ sql }) => sql).join('\n'))
    expect(await differencesOf(outbox)).toEqual([])
    expect(await picture()).toEqual(fresh)
  })

  test('once mended, carry messages as before: a timer is armed once, and what is published is delivered', async () => {
    await spoilAll()
    await mend(query, await differencesOf(outbox))
    const own = database.pool()
    const mended = createOutbox({ database: own, schema: database.schema, logger: false })
    const got = collector<unknown>('messages')
    mended.subscribe('orders', (message) => got.add(message.body))

    await mended.publishNow('orders', 'first', { timerId: 'once', delayMs: 1 })
    await mended.publishNow('orders', 'second', { timerId: 'once', delayMs: 1 })
    await mended.publishNow('orders', 'third')
    const running = await mended.start()
    const bodies = await got.take(2)
    await running.stop()
    await own.end()

    expect(bodies.toSorted()).toEqual(['first', 'third'])
  })
})
