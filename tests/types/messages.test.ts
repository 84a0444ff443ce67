import { beforeAll, describe, expect, test } from 'vitest'
import type { Diagnostic } from './compile.ts'
import { compile } from './compile.ts'
import { mistakes, prelude } from './mistakes.ts'

const titles = Object.keys(mistakes)
const preludeLines = prelude.split('\n').length - 1

let diagnostics: ReadonlyMap<string, readonly Diagnostic[]>

// One run of the compiler for all; it takes a second or two.
beforeAll(async () => {
  const named = titles.map((title): [string, string] => [fileName(title), prelude + mistakes[title]])
  diagnostics = await compile(new Map([['nothing-wrong', prelude], ...named]))
})

describe('the compiler', () => {
  test('accepts what stands before each mistake', () => {
    expect(diagnostics.get('nothing-wrong')).toEqual([])
  })

  test.each(titles)('reports %s once, where it was made, in few words', (title) => {
    const found = diagnosticsOf(title)

    expect(found).toHaveLength(1)
    expect(found[0]!.line).toBeGreaterThan(preludeLines)
    // The first line must fit three lines of a terminal; the whole map of queues, printed twice, never does.
    expect(found[0]!.message.split('\n', 1)[0]!.length).toBeLessThan(380)
    expect(found[0]!.message).not.toMatch(/BodiesOf|exactOptionalPropertyTypes|'never'/)
  })

  // To accept a change: npx vitest run --config tests/vitest.config.ts --project unit tests/types --update
  test('prints for each mistake what messages.snap.md promises', async () => {
    await expect(report()).toMatchFileSnapshot('./messages.snap.md')
  })
})

function report(): string {
  const sections = titles.map((title) => `## ${title}\n\n\`\`\`\n${printed(title)}\n\`\`\`\n`)
  const head =
    'What the compiler prints for typical mistakes. Written by messages.test.ts; `^` is where it points to.'
  return `# Messages\n\n${head}\n\n${sections.join('\n')}`
}

/** Under its line of code, as an editor would show it. */
function printed(title: string): string {
  const code = mistakes[title]!.split('\n')
  for (const { line, column, message } of diagnosticsOf(title).toReversed()) {
    code.splice(line - preludeLines, 0, `${' '.repeat(column - 1)}^ ${message}`)
  }
  return code.join('\n')
}

function diagnosticsOf(title: string): readonly Diagnostic[] {
  return diagnostics.get(fileName(title))!
}

function fileName(title: string): string {
  return title.toLowerCase().replaceAll(/[^a-z]+/g, '-')
}
