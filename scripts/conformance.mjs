// Checks that every scenario has an answer in tests/conformance/README.md, and that the tests it names have run.
//   node scripts/conformance.mjs                   the form alone
//   node scripts/conformance.mjs <report.json>...  and the titles, in reports of `vitest run --reporter=json`
//   --in <folder>                                  another folder with README.md and scenario-ids.json
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const kinds = ['proved', 'later', 'not applicable']

const { values, positionals: reports } = parseArgs({
  options: { in: { type: 'string' } },
  allowPositionals: true,
})
const folder = values.in ?? fileURLToPath(new URL('../tests/conformance', import.meta.url))
const ids = knownIds(JSON.parse(readFileSync(join(folder, 'scenario-ids.json'), 'utf8')))
const tables = readTables(readFileSync(join(folder, 'README.md'), 'utf8'))
const answers = tables
  .filter(({ head }) => head[0] === 'id')
  .flatMap(({ section, rows }) =>
    rows.map(([id, , answer]) => ({ section, id, ...readAnswer(answer ?? '') })),
  )

const problems = [
  ...problemsOfIds(),
  ...answers.flatMap(problemsOfForm),
  ...problemsOfLists(),
  ...problemsOfTitles(),
]
printTable()
for (const problem of problems) console.error(problem)
if (problems.length > 0) process.exitCode = 1

/** `{ "U-SCH": 12 }` is U-SCH-01 to U-SCH-12. */
function knownIds(counts) {
  return Object.entries(counts).flatMap(([prefix, count]) =>
    Array.from({ length: count }, (_, index) => `${prefix}-${String(index + 1).padStart(2, '0')}`),
  )
}

function readTables(markdown) {
  const tables = []
  let section = ''
  let table = null
  for (const line of markdown.split('\n')) {
    if (line.startsWith('## ')) section = line.slice(3).trim()
    if (!line.startsWith('|')) table = null
    else if (table === null) {
      table = { section, head: cellsOf(line), rows: [] }
      tables.push(table)
    } else if (!/^\|[\s|:-]+$/.test(line)) table.rows.push(cellsOf(line))
  }
  return tables
}

function cellsOf(line) {
  const cells = line
    .trim()
    .slice(1)
    .split(/(?<!\\)\|/)
  return cells.map((cell) => cell.trim().replaceAll('\\|', '|'))
}

/** The forms of an answer: titles, each behind its file or below another title of the same one; `later: …`; `not applicable: …`. */
function readAnswer(text) {
  const later = /^later: (.+)$/.exec(text)
  if (later) return { text, kind: 'later', word: later[1] }
  const notApplicable = /^not applicable: (.+)$/.exec(text)
  if (notApplicable) return { text, kind: 'not applicable', word: notApplicable[1] }
  let file
  const titles = []
  for (const piece of text.split('<br>')) {
    const proof = /^(?:`([^`]+\.test\.ts)` )?› "(.+)"$/.exec(piece.trim())
    file = proof?.[1] ?? file
    if (proof === null || file === undefined) return { text, kind: 'unknown' }
    titles.push({ file, title: proof[2] })
  }
  return { text, kind: 'proved', titles }
}

function problemsOfIds() {
  const answered = answers.map(({ id }) => id)
  const twice = answered.filter((id, index) => answered.indexOf(id) !== index)
  return [
    ...ids.filter((id) => !answered.includes(id)).map((id) => `${id} has no answer`),
    ...answered.filter((id) => !ids.includes(id)).map((id) => `${id} is no scenario`),
    ...[...new Set(twice)].map((id) => `${id} is answered twice`),
  ]
}

function problemsOfForm({ id, kind, word, text }) {
  if (kind === 'unknown') return [`${id} has an answer of no known form: ${text || 'none'}`]
  if (kind === 'later' && !listed('milestone').includes(word))
    return [`${id} waits for an unknown milestone: ${word}`]
  if (kind === 'not applicable' && !listed('reason').includes(word))
    return [`${id} has an unknown reason: ${word}`]
  return []
}

function problemsOfLists() {
  const words = answers.map(({ word }) => word)
  return ['milestone', 'reason'].flatMap((list) =>
    listed(list)
      .filter((word) => !words.includes(word))
      .map((word) => `the ${list} ${word} is used by no answer`),
  )
}

function listed(head) {
  return tables.filter((table) => table.head[0] === head).flatMap(({ rows }) => rows.map(([word]) => word))
}

function problemsOfTitles() {
  if (reports.length === 0) return []
  const runs = reports.flatMap((report) =>
    JSON.parse(readFileSync(report, 'utf8')).testResults.flatMap(runsOfFile),
  )
  return answers.flatMap(({ id, titles = [] }) =>
    titles.flatMap(({ file, title }) => {
      const problem = problemOfTitle(runs, file, title)
      return problem === null ? [] : [`${id}: ${file} › "${title}" ${problem}`]
    }),
  )
}

function runsOfFile({ name, assertionResults }) {
  const path = name.replaceAll('\\', '/')
  return assertionResults.map(({ ancestorTitles, title, status }) => {
    return { path, title: [...ancestorTitles, title].join(' › '), status }
  })
}

/** A test may run several times, on several servers: once it must have passed, and never failed. */
function problemOfTitle(runs, file, title) {
  const inFile = runs.filter(({ path }) => path.endsWith(`/${file}`))
  if (inFile.length === 0) return 'did not run: the file is in no report'
  if (new Set(inFile.map(({ path }) => path)).size > 1)
    return 'is ambiguous: several files are called like this'
  const pattern = patternOf(title)
  const statuses = new Map()
  for (const { title: whole, status } of inFile.filter((run) => pattern.test(run.title))) {
    statuses.set(whole, [...(statuses.get(whole) ?? []), status])
  }
  if (statuses.size === 0) return 'did not run: there is no such title'
  const each = [...statuses.values()]
  if (each.some((of) => of.includes('failed'))) return 'failed'
  return each.every((of) => of.includes('passed')) ? null : 'was skipped'
}

/** The end of a test's whole name, from the name of some `describe` on. `…` stands for anything: all such tests are meant. */
function patternOf(title) {
  const parts = title.split('…').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`(?:^| › )${parts.join('.*')}$`, 's')
}

function printTable() {
  const sections = [...new Set(answers.map(({ section }) => section))]
  const width = Math.max(0, ...sections.map((section) => section.length))
  for (const section of sections) {
    const counts = kinds.map((kind) => `${String(countOf(kind, section)).padStart(4)} ${kind}`)
    console.log(`${section.padEnd(width)}${counts.join(' ')}`)
  }
  if (reports.length === 0) console.log('No report was given: whether the tests ran was not asked.')
  const total = kinds.map((kind) => `${countOf(kind)} ${kind}`).join(', ')
  console.log(`conformance: ${total}, of ${ids.length} scenarios`)
}

function countOf(kind, section) {
  return answers.filter((answer) => answer.kind === kind && (section ?? answer.section) === answer.section)
    .length
}
