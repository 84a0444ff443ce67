// A guide shows the files of an example, which are run as their reader would run them.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { runCommand } from '../support/run-command.ts'

const repository = join(import.meta.dirname, '..', '..')

export interface Run {
  readonly status: number | null
  readonly output: string
}

/** A command of npm, in the folder of an example. */
export async function npmIn(example: string, ...args: readonly string[]): Promise<Run> {
  const { NODE_OPTIONS: _, VITEST: __, ...env } = process.env
  const cwd = join(repository, 'examples', example)
  const { status, stdout, stderr } = await runCommand('npm', { args, cwd, env })
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colours are control characters
  return { status, output: `${stdout}${stderr}`.replaceAll(/\u001b\[\d+m/g, '') }
}

/** Each file of an example is on the page of its name, as it is. */
export function expectShown(example: string): void {
  const guide = readFileSync(join(repository, 'docs', 'guides', `${example}.md`), 'utf8')
  const shown = [...guide.matchAll(/^```(?:ts|sql)\n([\s\S]*?)^```/gm)].map(([, code]) => code)
  const files = readdirSync(join(repository, 'examples', example, 'src'))
  for (const file of files) {
    const code = readFileSync(join(repository, 'examples', example, 'src', file), 'utf8')
    const comment = file.endsWith('.sql') ? '--' : '//'
    expect(shown, file).toContain(`${comment} ${file}\n${code}`)
  }
  // Nor is there one that nobody runs.
  expect(shown).toHaveLength(files.length)
}
