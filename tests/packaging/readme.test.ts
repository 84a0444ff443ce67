import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { startPostgres } from '@postbox/embedded'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { commandLimitMs } from '../support/run-command.ts'
import { type InstalledPackage, installPackage, lend, repository, run, write } from './installed-package.ts'

let installed: InstalledPackage
let postgres: Awaited<ReturnType<typeof startPostgres>>

beforeAll(async () => {
  installed = await installPackage()
  lend(installed.project, ['pg', '@types/pg', 'zod', 'typescript', '@types/node'])
  postgres = await startPostgres()
})

afterAll(async () => {
  await postgres?.stop()
  installed?.remove()
})

test('the first example of the readme compiles, prints what its comments say and ends on SIGTERM', async () => {
  const example = firstExample(readFileSync(join(repository, 'README.md'), 'utf8'))
  const promised = promisedLines(example)
  const file = write(installed.project, 'example.ts', example)

  const flags = ['--strict', '--target', 'es2022', '--module', 'nodenext', '--types', 'node']
  await run('tsc', { args: [...flags, '--ignoreConfig', '--outDir', 'out', file], cwd: installed.project })
  const { output, code } = await runExample(promised)

  expect(promised).not.toEqual([])
  expect(output.split('\n')).toEqual(expect.arrayContaining([...promised]))
  expect(code, output).toBe(0)
})

function firstExample(markdown: string): string {
  const example = markdown.match(/^```(?:ts|typescript)\b[^\n]*\n([\s\S]*?)^```/m)?.[1]
  if (example === undefined) throw new Error('README.md has no ```ts block')
  return example
}

/** A comment `// prints: text` in the example promises that line on standard output. */
function promisedLines(example: string): readonly string[] {
  return [...example.matchAll(/\/\/ prints: (.*)$/gm)].map(([, line = '']) => line.trimEnd())
}

/** Sends SIGTERM once everything promised was printed; gives up after a while, so that the output can be shown. */
async function runExample(promised: readonly string[]): Promise<{ output: string; code: number | null }> {
  const child = spawn(process.execPath, ['out/example.js'], {
    cwd: installed.project,
    env: { ...process.env, DATABASE_URL: postgres.url },
  })
  const closed = once(child, 'close')
  const surrender = setTimeout(() => child.kill('SIGKILL'), commandLimitMs)
  let output = ''
  let isAsked = false
  const read = (chunk: Buffer): void => {
    output += chunk.toString()
    const printed = output.split('\n')
    if (isAsked || !promised.every((line) => printed.includes(line))) return
    isAsked = true
    child.kill('SIGTERM')
  }
  child.stdout.on('data', read)
  child.stderr.on('data', read)
  await closed
  clearTimeout(surrender)
  return { output, code: child.exitCode }
}
