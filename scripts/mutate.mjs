// Takes each guard of scripts/mutations.mjs out in turn, in a copy of the tree, and expects a test to fail.
//   node scripts/mutate.mjs                 all of them
//   node scripts/mutate.mjs --only renewal  those whose name contains the text; may be given several times
//   node scripts/mutate.mjs --update        all of them, then docs/reference/guards.md
//   node scripts/mutate.mjs --check         runs nothing: whether every guard is still where it was, and on the page
import { spawn } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { mutations } from './mutations.mjs'
import { guardsPage, rowOf, rowStart, tableOf } from './mutations-page.mjs'
import { linkModules } from './mutations-scratch.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const page = join(root, 'docs/reference/guards.md')
const lastPage = existsSync(page) ? readFileSync(page, 'utf8') : ''
const flags = process.argv.slice(2)
const chosen = mutations.filter(isChosen)
// A test that waits for ever would else keep the whole run.
const longestMs = 120_000
const longestOfAllMs = 900_000
// Many a guard is noticed by waiting in vain: with the patience of `npm test`, which is for slow machines, that would take a multiple.
const testLimitMs = 20_000
const impatient = { POSTBOX_WAIT_LIMIT_MS: '10000' }

const problems = [...mutations.flatMap(problemsOf), ...repeated(mutations.map(({ name }) => name))]
if (problems.length > 0) refuse(problems)
if (chosen.length === 0) refuse([`no guard has "${valuesOf('--only').join('" or "')}" in its name`])
if (flags.includes('--update') && chosen.length < mutations.length)
  refuse(['--update needs all guards: leave --only out'])
if (flags.includes('--check')) checkPage()
else await mutateAll()

function isChosen({ name }) {
  const wanted = valuesOf('--only')
  return wanted.length === 0 || wanted.some((text) => name.includes(text))
}

function valuesOf(flag) {
  return flags.flatMap((given, index) => (given === flag ? [flags[index + 1] ?? ''] : []))
}

/** What is wrong with a mutation before anything was run: a guard that moved would be missed without a word. */
function problemsOf({ name, file, find, replace, tests }) {
  const path = join(root, file)
  const count = existsSync(path) ? readFileSync(path, 'utf8').split(find).length - 1 : 0
  return [
    ...(count === 1 ? [] : [`${name}: its text occurs ${count} times in ${file}, not once`]),
    ...(find === replace ? [`${name}: changes nothing`] : []),
    ...(tests.length > 0 ? [] : [`${name}: names no test`]),
    ...tests.filter((test) => !existsSync(join(root, test))).map((test) => `${name}: there is no ${test}`),
  ]
}

function repeated(names) {
  return names.filter((name, index) => names.indexOf(name) !== index).map((name) => `${name}: twice`)
}

function refuse(reasons) {
  for (const reason of reasons) console.error(reason)
  process.exit(1)
}

/** Who notices is known only to a run; which guards there are, and where, is compared. */
function checkPage() {
  const rows = lastPage.split('\n').filter((line) => line.startsWith('| ') && !line.startsWith('| guard '))
  const missing = mutations.filter((mutation) => !rows.some((row) => row.startsWith(rowStart(mutation))))
  if (missing.length > 0 || rows.length !== mutations.length)
    refuse(['docs/reference/guards.md does not list these guards: npm run mutate -- --update'])
  console.log(`${mutations.length} guards are where they were.`)
}

async function mutateAll() {
  const startedAt = performance.now()
  // Where the temporary folder is a link, the copy must have one name all the same: modules are told apart by it.
  const copy = mkdtempSync(join(realpathSync(tmpdir()), 'postbox-mutate-'))
  process.once('exit', () => rmSync(copy, { recursive: true, force: true }))
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))
  const { startPostgres } = await import(new URL('../packages/embedded/dist/index.js', import.meta.url).href)
  const postgres = await startPostgres({ settings: { fsync: 'off', max_connections: '200' } })
  try {
    copyTree(copy)
    await assertGreen(copy, postgres.url)
    const results = []
    for (const mutation of chosen) results.push(await tryOne(copy, postgres.url, mutation))
    conclude(results, performance.now() - startedAt)
  } finally {
    await postgres.stop()
  }
}

function copyTree(copy) {
  const left = /^(node_modules|\.git|dist|coverage|tmp|.*\.tsbuildinfo)$/
  cpSync(root, copy, { recursive: true, filter: (source) => !left.test(source.split(/[\\/]/).at(-1) ?? '') })
  linkModules(join(root, 'node_modules'), join(copy, 'node_modules'))
}

/** Without a mutation everything passes, or a failure would prove nothing. */
async function assertGreen(copy, url) {
  const tests = [...new Set(chosen.flatMap((mutation) => mutation.tests))]
  console.log(`Running ${tests.length} test files without a mutation …`)
  const run = await vitest(copy, url, { tests, more: ['--maxWorkers=100%'], limitMs: longestOfAllMs })
  console.log(`${run.isGreen ? 'They pass' : 'They do not pass'}, in ${seconds(run.ms)}.\n`)
  if (!run.isGreen)
    refuse(run.failed.length > 0 ? run.failed.map(({ title, file }) => `${file}: ${title}`) : [run.output])
}

async function tryOne(copy, url, mutation) {
  const path = join(copy, mutation.file)
  const original = readFileSync(path, 'utf8')
  const startedAt = performance.now()
  writeFileSync(path, original.split(mutation.find).join(mutation.replace))
  const verdict = await sureVerdict(mutation, async () =>
    verdictOf(await vitest(copy, url, { tests: mutation.tests, more: narrowed(mutation), given: impatient })),
  )
  writeFileSync(path, original)
  const result = { mutation, ...verdict, ms: performance.now() - startedAt }
  const progress = `${String(chosen.indexOf(mutation) + 1).padStart(3)}/${chosen.length}`
  const how = result.by === null ? '' : ` by "${result.by.title}"`
  console.log(`${progress}  ${mutation.name}: ${result.verdict} in ${seconds(result.ms)}${how}`)
  return result
}

/**
 * A test may fail for a reason of its own, on a busy machine say. One that the page does not name for this guard has to fail a second time;
 * three different ones are no proof of anything.
 */
async function sureVerdict(mutation, attempt) {
  const titles = new Set()
  for (let tries = 1; ; tries++) {
    const result = await attempt()
    if (result.verdict !== 'killed') return result
    if (lastPage.includes(rowOf({ mutation, by: result.by })) || titles.has(result.by.title)) return result
    if (tries === 3) return { verdict: 'UNSURE', by: result.by }
    titles.add(result.by.title)
  }
}

function narrowed({ titled, timeoutMs = testLimitMs }) {
  return [
    ...['--bail=1', '--maxWorkers=1'],
    ...(titled === undefined ? [] : ['-t', titled]),
    `--testTimeout=${timeoutMs}`,
  ]
}

/** Red without a failing test is no proof: the file did not load, or the run was broken off. */
function verdictOf({ isGreen, failed: [first], output }) {
  if (isGreen) return { verdict: 'SURVIVED', by: null }
  if (first !== undefined) return { verdict: 'killed', by: first }
  console.error(output)
  return { verdict: 'BROKEN', by: null }
}

async function vitest(copy, url, { tests, more, limitMs = longestMs, given = {} }) {
  const report = join(copy, 'report.json')
  rmSync(report, { force: true })
  const startedAt = performance.now()
  const program = join(copy, 'node_modules/vitest/vitest.mjs')
  const projects = [...new Set(tests.map(projectOf))].flatMap((project) => ['--project', project])
  const args = [
    ...['run', '--config', 'tests/vitest.config.ts', ...projects, ...tests.map((test) => join(copy, test))],
    ...['--reporter=json', `--outputFile=${report}`, ...more],
  ]
  const env = { ...process.env, ...given, DATABASE_URL: url, POSTGRES_BIN: '' }
  const options = { cwd: copy, env, timeout: limitMs, stdio: ['ignore', 'pipe', 'pipe'] }
  const { code, output } = await spawned(process.execPath, [program, ...args], options)
  const files = existsSync(report) ? JSON.parse(readFileSync(report, 'utf8')).testResults : []
  return {
    isGreen: code === 0,
    failed: failedTests(copy, files),
    output: [output, ...files.map(({ message }) => message)].join('\n').trim(),
    ms: performance.now() - startedAt,
  }
}

function projectOf(test) {
  return /^tests\/(integration|conformance|chaos)\//.test(test) ? 'integration' : 'unit'
}

function spawned(command, args, options) {
  return new Promise((resolve) => {
    const child = spawn(command, args, options)
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (data) => {
        output += data
      })
    const kill = () => child.kill()
    process.once('exit', kill)
    child.once('close', (code) => {
      process.removeListener('exit', kill)
      resolve({ code, output })
    })
  })
}

function failedTests(copy, files) {
  return files.flatMap(({ name, assertionResults }) =>
    assertionResults
      .filter(({ status }) => status === 'failed')
      .map(({ fullName }) => ({ title: fullName.trim(), file: name.slice(copy.length + 1) })),
  )
}

function conclude(results, ms) {
  const wrong = results.filter(({ verdict }) => verdict !== 'killed')
  console.log(`\n${tableOf(results)}\n`)
  console.log(
    `${results.length - wrong.length} of ${results.length} guards were taken out and noticed, in ${seconds(ms)}.`,
  )
  for (const { mutation, verdict } of wrong) console.error(`${verdict}: ${mutation.guard} (${mutation.file})`)
  if (wrong.length > 0) process.exitCode = 1
  else if (flags.includes('--update')) update(results)
}

function update(results) {
  writeFileSync(page, guardsPage(results))
  console.log('Wrote docs/reference/guards.md.')
}

function seconds(ms) {
  return `${(ms / 1000).toFixed(1)} s`
}
