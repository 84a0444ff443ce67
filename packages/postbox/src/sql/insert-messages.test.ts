import { describe, expect, test } from 'vitest'
import type { Draft } from '../core/message.ts'
import type { Schedule } from '../core/schedule.ts'
import { insertMessage } from './insert-message.ts'
import { insertMessages } from './insert-messages.ts'
import { eachRow } from './insert-plain.ts'
import { resolveNames } from './names.ts'

const names = resolveNames({ schema: 'public', table: 'outbox' })

const draft: Draft = {
  id: '0190163d-8694-739b-9aea-966c26f8ad91',
  queue: 'orders',
  key: null,
  timerId: null,
  conflict: 'none',
  body: new Uint8Array(0),
  headers: null,
  schedule: { kind: 'now' },
  generation: null,
}

const one = (change: Partial<Draft>, mark: string | null = null) =>
  insertMessage(names, { ...draft, ...change }, { wake: 'quiet', mark })
const many = (drafts: Partial<Draft>[], mark: string | null = null) =>
  insertMessages(
    names,
    { queue: 'orders', drafts: drafts.map((own) => ({ ...draft, ...own })), conflict: 'none' },
    { wake: 'quiet', mark },
  )

/** The texts of a batch by the member that its statement makes of each. */
function columns(drafts: Partial<Draft>[]): Record<string, unknown> {
  const { text, values } = many(drafts)
  const [, members = ''] = /\bas d\((.*), place\)/.exec(text) ?? []
  return Object.fromEntries(members.split(', ').map((member, index) => [member, values[index + 3]]))
}

describe('insertMessage', () => {
  test('binds one value per column that has one', () => {
    const body = Buffer.from('x')
    const full = { key: 'k', timerId: 't', body, headers: { a: 'b' }, generation: 7 }
    const { id } = draft

    const locks = ['postbox:public.outbox publishers orders', 'postbox:public.outbox sleepers orders']

    expect(one({}).values).toEqual([id, 'orders', draft.body, ...locks])
    expect(one({}).text).toContain('(id, queue, body)\nvalues ($1::uuid, $2::text, $3::bytea)\n')
    expect(one(full, 'm').values).toEqual([id, 'orders', body, 'k', 't', '{"a":"b"}', 7, ...locks, 'm'])
    expect(one(full).text).toContain(
      '(id, queue, body, key, timer_id, headers, generation)\nvalues ($1::uuid, $2::text, $3::bytea, $4::text, $5::text, $6::text::jsonb, $7::bigint)\n',
    )
  })

  // U-PUB-11
  test.each<[Schedule, unknown, unknown]>([
    [{ kind: 'now' }, null, null],
    [{ kind: 'after', delayMs: 1.5 }, 1.5, null],
    [{ kind: 'at', epochMs: -1 }, null, -1],
  ])('a schedule is a delay or an epoch or nothing (case %#)', (schedule, delayMs, epochMs) => {
    const { text, values } = one({ schedule })
    expect(values.slice(3, -2)).toEqual([delayMs ?? epochMs].filter((ms) => ms !== null))
    expect(text.includes('make_interval(secs => $4::float8 / 1000)')).toBe(delayMs !== null)
    expect(text.includes('to_timestamp($4::float8 / 1000) > statement_timestamp()')).toBe(epochMs !== null)
    const { delay = null, epoch = null } = columns([{ schedule }, { schedule }])
    expect([delay, epoch]).toEqual([delayMs, epochMs].map((ms) => (ms === null ? null : `${ms},${ms}`)))
  })

  test('an unknown schedule or conflict is an error of ours, not a wrong row', () => {
    expect(() => one({ schedule: { kind: 'soon' } as never })).toThrow(/unreachable/)
    expect(() => many([{ schedule: { kind: 'soon' } as never }])).toThrow(/unreachable/)
    expect(() => one({ conflict: 'merge' as never })).toThrow(/unreachable/)
  })

  test('a batch names only what some message has, and the columns of that', () => {
    expect(Object.keys(columns([{}, {}]))).toEqual(['id', 'first', 'size'])
    expect(many([{}]).text).toContain('as m (id, queue, body)\n')
    expect(Object.keys(columns([{}, { key: 'k', generation: 0 }]))).toEqual([
      'id',
      'first',
      'size',
      'key',
      'generation',
    ])
    expect(many([{ headers: {} }, { timerId: 't' }]).text).toContain('(id, queue, body, timer_id, headers)\n')
  })

  test('a plain insert has no conflict clause', () => {
    expect(one({}).text).not.toContain('on conflict')
  })

  // U-PUB-12
  test('a timer that is kept is left alone', () => {
    expect(one({ conflict: 'keep' }).text).toContain(
      'on conflict (queue, timer_id) where timer_id is not null and failed_at is null do nothing',
    )
  })

  test('a timer is replaced only while nobody holds its lease, and goes to the due lane', () => {
    const { text } = one({ conflict: 'replace' })

    expect(text).toMatch(/do update\s+set id = excluded\.id/)
    expect(text).toContain('due_at = coalesce(excluded.due_at, statement_timestamp())')
    expect(text).toMatch(/where m\.lease_token is null\s+returning/)
  })

  test('a timer that is replaced begins anew: nothing is left of the runs and the failures of the one before', () => {
    const [, set = ''] = one({ conflict: 'replace' }).text.match(/do update\s+set ([\s\S]*?)\n\s+where/) ?? []
    const cleared = ['first_attempt_at', 'last_attempt_at', 'last_error', 'failure_history']

    for (const column of cleared) expect(set).toContain(`${column} = null`)
    expect(set).toContain('attempts = 0, deliveries = 0')
    // It waits by its name, so it has none of one that fired; and the tables of the version before have no such column.
    expect(set).not.toContain('fired_timer_id')
  })
})

describe('eachRow', () => {
  const drafts = ['a', 'b', 'c'].map((id) => ({ id }))

  test('is a receipt for each seq, with the id of its draft', () => {
    expect(eachRow([{ id: null, seq: '1,22,3' }], drafts)).toEqual([
      { id: 'a', seq: '1' },
      { id: 'b', seq: '22' },
      { id: 'c', seq: '3' },
    ])
    expect(eachRow([{ seq: '7' }], [{ id: 'a' }])).toEqual([{ id: 'a', seq: '7' }])
    expect(eachRow([], drafts)).toEqual([])
  })

  test('has the ids that came with the seqs, in one row or in several', () => {
    const written = [
      { id: 'a', seq: '1' },
      { id: 'c', seq: '3' },
    ]

    expect(eachRow([{ id: 'a,c', seq: '1,3' }], drafts)).toEqual(written)
    expect(eachRow(written, drafts)).toEqual(written)
  })

  test('leaves what is not ours without a seq', () => {
    const renamed = { ID: 'a', SEQ: '1' } as never

    const nobodys = drafts.map(({ id }) => ({ id, seq: undefined }))

    expect(eachRow([renamed], [{ id: 'a' }])).toEqual([{ id: 'a', seq: undefined }])
    expect(eachRow([renamed], drafts)).toEqual(nobodys)
    // Two of three, and nobody says which.
    expect(eachRow([{ seq: '7,9' }], drafts)).toEqual(nobodys)
    expect(eachRow([{ id: 'a', seq: '7,9' }], drafts)).toEqual([{ id: 'a', seq: undefined }])
  })
})

describe('insertMessages', () => {
  // U-PUB-15
  test('any number of messages is one statement with a queue, bytes, a count, a text for each kind and a mark', () => {
    const { id } = draft
    const texts = [`${id},${id},${id}`, '1,1,1', '0,0,0']

    expect(many([{}, {}, {}], 'm').values).toEqual(['orders', Buffer.alloc(0), 3, ...texts, 'm'])
    expect(columns([{ key: 'a' }, {}, { key: 'c' }])['key']).toBe('["a",null,"c"]')
    expect(many([{}]).text).toMatch(/with ordinality[\s\S]*order by place/)
  })

  test('what only some messages have is null for the others', () => {
    const after = { schedule: { kind: 'after', delayMs: 1.5 } } as const
    const at = { schedule: { kind: 'at', epochMs: -1 } } as const

    expect(columns([{}, after, { generation: 0 }, at, { headers: { a: 'b' } }])).toMatchObject({
      headers: '[null,null,null,null,{"a":"b"}]',
      delay: ',1.5,,,',
      epoch: ',,,-1,',
      generation: ',,0,,',
    })
    expect(many([{}, after, at]).text).toMatch(/string_to_table\(\$7::text, ',', ''\)/)
    expect(many([{ headers: {} }]).text).toContain("nullif(d.headers, 'null') as headers")
  })

  test('asks for the ids of what was written only if that is not all', () => {
    expect(many([{}]).text).toContain(
      "case when count(*) <> $3::int then (select string_agg(id::text, ',') from inserted) end as id",
    )
  })

  test('asks when rows are due, to wake who sleeps, only where some may be due later', () => {
    expect(many([{}]).text).not.toContain('due_at')
    expect(many([{}, { schedule: { kind: 'after', delayMs: 1 } }]).text).toMatch(
      /returning m\.id, m\.seq, m\.due_at[\s\S]*inserted where due_at is null or/,
    )
  })

  test('a body is the bytes of its view, not of the memory behind it', () => {
    const memory = Buffer.from('secret body secret')

    const bodies = [{ body: memory.subarray(7, 11) }, {}, { body: new Uint8Array([0, 255, 128]) }]

    expect(many(bodies).values[1]).toEqual(Buffer.concat([Buffer.from('body'), Buffer.from([0, 255, 128])]))
    expect(columns(bodies)).toMatchObject({ first: '1,5,5', size: '4,0,3' })
    expect(many(bodies).text).toContain('substring($2::bytea from first for size)')
  })

  test('a header called __proto__ reaches the row', () => {
    const headers = Object.fromEntries([['__proto__', 'x']])

    expect(columns([{ headers }])['headers']).toBe('[{"__proto__":"x"}]')
    expect(one({ headers }).values[3]).toBe('{"__proto__":"x"}')
  })

  test('text that needs escapes in JSON comes back as it was', () => {
    const key = `"\\\n\u2028😀${"'"}`

    const { key: keys, timer } = columns([{ key, timerId: key }])
    expect([keys, timer].map((text) => JSON.parse(text as string))).toEqual([[key], [key]])
  })
})
