import { describe, expect, test } from 'vitest'
import { resolveDeliveredPage } from '../core/delivered-options.ts'
import { deleteAcked } from './delete-acked.ts'
import { deleteWithFollowOns } from './delete-with-follow-ons.ts'
import { getDelivered } from './get-delivered.ts'
import { listDelivered } from './list-delivered.ts'
import { resolveNames } from './names.ts'
import { purgeDelivered } from './purge-delivered.ts'

const names = resolveNames({ schema: 'a "b', table: 'c; --' })
const id = '01890000-0000-7000-8000-00000000000a'
const hostile = `'; drop table x; --`
const page = resolveDeliveredPage({
  ...{ queue: hostile, key: hostile, since: new Date(0), until: new Date(1), limit: 7, after: '5-3' },
})

test.each(
  [
    listDelivered(names, page),
    getDelivered(names, id),
    purgeDelivered(names, { olderThanMs: 5, limit: 7 }),
  ].map((statement) => [statement.name, statement] as const),
)(
  '%s has the values of callers only as parameters, each of them used, and the table quoted',
  (_, { text, values }) => {
    const used = new Set(text.match(/\$\d+/g))

    expect([...used].sort()).toEqual(values.map((_value, index) => `$${index + 1}`).sort())
    expect(text).not.toContain(hostile)
    expect(text).not.toContain(id)
    expect(text).toContain('"a ""b"."c; --_delivered"')
  },
)

test('what a list is not asked for is not in its text', () => {
  const { text, values } = listDelivered(names, resolveDeliveredPage())

  expect(values).toEqual([51])
  expect(text).not.toMatch(/queue =|key =/)
})

describe('an acknowledgement where delivered messages are deleted', () => {
  const plain = resolveNames({ schema: 'public', table: 'outbox' })

  test('is a delete and nothing else', () => {
    expect(deleteAcked(plain, []).text).toBe(`
delete from "public"."outbox" as m
 using unnest($1::text::bigint[], $2::text::uuid[]) as s(seq, token)
 where m.seq = s.seq
   and m.lease_token = s.token
   and m.seq = any($1::text::bigint[])
returning m.seq::text as seq`)
  })

  test('names no other table, with follow-ons neither', () => {
    const { text } = deleteWithFollowOns(plain, { settled: [], wake: 'quiet', delivered: 'delete' })

    expect(text).not.toContain('delivered')
    expect(text).toMatch(/returning m\.seq\n\), drafts as/)
    expect(deleteWithFollowOns(plain, { settled: [], wake: 'quiet' }).text).toBe(text)
  })
})

describe('an acknowledgement where delivered messages are kept', () => {
  test.each([
    deleteAcked(names, [], { delivered: 'table' }).text,
    deleteWithFollowOns(names, { settled: [], wake: 'quiet', delivered: 'table' }).text,
  ])('is the same statement, which keeps what its delete returned (case %#)', (text) => {
    expect(text.match(/delete from/g)).toHaveLength(1)
    expect(text).toMatch(
      /insert into "a ""b"\."c; --_delivered" \(original_seq, timer_id, id, [^)]*delivered_at\)/,
    )
    expect(text).toMatch(/statement_timestamp\(\)\s+from (gone|settled)\s+order by seq/)
  })
})
