import { readdirSync, readFileSync } from 'node:fs'
import { join, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { type Sources, spine, violations } from './rules.ts'

const src = fileURLToPath(new URL('../../packages/postbox/src', import.meta.url))

describe('the sources of the library', () => {
  const sources = readSources(src)

  test('keep the dependency rule', () => {
    expect(sources.size).toBeGreaterThan(0)
    expect(violations(sources)).toEqual([])
  })

  test('name all seven steps of the path of a message', () => {
    const steps = new Set(spine(sources).map((line) => line.slice(0, 'Path n/7'.length)))

    expect([...steps]).toEqual([1, 2, 3, 4, 5, 6, 7].map((step) => `Path ${step}/7`))
  })
})

describe('the rules report', () => {
  test.each<[string, Record<string, string>, string]>([
    [
      'core that imports another folder',
      { 'core/a.ts': "import { b } from '../sql/b.ts'", 'sql/b.ts': '' },
      'core/a.ts imports sql/b.ts as a value: core may import core',
    ],
    [
      'a type that core takes from another folder',
      { 'core/a.ts': "import type { B } from '../adapters/b.ts'", 'adapters/b.ts': '' },
      'core/a.ts imports adapters/b.ts: core may import core',
    ],
    [
      'a node: import in core',
      { 'core/a.ts': "import { join } from 'node:path'" },
      'core/a.ts imports node:path: core has no node: imports',
    ],
    [
      'sql that imports runtime, over several lines',
      { 'sql/a.ts': "import {\n  b,\n  c,\n} from '../runtime/b.ts'", 'runtime/b.ts': '' },
      'sql/a.ts imports runtime/b.ts as a value: sql may import core, sql',
    ],
    [
      'an adapter that uses a statement of sql',
      { 'adapters/a.ts': "import { b } from '../sql/b.ts'", 'sql/b.ts': '' },
      'adapters/a.ts imports sql/b.ts as a value: adapters may import type core, core/errors.ts, core/show.ts, core/unreachable.ts, sql/statement.ts, adapters',
    ],
    [
      'an adapter that takes a decision from core',
      { 'adapters/a.ts': "import { settle } from '../core/settlement.ts'", 'core/settlement.ts': '' },
      'adapters/a.ts imports core/settlement.ts as a value: adapters may import type core, core/errors.ts, core/show.ts, core/unreachable.ts, sql/statement.ts, adapters',
    ],
    [
      'a value that runtime takes from adapters',
      { 'runtime/a.ts': "import { b } from '../adapters/b.ts'", 'adapters/b.ts': '' },
      'runtime/a.ts imports adapters/b.ts as a value: runtime may import core, sql, runtime, type adapters',
    ],
    [
      'a re-export across layers',
      { 'sql/a.ts': "export { b } from '../adapters/b.ts'", 'adapters/b.ts': '' },
      'sql/a.ts imports adapters/b.ts as a value: sql may import core, sql',
    ],
    [
      'a dynamic import across layers',
      { 'core/a.ts': "const b = () => import('../sql/b.ts')", 'sql/b.ts': '' },
      'core/a.ts imports sql/b.ts as a value: core may import core',
    ],
    [
      'a folder that imports a root file',
      { 'runtime/a.ts': "import type { Outbox } from '../outbox.ts'", 'outbox.ts': '' },
      'runtime/a.ts imports outbox.ts: runtime may import core, sql, runtime, type adapters',
    ],
    [
      'a package',
      { 'outbox.ts': "import pg from 'pg'" },
      'outbox.ts imports the package pg: there are no dependencies',
    ],
    [
      'a builtin without the node: prefix',
      { 'runtime/a.ts': "import { readFile } from 'fs'" },
      'runtime/a.ts imports the package fs: there are no dependencies',
    ],
    [
      'an import that names no file, which no rule could judge',
      { 'core/a.ts': "import { b } from '../sql/b.js'", 'sql/b.ts': '' },
      'core/a.ts imports ../sql/b.js, which is no file of src',
    ],
    [
      'a cycle of type imports',
      {
        'core/a.ts': "import type { B } from './b.ts'",
        'core/b.ts': "export type { C } from './c.ts'",
        'core/c.ts': "import type { A } from './a.ts'",
      },
      'cycle: core/a.ts → core/b.ts → core/c.ts → core/a.ts',
    ],
    ['a folder for everything', { 'sql/helpers/a.ts': '' }, 'a folder is named helpers'],
    ['a folder that no rule speaks of', { 'extra/a.ts': '' }, 'folder extra has no dependency rule'],
    [
      'a file of 401 lines',
      { 'index.ts': 'export {}\n'.repeat(401) },
      'index.ts has 401 lines, more than 400',
    ],
    [
      'a Path line that does not open its file',
      { 'publish.ts': "import './a.ts'\n// Path 1/7 · publish: drafts → rows", 'a.ts': '' },
      'publish.ts has its Path line below the first line',
    ],
  ])('%s', (_, files, expected) => {
    expect(violations(new Map(Object.entries(files)))).toEqual([expected])
  })

  test.each([
    'Date.now()',
    'new Date()',
    'Math.random()',
    'setTimeout(work, 1)',
    'clearInterval(timer)',
    'process.env',
    'globalThis.process',
    'crypto.randomUUID()',
    'performance.now()',
    'AbortSignal.timeout(5)',
  ])('%s in core, and not in runtime', (call) => {
    const inCore = violations(new Map([['core/a.ts', `const a = ${call}`]]))
    const inRuntime = violations(new Map([['runtime/a.ts', `const a = ${call}`]]))

    expect(inCore).toHaveLength(1)
    expect(inCore[0]).toMatch(/^core\/a\.ts uses .*: core takes time, chance and effects as arguments$/)
    expect(inRuntime).toEqual([])
  })
})

describe('the rules allow', () => {
  test('what each layer is for', () => {
    const sources = new Map([
      ['index.ts', "export { createOutbox } from './outbox.ts'"],
      ['outbox.ts', "import { a } from './runtime/a.ts'\nimport { b } from './adapters/b.ts'"],
      ['runtime/a.ts', "import type { B } from '../adapters/b.ts'\nimport { once } from 'node:events'"],
      [
        'adapters/b.ts',
        "import { OutboxError } from '../core/errors.ts'\nimport type { L } from '../core/lease.ts'",
      ],
      [
        'sql/claim.ts',
        "import type { Statement } from './statement.ts'\nimport { L } from '../core/lease.ts'",
      ],
      ['sql/statement.ts', ''],
      ['core/lease.ts', "import { OutboxError } from './errors.ts'"],
      ['core/errors.ts', ''],
    ])

    expect(violations(sources)).toEqual([])
  })

  test('comments and strings that only speak of a clock or of another file', () => {
    const text = [
      "// Date.now() is not called here; import { a } from '../sql/a.ts' neither",
      "/* import('pg') */",
      "const hint = 'call setTimeout later // import'",
      'const at = new Date(elapsed)',
      'const child = message.process.id',
    ].join('\n')

    expect(violations(new Map([['core/a.ts', text]]))).toEqual([])
  })
})

test('the spine is sorted by its numbers, whatever the order of the files', () => {
  const sources = new Map([
    ['runtime/waker.ts', '// Path 3/7 · wake: notification → look now.\nexport {}'],
    ['publish.ts', '// Path 1/7 · publish: drafts → rows.\nexport {}'],
  ])

  expect(spine(sources)).toEqual([
    'Path 1/7 · publish: drafts → rows.',
    'Path 3/7 · wake: notification → look now.',
  ])
})

function readSources(folder: string): Sources {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
    .sort()
  return new Map(files.map((file) => [file.split(sep).join('/'), readFileSync(join(folder, file), 'utf8')]))
}
