import { readdirSync, readFileSync } from 'node:fs'
import { join, sep } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type Exception, sessionViolations } from './own-sessions.ts'
import type { Sources } from './rules.ts'

const folders = [
  ...['integration', 'conformance', 'chaos', 'support', 'harness'],
  ...['interleaving', 'model', 'ordering', 'rolling'],
]

const exceptions: readonly Exception[] = [
  {
    file: 'support/leaks.ts',
    text: 'as is_shared',
    reason: 'survey gives it both names of the file; the query is apart from them, so that it has a name',
  },
  {
    file: 'integration/lifecycle.test.ts',
    text: 'where datname = $1',
    reason: 'everybody in a database that the test has made for itself',
  },
  {
    file: 'integration/decision-faults.test.ts',
    text: 'where usename = $1',
    reason: 'everybody who has logged in as a role that the test has made for itself',
  },
]

test('whoever asks about sessions, or ends one, names those of its own file', () => {
  const sources = readSources()

  expect(sources.size).toBeGreaterThan(100)
  expect(sessionViolations(sources, exceptions)).toEqual([])
})

const refused = 'a.ts:1 asks about sessions, and does not say that it means its own'

describe('the rule refuses', () => {
  test.each([
    [
      'a look at everybody who waits',
      "query(`select from pg_stat_activity where wait_event_type = 'Lock'`, [1])",
    ],
    ['a look at every lock', "query('select from pg_locks where not granted')"],
    [
      'a lock of a number, which another file may have, too',
      'query(`select from pg_locks where objid = 4711 and not granted`)',
    ],
    ['the name of all tests', "query('select from pg_stat_activity where application_name like $1', [all])"],
    [
      'a name that is written down',
      "query(`select from pg_stat_activity where application_name like 'postbox%'`, [applicationName])",
    ],
    ['the end of everybody', "query('select pg_terminate_backend(pid) from pg_stat_activity', [name])"],
    ['a cancel of everybody', 'query(`select pg_cancel_backend(pid) from pg_stat_activity`)'],
    ['a query that it cannot read', '/`/; query(`select from pg_locks`)'],
  ])('%s', (_, text) => {
    expect(sessionViolations(new Map([['a.ts', text]]), [])).toEqual([refused])
  })

  test('an exception that nothing needs any more', () => {
    const exception = { file: 'a.ts', text: 'not granted', reason: 'there was one' }

    expect(sessionViolations(new Map([['a.ts', '']]), [exception])).toEqual([
      'a.ts has no query that needs the exception "not granted"',
    ])
  })

  test('the second query of a file, at its line', () => {
    const own = "query('select pg_terminate_backend($1)', [pid])"
    const sources = new Map([['a.ts', `${own}\n\nquery(\`\n  select from pg_locks\`)`]])

    expect(sessionViolations(sources, [])).toEqual([refused.replace('a.ts:1', 'a.ts:4')])
  })
})

describe('the rule allows', () => {
  test.each([
    [
      'the name of the file',
      "query('select from pg_stat_activity where application_name = $1', [database.applicationName])",
    ],
    [
      'a beginning of it',
      'query(`select from pg_locks join pg_stat_activity a using (pid) where starts_with(a.application_name, $1)`, [applicationName])',
    ],
    ['the name of a process', "query('select from pg_stat_activity where application_name like $1', [name])"],
    ['a pid', "query('select pg_terminate_backend($1, 5000)', [pid])"],
    ['the session itself', "query('select from pg_locks where pid = pg_backend_pid()')"],
    ['a table', "query(`select from pg_locks where relation = 'outbox'::regclass`)"],
    ['words about it', '// pg_locks knows\nconst text = `no query`'],
  ])('%s', (_, text) => {
    expect(sessionViolations(new Map([['a.ts', text]]), [])).toEqual([])
  })
})

function readSources(): Sources {
  const root = join(import.meta.dirname, '..')
  const files = folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((file) => join(folder, file)),
  )
  const sources = files.filter((file) => file.endsWith('.ts'))
  return new Map(sources.map((file) => [file.split(sep).join('/'), readFileSync(join(root, file), 'utf8')]))
}
