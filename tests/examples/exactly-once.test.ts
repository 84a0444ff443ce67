// The guide to exactly-once effects shows files of examples/exactly-once: they are run here, as their reader would.
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const repository = join(import.meta.dirname, '..', '..')
const example = join(repository, 'examples', 'exactly-once')

test('the examples of the guide pass, from the built package', () => {
  const { NODE_OPTIONS: _, VITEST: __, ...env } = process.env
  const { status, stdout, stderr } = spawnSync('npm', ['test'], { cwd: example, env, encoding: 'utf8' })
  expect(status, `${stdout}${stderr}`).toBe(0)
})

test('the guide shows every file of the example as it is run, and no other code', () => {
  const guide = readFileSync(join(repository, 'docs', 'guides', 'exactly-once.md'), 'utf8')
  const shown = [...guide.matchAll(/^```ts\n([\s\S]*?)^```/gm)].map(([, code]) => code)
  const run = readdirSync(join(example, 'src')).map(
    (file) => `// ${file}\n${readFileSync(join(example, 'src', file), 'utf8')}`,
  )
  expect(shown.toSorted()).toEqual(run.toSorted())
})
