import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { byteLength } from '../core/text.ts'
import { literal, type NameOptions, type Names, resolveNames } from './names.ts'

const invalidName = expect.objectContaining({ code: 'OUTBOX_INVALID_NAME' })

/** What Postgres reads in a quoted identifier; null when the text is not exactly one. */
function parse(quoted: string): string | null {
  return /^"(?:[^"]|"")+"$/.test(quoted) ? quoted.slice(1, -1).replaceAll('""', '"') : null
}

/** Tables, indexes and sequences: they share one namespace. Unquoted; null when the text is not one identifier. */
function relations(names: Names): (string | null)[] {
  const within = (name: string): string => name.slice(`${names.schema}.`.length)
  const tables = [names.messages, names.dead, names.handled, names.queues, names.meta].map(within)
  const sequences = [names.sequence, names.deadSequence].map(within)
  return [...tables, ...sequences, ...Object.values(names.index)].map(parse)
}

describe('resolveNames', () => {
  test('derives every name from schema and table, and quotes it once', () => {
    const names = resolveNames({ schema: 'public', table: 'outbox' })

    expect(names).toMatchObject({
      schema: '"public"',
      messages: '"public"."outbox"',
      dead: '"public"."outbox_dead"',
      handled: '"public"."outbox_handled"',
      queues: '"public"."outbox_queues"',
      meta: '"public"."outbox_meta"',
      sequence: '"public"."outbox_seq_seq"',
      deadSequence: '"public"."outbox_dead_seq_seq"',
      channel: 'postbox:public.outbox',
    })
    expect(names.index).toMatchObject({ primary: '"outbox_pkey"', deadQueue: '"outbox_dead_queue"' })
    expect([names, names.index, names.plain].every(Object.isFrozen)).toBe(true)
  })

  test('names that were given are used, and their indexes follow them', () => {
    const names = resolveNames({
      schema: 's',
      table: 't',
      dead: 'graves',
      handled: 'h',
      queues: 'q',
      meta: 'm',
    })

    expect([names.dead, names.handled, names.queues, names.meta]).toEqual([
      '"s"."graves"',
      '"s"."h"',
      '"s"."q"',
      '"s"."m"',
    ])
    expect([names.index.deadId, names.index.metaPrimary]).toEqual(['"graves_id"', '"m_pkey"'])
  })

  test.each([
    ['My Table', '"public"."My Table"'],
    ['OUTBOX', '"public"."OUTBOX"'],
    ['out"box', '"public"."out""box"'],
    ['x"; drop table y; --', '"public"."x""; drop table y; --"'],
    ['select', '"public"."select"'],
    ['a.b', '"public"."a.b"'],
    ['boîte', '"public"."boîte"'],
  ])('%s is quoted as it is', (table, messages) => {
    expect(resolveNames({ schema: 'public', table }).messages).toBe(messages)
  })

  // U-SCH-05
  test('a table of 50 bytes is the longest, behind a short schema', () => {
    expect(() => resolveNames({ schema: 's', table: 't'.repeat(50) })).not.toThrow()
  })

  // U-SCH-06
  test('a table of 51 bytes is refused although the channel would still fit', () => {
    const act = (): unknown => resolveNames({ schema: 's', table: 't'.repeat(51) })

    expect(byteLength(`postbox:s.${'t'.repeat(51)}`)).toBeLessThanOrEqual(63)
    expect(act).toThrow(invalidName)
    expect(act).toThrow(/handled with the suffix _pkey|dead with the suffix _seq_seq/)
  })

  test('schema and table share the 63 bytes of the channel', () => {
    expect(() => resolveNames({ schema: 'public', table: 't'.repeat(48) })).not.toThrow()
    expect(() => resolveNames({ schema: 'public', table: 't'.repeat(49) })).toThrow(
      /the channel made of schema and table/,
    )
  })

  // U-SCH-08
  test('bytes are counted, not characters', () => {
    expect(() => resolveNames({ schema: 's', table: 'é'.repeat(25) })).not.toThrow()
    expect(() => resolveNames({ schema: 's', table: 'é'.repeat(26) })).toThrow(invalidName)
    expect(() => resolveNames({ schema: '😀'.repeat(16), table: 't' })).toThrow(/63 bytes long \(it has 64\)/)
  })

  test.each<[string, object]>([
    ['an empty table', { table: '' }],
    ['an empty schema', { schema: '' }],
    ['a number', { table: 7 }],
    ['null', { schema: null }],
    ['a NUL', { table: 'a\u0000' }],
    ['half an emoji', { table: 'a\ud83d' }],
    ['a dead table of 64 bytes', { dead: 'd'.repeat(64) }],
    ['one name for two tables', { dead: 'graves', handled: 'graves' }],
    ['the table as its own dead table', { dead: 'outbox' }],
    ['a derived name as another table', { handled: 'outbox_meta' }],
  ])('%s is refused', (_title, options) => {
    expect(() => resolveNames({ schema: 'public', table: 'outbox', ...options })).toThrow(invalidName)
  })

  // Tables, indexes and sequences share one namespace: the migration would fail with 42P07.
  test.each([{ dead: 'outbox_ready' }, { queues: 'outbox_seq_seq' }, { meta: 'outbox_dead_pkey' }])(
    'a table named like an index or a sequence of another is refused (case %#)',
    (options) => {
      expect(() => resolveNames({ schema: 'public', table: 'outbox', ...options })).toThrow(invalidName)
    },
  )

  test('every accepted name reads back from its quotes, fits in 63 bytes, and no two relations share one', () => {
    const text = fc.string({
      unit: fc.constantFrom('a', 'B', '"', ' ', '.', ';', "'", '\\', 'é', '😀'),
      maxLength: 16,
    })

    fc.assert(
      fc.property(text, text, (schema, table) => {
        fc.pre(isAccepted({ schema, table }))
        const names = resolveNames({ schema, table })
        const all = [parse(names.schema), ...relations(names), names.channel]

        expect(all).not.toContain(null)
        expect(all.every((name) => byteLength(name ?? '') <= 63)).toBe(true)
        expect(parse(names.schema)).toBe(schema)
        expect(relations(names)[0]).toBe(table)
        expect(new Set(relations(names)).size).toBe(relations(names).length)
      }),
    )
  })
})

function isAccepted(options: NameOptions): boolean {
  try {
    resolveNames(options)
    return true
  } catch {
    return false
  }
}

describe('literal', () => {
  test.each([
    ['plain', "'plain'"],
    ["it's", "'it''s'"],
    ["''", "''''''"],
    ['a\\b', " E'a\\\\b'"],
    ["\\'; drop table x; --", " E'\\\\''; drop table x; --'"],
    ['', "''"],
  ])('%j becomes %s', (text, sql) => {
    expect(literal(text)).toBe(sql)
  })

  test('every text reads back from its literal', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom("'", '\\', 'a', ' ', '$', '&') }), (text) => {
        const sql = literal(text).trimStart()
        const inner = sql.slice(sql.indexOf("'") + 1, -1).replaceAll("''", "'")

        expect(sql.startsWith('E') ? inner.replaceAll('\\\\', '\\') : inner).toBe(text)
        expect(sql.startsWith('E')).toBe(text.includes('\\'))
      }),
    )
  })
})
