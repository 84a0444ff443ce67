import { describe, expect, test } from 'vitest'
import { currentVersion, migrations } from './migrations/index.ts'
import { resolveNames } from './names.ts'
import { schemaScript } from './schema-script.ts'

const names = resolveNames({ schema: 'public', table: 'outbox' })
const script = schemaScript(names, { autovacuum: {} })

/** The columns of one `create table`. */
function columnsOf(table: string, text = script): string[] {
  const body = text.slice(text.indexOf(`create table ${table} (`)).split('\n)')[0] ?? ''
  return Array.from(body.matchAll(/^ {2}(?!constraint)(\w+) /gm), (match) => match[1] as string)
}

describe('schemaScript', () => {
  // U-SCH-01
  test('the table of messages has exactly its columns', () => {
    expect(columnsOf('"public"."outbox"')).toEqual(
      `seq id queue key timer_id body headers attempts deliveries created_at due_at first_attempt_at last_attempt_at
      lease_token leased_until generation failed_at failure_reason last_error failure_history`.split(/\s+/),
    )
  })

  // A column that no index names, that may be null and has no default: nothing is rewritten, and the claim stays HOT.
  test('a timer that fired has a column for its name, added by a step of its own', () => {
    expect(
      script.match(/^(?:create table|create (?:unique )?index|alter) [^;]*fired_timer_id/gm),
    ).toHaveLength(1)
    expect(script).toContain('alter table "public"."outbox" add column fired_timer_id text collate "C";')
  })

  // U-SCH-09
  test('the table of dead letters has the columns of a message, less its lease and due time', () => {
    const message = columnsOf('"public"."outbox"').filter(
      (column) => !['seq', 'due_at', 'lease_token', 'leased_until'].includes(column),
    )

    expect(columnsOf('"public"."outbox_dead"').sort()).toEqual(
      ['dead_seq', 'original_seq', ...message].sort(),
    )
    expect(script).toContain('create index "outbox_dead_queue" on "public"."outbox_dead" (queue, failed_at)')
  })

  // U-SCH-02
  test('a timer is unique per queue, while it lives', () => {
    expect(script).toContain(
      'create unique index "outbox_timer" on "public"."outbox" (queue, timer_id) where timer_id is not null and failed_at is null',
    )
  })

  test('no index names a lease column', () => {
    const indexes = script.split('\n').filter((line) => /^create (unique )?index/.test(line))

    expect(indexes).toHaveLength(16)
    expect(indexes.some((line) => /lease/.test(line.replace(/"[^"]*"/g, '')))).toBe(false)
  })

  test('every statement ends in a semicolon, and each step is noted once', () => {
    const noted = script.match(/insert into "public"\."outbox_meta" .*/g)

    expect(noted).toEqual(
      migrations.map(
        ({ version, name }) =>
          `insert into "public"."outbox_meta" (version, name, breaking) values (${version}, '${name}', false);`,
      ),
    )
    // The lines of a function end in semicolons of their own.
    const outside = script.replace(/\$postbox\$[\s\S]*?\$postbox\$/g, '')
    expect(outside.match(/^(create|alter|drop|revoke) /gm)?.length).toBe(
      outside.match(/;$/gm)!.length - migrations.length,
    )
  })

  test('a schema is created when it is not the one that is always there', () => {
    const own = schemaScript(resolveNames({ schema: 'My "own', table: 'outbox' }), { autovacuum: {} })

    expect(own.startsWith('create schema if not exists "My ""own";\n')).toBe(true)
    expect(script).not.toContain('create schema')
  })

  test('every name in the script is quoted', () => {
    const odd = schemaScript(resolveNames({ schema: 'Odd', table: 'Out"box' }), { autovacuum: {} })

    const outside = odd.replace(/\$postbox\$[\s\S]*?\$postbox\$/g, '')
    expect(outside.replaceAll(/"(?:[^"]|"")*"/g, '')).not.toMatch(/Odd|Out|box/)
  })

  test('vacuum comes by number of rows, to the bodies too', () => {
    const tuned = schemaScript(names, {
      autovacuum: { threshold: 5, insertThreshold: 6, costDelay: 7, costLimit: 8 },
    })
    const settings = [
      'autovacuum_vacuum_scale_factor = 0',
      'autovacuum_vacuum_threshold = 5',
      'autovacuum_vacuum_insert_threshold = 6',
      'autovacuum_vacuum_cost_delay = 7',
      'autovacuum_vacuum_cost_limit = 8',
    ]

    for (const setting of settings) {
      expect(tuned).toContain(`, ${setting}`)
      expect(tuned).toContain(`, toast.${setting}`)
    }
  })

  test('vacuum has defaults, and can be left to the server', () => {
    expect(script).toContain('autovacuum_vacuum_threshold = 1000')
    expect(script).not.toContain('cost_limit')
    expect(schemaScript(names, { autovacuum: false })).toContain(
      'with (fillfactor = 45, vacuum_truncate = off)',
    )
  })
})

describe('the migrations', () => {
  test('are numbered from 1 without gaps, and the last is the current version', () => {
    expect(migrations.map((migration) => migration.version)).toEqual(migrations.map((_, index) => index + 1))
    expect(currentVersion).toBe(migrations.at(-1)?.version)
  })
})
