import { describe, expect, test } from 'vitest'
import type { Draft } from '../core/message.ts'
import type { Schedule } from '../core/schedule.ts'
import { insertMessage } from './insert-message.ts'
import { insertMessages } from './insert-messages.ts'
import { eachRow, type InsertedRow } from './insert-plain.ts'
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

/** The records inside the JSON parameter of a batch. */
function records(drafts: Partial<Draft>[]): Record<string, unknown>[] {
  return JSON.parse(many(drafts).values[1] as string)
}

describe('insertMessage', () => {
  test('binds one value per column that has one', () => {
    const body = Buffer.from('x')
    const full = { key: 'k', timerId: 't', body, headers: { a: 'b' }, generation: 7 }
    const { id } = draft

    expect(one({}).values).toEqual([id, 'orders', draft.body])
    expect(one({}).text).toContain('(id, queue, body)\nvalues ($1::uuid, $2::text, $3::bytea)\n')
    expect(one(full, 'm').values).toEqual([id, 'orders', body, 'k', 't', '{"a":"b"}', 7, 'm'])
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
    expect(values.slice(3)).toEqual([delayMs ?? epochMs].filter((ms) => ms !== null))
    expect(text.includes('make_interval(secs => $4::float8 / 1000)')).toBe(delayMs !== null)
    expect(text.includes('to_timestamp($4::float8 / 1000) > statement_timestamp()')).toBe(epochMs !== null)
    const [{ delay = null, epoch = null } = {}] = records([{ schedule }])
    expect([delay, epoch]).toEqual([delayMs, epochMs])
  })

  test('an unknown schedule or conflict is an error of ours, not a wrong row', () => {
    expect(() => one({ schedule: { kind: 'soon' } as never })).toThrow(/unreachable/)
    expect(() => many([{ schedule: { kind: 'soon' } as never }])).toThrow(/unreachable/)
    expect(() => one({ conflict: 'merge' as never })).toThrow(/unreachable/)
  })

  test('a record of a batch names only what the message has', () => {
    expect(Object.keys(records([{}])[0] ?? {})).toEqual(['id', 'first', 'size'])
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
  test('is a row for each id and its seq, and one that is not ours as it was', () => {
    const packed = { id: 'a,b', seq: '1,22', woken: 0 } as InsertedRow
    const renamed = { ID: 'a', SEQ: '1' } as never

    expect(eachRow([packed, { id: 'c', seq: '3' }])).toEqual([
      { id: 'a', seq: '1' },
      { id: 'b', seq: '22' },
      { id: 'c', seq: '3' },
    ])
    expect(eachRow([renamed, { id: 'a' } as never])).toEqual([renamed, { id: 'a' }])
    expect(eachRow([])).toEqual([])
  })
})

describe('insertMessages', () => {
  // U-PUB-15
  test('any number of messages is one statement with a queue, a JSON text, bytes and a mark', () => {
    expect(many([{}, {}, {}], 'm').values).toEqual(['orders', expect.any(String), Buffer.alloc(0), 'm'])
    expect(records([{ key: 'a' }, { key: 'b' }, { key: 'c' }]).map((record) => record['key'])).toEqual([
      'a',
      'b',
      'c',
    ])
    expect(many([{}]).text).toMatch(/with ordinality[\s\S]*order by place/)
  })

  test('a body is the bytes of its view, not of the memory behind it', () => {
    const memory = Buffer.from('secret body secret')

    const bodies = [{ body: memory.subarray(7, 11) }, {}, { body: new Uint8Array([0, 255, 128]) }]

    expect(many(bodies).values[2]).toEqual(Buffer.concat([Buffer.from('body'), Buffer.from([0, 255, 128])]))
    expect(records(bodies)).toMatchObject([
      { first: 1, size: 4 },
      { first: 5, size: 0 },
      { first: 5, size: 3 },
    ])
    expect(many(bodies).text).toContain('substring($3::bytea from first for size)')
  })

  test('a header called __proto__ reaches the row', () => {
    const headers = Object.fromEntries([['__proto__', 'x']])

    expect(many([{ headers }]).values[1]).toContain('"headers":{"__proto__":"x"}')
    expect(one({ headers }).values[3]).toBe('{"__proto__":"x"}')
  })

  test('text that needs escapes in JSON comes back as it was', () => {
    const key = `"\\\n\u2028😀${"'"}`

    expect(records([{ key, timerId: key }])).toMatchObject([{ key, timer: key }])
  })
})
