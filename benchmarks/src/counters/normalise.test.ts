import { describe, expect, test } from 'vitest'
import { kindOf, normalise, walOf } from './normalise.ts'
import { consuming, publishing } from './sample.ts'

describe('normalise', () => {
  test('divides by the messages and keeps the totals', () => {
    const normalised = normalise(publishing({ insertStatements: 10, walBytes: 32_060 }))

    expect(normalised.perMessage).toMatchObject({ 'insert statements': 0.1, 'WAL bytes': 320.6 })
    expect(normalised.totals).toMatchObject({ insertStatements: 10, walBytes: 32_060 })
    expect(normalised.messages).toBe(100)
  })

  test('takes the HOT share of the updates, not of the messages', () => {
    const normalised = normalise(consuming({ rowsUpdated: 200, hotUpdates: 150 }))

    expect(normalised.perMessage['HOT share of updates']).toBe(0.75)
  })

  test('has no HOT share where nothing was updated', () => {
    expect(normalise(publishing({})).perMessage['HOT share of updates']).toBeNull()
  })
})

describe('the kind of a statement', () => {
  test.each([
    ['with inserted as (\n  insert into "public"."outbox" as m (id) values ($1)) select 1', 'insert'],
    [
      'update outbox set lease_token = $1 where ctid = any(array(select ctid for update skip locked))',
      'claim',
    ],
    ['\ndelete from outbox as m using unnest($1::bigint[]) as s(seq)', 'delete'],
    ['with gone as (delete from outbox returning *) insert into outbox_dead select * from gone', 'delete'],
    ['begin isolation level read committed', 'block'],
    ['COMMIT', 'block'],
    ['lock table outbox in row exclusive mode', 'other'],
    ['select version from outbox_meta', 'other'],
  ])('%j', (text, kind) => {
    expect(kindOf(text)).toBe(kind)
  })
})

describe('the WAL of a scenario', () => {
  test('is what messages cause, without what the server writes on its own account', () => {
    const wal = walOf([
      { type: 'Heap/INSERT', records: 100, bytes: 15_000 },
      { type: 'Transaction/COMMIT', records: 4, bytes: 136 },
      { type: 'Standby/RUNNING_XACTS', records: 1, bytes: 50 },
      { type: 'XLOG/FPI_FOR_HINT', records: 2, bytes: 100 },
      { type: 'LogicalMessage/MESSAGE', records: 1, bytes: 60 },
    ])

    expect(wal).toEqual({ walRecords: 104, walBytes: 15_136, commits: 4 })
  })
})
