import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, test } from 'vitest'

const script = fileURLToPath(new URL('../../scripts/conformance.mjs', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'postbox-conformance-'))
afterAll(() => rmSync(folder, { recursive: true }))

test('the answers of this project have the form that the script asks for', () => {
  expect(run([]).problems).toEqual([])
})

describe('the script counts', () => {
  test('answers by kind, in each section and of all, and says when no report was given', () => {
    const { printed, problems, status } = check(good)

    expect({ problems, status }).toEqual({ problems: [], status: 0 })
    expect(printed).toEqual([
      'First    2 proved    0 later    1 not applicable',
      'Second   0 proved    1 later    0 not applicable',
      'No report was given: whether the tests ran was not asked.',
      'conformance: 2 proved, 1 later, 1 not applicable, of 4 scenarios',
    ])
  })

  test('a title as run that has passed on one server and was skipped on another', () => {
    const { printed, problems } = check(good, [ran('passed'), ran('pending')])

    expect(problems).toEqual([])
    expect(printed).toEqual([
      expect.stringContaining('First'),
      expect.stringContaining('Second'),
      'conformance: 2 proved, 1 later, 1 not applicable, of 4 scenarios',
    ])
  })
})

describe('the script refuses, with status 1,', () => {
  test.each<[string, Change, string[]]>([
    [
      'an id without a row',
      ['| B-02 | of some day | later: Order |\n', ''],
      ['B-02 has no answer', 'the milestone Order is used by no answer'],
    ],
    ['an id that is unknown', ['| A-02 |', '| A-03 |'], ['A-02 has no answer', 'A-03 is no scenario']],
    ['an id twice', ['| B-01 |', '| A-01 |'], ['B-01 has no answer', 'A-01 is answered twice']],
    ['an empty answer', ['later: Order', ''], [noForm('none'), 'the milestone Order is used by no answer']],
    [
      'an answer in other words',
      ['later: Order', 'soon'],
      [noForm('soon'), 'the milestone Order is used by no answer'],
    ],
    [
      'an answer of two kinds',
      ['later: Order', '`x/a.test.ts` › "one"<br>later: Order'],
      [noForm('`x/a.test.ts` › "one"<br>later: Order'), 'the milestone Order is used by no answer'],
    ],
    [
      'a title without a file',
      ['later: Order', '› "one"'],
      [noForm('› "one"'), 'the milestone Order is used by no answer'],
    ],
    [
      'an unknown milestone',
      ['later: Order', 'later: Some day'],
      ['B-02 waits for an unknown milestone: Some day', 'the milestone Order is used by no answer'],
    ],
    [
      'an unknown reason',
      ['not applicable: python', 'not applicable: pythons'],
      ['B-01 has an unknown reason: pythons', 'the reason python is used by no answer'],
    ],
  ])('%s', (_, change, expected) => {
    const { problems, status } = check(good.replace(...change))

    expect(problems).toEqual(expected)
    expect(status).toBe(1)
  })

  test.each<[string, Change, string[]]>([
    [
      'a title that is in no report',
      ['"one"', '"won"'],
      ['A-01: x/a.test.ts › "won" did not run: there is no such title'],
    ],
    [
      'a part of a title',
      ['"one"', '"ne"'],
      ['A-01: x/a.test.ts › "ne" did not run: there is no such title'],
    ],
    [
      'a file that is in no report',
      ['`x/a.test.ts` › "case', '`x/b.test.ts` › "case'],
      ['A-02: x/b.test.ts › "case …" did not run: the file is in no report'],
    ],
    [
      'a file that may be either of two',
      ['`x/a.test.ts` › "case', '`a.test.ts` › "case'],
      ['A-02: a.test.ts › "case …" is ambiguous: several files are called like this'],
    ],
    [
      'a title of which one run was skipped everywhere',
      ['"one"', '"skipped …"'],
      ['A-01: x/a.test.ts › "skipped …" was skipped'],
    ],
  ])('%s', (_, change, expected) => {
    const { problems, status } = check(good.replace(...change), [ran('passed')])

    expect(problems).toEqual(expected)
    expect(status).toBe(1)
  })

  test('a title that passed on one server and failed on another', () => {
    const { problems, status } = check(good, [ran('passed'), ran('failed')])

    expect(problems).toEqual(['A-01: x/a.test.ts › "one" failed'])
    expect(status).toBe(1)
  })
})

type Change = [from: string, to: string]

const good = `# Answers

## First

| id | scenario | answer |
|---|---|---|
| A-01 | of one | \`x/a.test.ts\` › "one"<br>› "outer › of 1 \\| 2" |
| A-02 | of many | \`x/a.test.ts\` › "case …" |
| B-01 | of another language | not applicable: python |

## Second

| id | scenario | answer |
|---|---|---|
| B-02 | of some day | later: Order |

## Lists

| milestone | what |
|---|---|
| Order | order |

| reason | because |
|---|---|
| python | another language |
`

function noForm(answer: string): string {
  return `B-02 has an answer of no known form: ${answer}`
}

/** A report of vitest, as far as the script reads it, in which the test `one` came to this. */
function ran(one: 'passed' | 'failed' | 'pending'): object {
  const result = (title: string, status: string, ancestorTitles: string[] = []) => ({
    title,
    status,
    ancestorTitles,
  })
  const inA = [
    result('one', one, ['outer']),
    result('of 1 | 2', 'passed', ['outer']),
    result('case 1', 'passed'),
    result('case 2', 'passed'),
    result('skipped 1', 'passed'),
    result('skipped 2', 'pending'),
  ]
  return {
    testResults: [
      { name: '/somewhere/x/a.test.ts', assertionResults: inA },
      { name: '/somewhere/y/a.test.ts', assertionResults: [result('one', 'passed')] },
    ],
  }
}

function check(readme: string, reports: readonly object[] = []) {
  writeFileSync(join(folder, 'README.md'), readme)
  writeFileSync(join(folder, 'scenario-ids.json'), '{ "A": 2, "B": 2 }')
  const files = reports.map((report, index) => {
    const file = join(folder, `report-${index}.json`)
    writeFileSync(file, JSON.stringify(report))
    return file
  })
  return run(['--in', folder, ...files])
}

function run(args: readonly string[]) {
  const { stdout, stderr, status } = spawnSync(process.execPath, [script, ...args], { encoding: 'utf8' })
  return { printed: linesOf(stdout), problems: linesOf(stderr), status }
}

function linesOf(text: string): string[] {
  return text.split('\n').filter((line) => line !== '')
}
