import { createOutbox, type Outbox } from 'postbox'
import { beforeAll, describe, expect, test } from 'vitest'
import { useDatabase } from '../support/database.ts'
import { differencesOf, mend, objects } from './validate-schema-mending.ts'

const database = useDatabase()
let outbox: Outbox

const query = (text: string, values?: unknown[]): Promise<Record<string, unknown>[]> =>
  database.query(text, values)
const named = (relation: string): string => `"${database.schema}"."${relation}"`

beforeAll(async () => {
  outbox = createOutbox({ database: database.pool({ max: 1 }), schema: database.schema, logger: false })
  await outbox.migrate()
})

/** Named, mended by what the error gives, and valid again. */
async function proveMended(spoil: string, ...spoilt: readonly string[]): Promise<void> {
  await query(spoil)
  const found = await differencesOf(outbox)
  expect(objects(found)).toEqual(spoilt)
  await mend(query, found)
  expect(await differencesOf(outbox)).toEqual([])
}

describe('passes', () => {
  test.each([
    ['a column that may be null', 'add column note text', 'drop column note'],
    ['a column with a default', `add column region text not null default 'eu'`, 'drop column region'],
    [
      'a column that Postgres fills',
      'add column size int not null generated always as (1) stored',
      'drop column size',
    ],
    ['a column with an identity', 'add column number int generated always as identity', 'drop column number'],
    ['a CHECK', 'add constraint small check (attempts < 1000)', 'drop constraint small'],
    ['other costs', 'set (autovacuum_vacuum_cost_delay = 5)', 'set (autovacuum_vacuum_cost_delay = 0)'],
    [
      'a higher threshold',
      'set (autovacuum_vacuum_threshold = 9)',
      'set (autovacuum_vacuum_threshold = 1000)',
    ],
    [
      'zero, spelt in another way',
      'set (autovacuum_vacuum_scale_factor = 0.0)',
      'set (autovacuum_vacuum_scale_factor = 0)',
    ],
    ['off, spelt in another way', 'set (vacuum_truncate = FALSE)', 'set (vacuum_truncate = off)'],
    [
      'a lease’s CHECK under another name',
      'rename constraint outbox_lease to ck_lease',
      'rename constraint ck_lease to outbox_lease',
    ],
    [
      'a primary key under another name',
      'rename constraint outbox_pkey to pk',
      'rename constraint pk to outbox_pkey',
    ],
  ])('%s', async (_, change, back) => {
    await query(`alter table outbox ${change}`)

    expect(await differencesOf(outbox)).toEqual([])

    await query(`alter table outbox ${back}`)
  })

  test.each([
    ['an index', 'create index extra on outbox (created_at)'],
    [
      'an index that is invalid',
      `create index extra on outbox (id); update pg_index set indisvalid = false where indexrelid = 'extra'::regclass`,
    ],
    [
      'a second one like ours',
      'create unique index extra on outbox (queue, timer_id) where timer_id is not null and failed_at is null',
    ],
    [
      'a unique index that can only refuse a publish',
      'create unique index extra on outbox (queue, key) where key is not null',
    ],
    ['a unique index on what is unique anyway', 'create unique index extra on outbox (due_at, seq)'],
  ])('%s', async (_, create) => {
    await query(create)

    expect(await differencesOf(outbox)).toEqual([])

    await query('drop index extra')
  })

  test('a collation of text that nobody compares', async () => {
    const change = (type: string): Promise<unknown> =>
      query(`alter table outbox_operations alter started_by type ${type}`)
    await change('text collate "POSIX"')

    expect(await differencesOf(outbox)).toEqual([])

    await change('text')
  })

  test.each([
    [
      'a view of somebody’s own on ours',
      'create view extra as select id from outbox_status',
      'drop view extra',
    ],
    [
      'a barrier',
      'alter view outbox_status set (security_barrier = on)',
      'alter view outbox_status reset (security_barrier)',
    ],
    [
      'a timeout',
      `alter function outbox_replay set lock_timeout = '1s'`,
      'alter function outbox_replay reset lock_timeout',
    ],
    [
      'a function of our name with other arguments',
      'create function outbox_replay(uuid) returns text language sql begin atomic select null::text; end',
      'drop function outbox_replay(uuid)',
    ],
  ])('%s', async (_, change, back) => {
    await query(change)

    expect(await differencesOf(outbox)).toEqual([])

    await query(back)
  })

  test('an index of ours under another name', async () => {
    await query('alter index outbox_ready rename to ix_ready')

    expect(await differencesOf(outbox)).toEqual([])

    await query('alter index ix_ready rename to outbox_ready')
  })
})

describe('does not pass', () => {
  test('a column that no publish fills', async () => {
    const object = `column ${named('outbox')}."My ""tenant"`
    await proveMended('alter table outbox add column "My ""tenant" text not null', object)

    await outbox.publishNow('orders', 1)
    await query('delete from outbox; alter table outbox drop column "My ""tenant"')
  })

  // A timer's name would stay taken by a message that is in quarantine, and the next timer be dropped without a word.
  test('a unique index that takes timers’ names for good', async () => {
    await proveMended('create unique index extra on outbox (queue, timer_id)', `index ${named('extra')}`)
  })

  test('a unique index that looks at what the outbox writes only in its predicate', async () => {
    await proveMended(
      'create unique index extra on outbox (key) where attempts = 0',
      `index ${named('extra')}`,
    )
  })

  test('a constraint that can refuse a burial', async () => {
    await proveMended('alter table outbox_dead add constraint extra unique (id)', `index ${named('extra')}`)
  })

  test('autovacuum that is off, for the messages or for their bodies', async () => {
    const parameter = (name: string): string => `storage parameter ${name} of ${named('outbox')}`
    await proveMended('alter table outbox set (autovacuum_enabled = off)', parameter('autovacuum_enabled'))
    const toast = 'toast.autovacuum_enabled'
    await proveMended(`alter table outbox set (${toast} = no)`, parameter(toast))
  })

  test('a CHECK of the lease that says less, whatever its name', async () => {
    await proveMended(
      `alter table outbox drop constraint outbox_lease;
       alter table outbox add constraint ck_lease check (lease_token is null or leased_until is not null)`,
      `constraint "outbox_lease" on ${named('outbox')}`,
    )
    await query('alter table outbox drop constraint ck_lease')
  })

  test('numbers that come from a sequence of somebody’s own', async () => {
    await proveMended(
      `alter table outbox alter seq drop identity;
       create sequence outbox_seq_seq;
       alter table outbox alter seq set default nextval('outbox_seq_seq')`,
      `column ${named('outbox')}.seq`,
    )
  })

  // A claim would take the decoy's last number for the last one that was given out.
  test('a sequence under our name that does not number the messages', async () => {
    await proveMended(
      'alter sequence outbox_seq_seq rename to renamed; create sequence outbox_seq_seq',
      `column ${named('outbox')}.seq`,
    )
  })

  test('a column that Postgres computes, where we write it', async () => {
    await proveMended(
      `alter table outbox drop column generation cascade;
       alter table outbox add column generation bigint generated always as (1) stored`,
      `column ${named('outbox')}.generation`,
      `view ${named('outbox_status')}`,
    )
  })

  test('a column that numbers itself, where we write it', async () => {
    await proveMended(
      `alter table outbox alter generation set not null;
       alter table outbox alter generation add generated by default as identity`,
      `column ${named('outbox')}.generation`,
    )
  })

  test('an index of another method', async () => {
    await proveMended(
      'drop index outbox_failed; create index outbox_failed on outbox using hash (id) where failed_at is not null',
      `index ${named('outbox_failed')}`,
    )
  })

  test('a key that is checked late: no conflict can be taken for an answer there', async () => {
    await proveMended(
      `alter table outbox_handled drop constraint outbox_handled_pkey;
       alter table outbox_handled add constraint late primary key (consumer, id) deferrable`,
      `primary key "outbox_handled_pkey" on ${named('outbox_handled')}`,
    )
  })

  test('a table in the view’s place: it is put aside, with its rows', async () => {
    await proveMended(
      'drop view outbox_status; create table outbox_status as select 7 as n',
      `view ${named('outbox_status')}`,
    )
    expect(await query('select n from outbox_status_aside')).toEqual([{ n: 7 }])
    await query('drop table outbox_status_aside')
  })

  test('a function that anybody else’s stands for', async () => {
    const object = `function ${named('outbox_replay')}(uuid, bigint, text)`
    await proveMended(
      'drop function outbox_replay; create procedure outbox_replay(uuid, bigint, text) language sql begin atomic select 1; end',
      object,
    )
    await proveMended(
      'drop function outbox_replay; create aggregate outbox_replay(integer) (sfunc = int4pl, stype = integer)',
      object,
    )
  })

  test('a view in a table’s place', async () => {
    await proveMended(
      'alter table outbox_queues rename to q; alter index outbox_queues_pkey rename to q_pkey; create view outbox_queues as table q',
      `table ${named('outbox_queues')}`,
    )
    await query('drop table q')
  })

  // Only PostgreSQL 18 and later have them.
  test('what Postgres was told not to check', async () => {
    const [version] = await query(`select current_setting('server_version_num')::int >= 180000 as knows`)
    if (version?.['knows'] !== true) return
    await proveMended(
      `alter table outbox alter id drop not null;
       alter table outbox add constraint unchecked not null id not valid`,
      `column ${named('outbox')}.id`,
    )
    await proveMended(
      `alter table outbox drop constraint outbox_lease;
       alter table outbox add constraint outbox_lease check ((lease_token is null) = (leased_until is null)) not enforced`,
      `constraint "outbox_lease" on ${named('outbox')}`,
    )
    // Not checked means of the rows that are there: new ones are refused.
    await proveMended(
      'alter table outbox add column note text; alter table outbox add constraint unchecked_note not null note not valid',
      `column ${named('outbox')}."note"`,
    )
    await query('alter table outbox drop column note')
  })
})

describe('mending', () => {
  test('drops the view before it alters what the view reads, makes it again, and gives back what was granted', async () => {
    const role = `role_${database.schema}`
    await query(`create role "${role}"`)
    const [made] = await query(`select pg_get_viewdef('outbox_status') as definition`)
    await query(
      `drop view outbox_status; alter table outbox alter attempts type bigint; alter table outbox_dead alter attempts type bigint;
       create view outbox_status as ${made?.['definition']}; grant select on outbox_status to "${role}"`,
    )

    const found = await differencesOf(outbox)
    await mend(query, found)

    expect(objects(found)).toEqual([
      `column ${named('outbox')}.attempts`,
      `column ${named('outbox_dead')}.attempts`,
      `view ${named('outbox_status')}`,
    ])
    expect(await query(`select has_table_privilege($1, 'outbox_status', 'select') as may`, [role])).toEqual([
      { may: true },
    ])
    expect(await differencesOf(outbox)).toEqual([])
    await query(`drop owned by "${role}"; drop role "${role}"`)
  })

  test('gives back what was granted on a function that had to be dropped', async () => {
    const role = `role_${database.schema}`
    await query(`create role "${role}"; grant execute on function outbox_replay to "${role}"`)
    const [made] = await query(`select pg_get_functiondef('outbox_replay'::regproc) as definition`)
    await query(
      `drop function outbox_replay; ${String(made?.['definition']).replace('event_id uuid', 'id uuid')};
       grant execute on function outbox_replay to "${role}"`,
    )

    await mend(query, await differencesOf(outbox))

    expect(await differencesOf(outbox)).toEqual([])
    const may = `select has_function_privilege($1, 'outbox_replay(uuid, bigint, text)', 'execute') as may`
    expect([...(await query(may, [role])), ...(await query(may, ['public']))]).toEqual([
      { may: true },
      { may: false },
    ])
    await query(`drop owned by "${role}"; drop role "${role}"`)
  })

  test('frees rows with half a lease, which would wait for ever', async () => {
    await query('alter table outbox drop constraint outbox_lease')
    await outbox.publishNow('orders', 1)
    await query('update outbox set lease_token = gen_random_uuid()')

    await mend(query, await differencesOf(outbox))

    expect(await query('select lease_token, leased_until from outbox')).toEqual([
      { lease_token: null, leased_until: null },
    ])
    await query('delete from outbox')
  })

  test('fills what was left empty where there is a default for it', async () => {
    await query('alter table outbox alter attempts drop not null, alter attempts drop default')
    await outbox.publishNow('orders', 1)

    await mend(query, await differencesOf(outbox))

    expect(await query('select attempts from outbox')).toEqual([{ attempts: 0 }])
    await query('delete from outbox')
  })

  test.each([
    ['that lost its sequence', 'alter table outbox alter seq drop identity'],
    ['whose sequence went backwards', 'alter table outbox alter seq set increment -1 restart with 2'],
  ])('numbers the messages of a table %s above those that are there', async (_, spoil) => {
    await outbox.publishNow('orders', 1)
    await outbox.publishNow('orders', 2)
    const [before] = await query('select max(seq)::int as top from outbox')
    await query(spoil)

    await mend(query, await differencesOf(outbox))
    await outbox.publishNow('orders', 3)

    const [after] = await query('select max(seq)::int as top from outbox')
    expect(after?.['top']).toBeGreaterThan(before?.['top'] as number)
    await query('delete from outbox')
  })
})
