import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { byteLength } from '../core/text.ts'
import { literal, type NameOptions, type Names, resolveNames } from './names.ts'

const invalidName = expect.objectContaining({ code: 'OUTBOX_INVALID_NAME' })

/** What Postgres reads in a quoted identifier; null when the text is not exactly one. */
function parse(quoted: string): string | null {
  return /^"(?:[^"]|"")+"$/.test(quoted) ? quoted.slice(1, -1).replaceAll('""', '"') : null
}

/** Tables, a view, indexes and sequences: they share one namespace. Unquoted; null when the text is not one identifier. */
function relations(names: Names): (string | null)[] {
  const within = (name: string): string => name.slice(`${names.schema}.`.length)
  const { messages, dead, delivered, handled, queues, operations, meta, status } = names
  const tables = [messages, dead, delivered, handled, queues, operations, meta, status].map(within)
  const sequences = [names.sequence, names.deadSequence, names.deliveredSequence].map(within)
  return [...tables, ...sequences, ...Object.values(names.index)].map(parse)
}

describe('resolveNames', () => {
  test('derives every name from schema and table, and quotes it once', () => {
    const names = resolveNames({ schema: 'public', table: 'outbox' })

    expect(names).toMatchObject({
      schema: '"public"',
      messages: '"public"."outbox"',
      dead: '"public"."outbox_dead"',
      delivered: '"public"."outbox_delivered"',
      handled: '"public"."outbox_handled"',
      queues: '"public"."outbox_queues"',
      operations: '"public"."outbox_operations"',
      meta: '"public"."outbox_meta"',
      status: '"public"."outbox_status"',
      replay: '"public"."outbox_replay"',
      sequence: '"public"."outbox_seq_seq"',
      deadSequence: '"public"."outbox_dead_seq_seq"',
      deliveredSequence: '"public"."outbox_delivered_seq_seq"',
      channel: 'postbox:public.outbox',
    })
    expect(names.index).toMatchObject({ table_pkey: '"outbox_pkey"', dead_queue: '"outbox_dead_queue"' })
    expect([names, names.index, names.plain].every(Object.isFrozen)).toBe(true)
  })

  test('names that were given are used, and their indexes follow them', () => {
    const names = resolveNames({
      schema: 's',
      table: 't',
      dead: 'graves',
      delivered: 'd',
      handled: 'h',
      queues: 'q',
      operations: 'o',
      meta: 'm',
      status: 'v',
      replay: 'f',
    })

    const { dead, delivered, handled, queues, operations, meta, status, replay } = names
    expect([dead, delivered, handled, queues, operations, meta, status, replay]).toEqual(
      ['graves', 'd', 'h', 'q', 'o', 'm', 'v', 'f'].map((name) => `"s"."${name}"`),
    )
    expect([names.index.dead_id, names.index.meta_pkey]).toEqual(['"graves_id"', '"m_pkey"'])
    expect(names.deliveredSequence).toBe('"s"."d_seq_seq"')
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
  test('a table of 44 bytes is the longest, behind a short schema', () => {
    expect(() => resolveNames({ schema: 's', table: 't'.repeat(44) })).not.toThrow()
  })

  // U-SCH-06
  test('a table of 45 bytes is refused although the channel would still fit', () => {
    const act = (): unknown => resolveNames({ schema: 's', table: 't'.repeat(45) })

    expect(byteLength(`postbox:s.${'t'.repeat(45)}`)).toBeLessThanOrEqual(63)
    expect(act).toThrow(invalidName)
    expect(act).toThrow(/operations with the suffix _started/)
  })

  test('a longer one works where the tables with the longest suffixes have names of their own', () => {
    const own = { delivered: 'd', operations: 'o' }

    expect(() => resolveNames({ schema: 's', table: 't'.repeat(50), ...own })).not.toThrow()
    expect(() => resolveNames({ schema: 's', table: 't'.repeat(51), ...own })).toThrow(invalidName)
  })

  test('schema and table share the 63 bytes of the channel', () => {
    const schema = 'applications'
    expect(() => resolveNames({ schema, table: 't'.repeat(42) })).not.toThrow()
    expect(() => resolveNames({ schema, table: 't'.repeat(43) })).toThrow(
      /the channel made of schema and table/,
    )
  })

  // U-SCH-08
  test('bytes are counted, not characters', () => {
    expect(() => resolveNames({ schema: 's', table: 'é'.repeat(22) })).not.toThrow()
    expect(() => resolveNames({ schema: 's', table: 'é'.repeat(23) })).toThrow(invalidName)
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
    ['a table as the view', { status: 'outbox_dead' }],
    ['a function of 64 bytes', { replay: 'r'.repeat(64) }],
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
