// The guide to testing shows files of examples/testing: they are run here, with both runners, as their reader would.
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const repository = join(import.meta.dirname, '..', '..')
const example = join(repository, 'examples', 'testing')

function npm(...args: readonly string[]): { readonly status: number | null; readonly output: string } {
  const { NODE_OPTIONS: _, VITEST: __, ...env } = process.env
  const { status, stdout, stderr } = spawnSync('npm', args, { cwd: example, env, encoding: 'utf8' })
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colours are control characters
  return { status, output: `${stdout}${stderr}`.replaceAll(/\u001b\[\d+m/g, '') }
}

test('the examples of the guide pass with vitest, from the built package', () => {
  const { status, output } = npm('test')
  expect(output).toMatch(/Tests +7 passed/)
  expect(status, output).toBe(0)
})

test('the examples of the guide pass with node:test, from the built package', () => {
  const { status, output } = npm('run', 'test:node')
  expect(output).toMatch(/pass 2\b/)
  expect(output).toMatch(/fail 0\b/)
  expect(status, output).toBe(0)
})

test('the guide shows every file of the example as it is run', () => {
  const guide = readFileSync(join(repository, 'docs', 'guides', 'testing.md'), 'utf8')
  const shown = [...guide.matchAll(/^```ts\n([\s\S]*?)^```/gm)].map(([, code]) => code)
  for (const file of readdirSync(join(example, 'src'))) {
    const code = readFileSync(join(example, 'src', file), 'utf8')
    expect(shown, file).toContain(`// ${file}\n${code}`)
  }
})
