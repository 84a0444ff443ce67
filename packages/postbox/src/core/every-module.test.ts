import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'

/**
 * Coverage counts the files that some test has imported. This test imports all of them, so that one without a test of its own is missed by
 * the threshold of 100 %, and not by nobody.
 */
describe.each(['core', 'sql'])('every module of %s', (folder) => {
  const root = fileURLToPath(new URL(`../${folder}/`, import.meta.url))
  const modules = readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
    .sort()

  test('is found', () => {
    expect(modules.length).toBeGreaterThan(30)
  })

  test.each(modules)('%s loads', async (name) => {
    expect(typeof (await import(`${root}${name}`))).toBe('object')
  })
})
