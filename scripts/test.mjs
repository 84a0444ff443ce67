// Runs the stages of `npm run check` (with the argument `check`) or of `npm test` (without): a heading for each, then
// a table, then one closing line. A failed stage does not stop the others, so that one run shows everything that is
// wrong; only stages that read the build are left out when there is none.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { delimiter, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findPostgres15 } from './postgres-15.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const reports = mkdtempSync(join(tmpdir(), 'postbox-test-'))

const shownFailures = 10
const shownLines = 8

const checkStages = [
  { name: 'format', command: 'npm run --silent format:check' },
  { name: 'lint', command: 'npm run --silent lint' },
  { name: 'types', command: 'npm run --silent types' },
  { name: 'dead code', command: 'knip --no-config-hints' },
  { name: 'guards', command: 'node scripts/mutate.mjs --check' },
  {
    name: 'unit tests',
    vitest: ['--config', 'tests/vitest.config.ts', '--project', 'unit', '--coverage', '--maxWorkers=100%'],
  },
]

const buildStage = { name: 'build', command: 'npm run --silent clean && npm run --silent build' }

// Three files at once on two cores: much of what they do is to wait, for processes and for leases to end. By itself vitest would leave a core idle.
const workers = Math.ceil(1.5 * availableParallelism())
const onPostgres = (project) => [
  '--config',
  'tests/vitest.config.ts',
  '--project',
  project,
  `--maxWorkers=${workers}`,
]
const integration = onPostgres('integration')

const fullStages = [
  ...checkStages,
  buildStage,
  { name: 'API report', needsBuild: true, command: 'npm run --silent api' },
  { name: 'generated docs', needsBuild: true, command: 'npm run --silent docs -- --check' },
  { name: 'test harness', vitest: onPostgres('harness') },
  // POSTGRES_BIN is emptied, so that a setting of the shell cannot turn this into a second run on something else.
  { name: 'integration, PostgreSQL 18', vitest: integration, env: { POSTGRES_BIN: '' } },
  postgres15Stage(),
  { name: 'conformance', command: conformanceCommand },
  { name: 'counters', needsBuild: true, command: 'node benchmarks/dist/main.js counters' },
  { name: 'examples', needsBuild: true, vitest: ['--config', 'tests/examples/vitest.config.ts'] },
  { name: 'packaging', needsBuild: true, vitest: ['--config', 'tests/packaging/vitest.config.ts'] },
]

const results = []
for (const stage of process.argv[2] === 'check' ? checkStages : fullStages) {
  console.log(`\n━━ ${stage.name} ${'━'.repeat(Math.max(0, 76 - stage.name.length))}\n`)
  const result = run(stage)
  console.log(`\n${stage.name}: ${result.verdict} in ${seconds(result.durationMs)}`)
  results.push(result)
}
rmSync(reports, { recursive: true, force: true })
showFailures()
summarise()

function postgres15Stage() {
  const name = 'integration, PostgreSQL 15'
  try {
    const folder = findPostgres15()
    if (folder !== undefined) return { name, vitest: integration, env: { POSTGRES_BIN: folder } }
    const reason =
      'no server of release 15 was found. On Debian: apt-get install postgresql-15; elsewhere set POSTGRES_15_BIN to the folder of its initdb and postgres'
    return { name, notRun: reason }
  } catch (error) {
    return { name, command: 'exit 1', note: error.message }
  }
}

function run(stage) {
  const startedAt = performance.now()
  const notRun = stage.notRun ?? (stage.needsBuild && buildFailed() ? 'there is no build' : undefined)
  if (notRun !== undefined) {
    console.log(`Not run: ${notRun}.`)
    return { name: stage.name, verdict: 'not run', passed: 0, failed: 0, note: notRun, durationMs: 0 }
  }
  const command = typeof stage.command === 'function' ? stage.command() : stage.command
  const isGreen = stage.vitest ? spawnVitest(stage) : spawnShell(command, stage.env)
  const counted = stage.vitest ? countTests(stage) : { passed: 0, failed: 0, skipped: 0 }
  return {
    name: stage.name,
    verdict: isGreen ? 'passed' : 'FAILED',
    durationMs: performance.now() - startedAt,
    note: stage.note ?? (counted.skipped > 0 ? `${counted.skipped} skipped` : ''),
    tests: stage.vitest ? counted.passed + counted.failed : undefined,
    passed: counted.passed,
    // A stage may fail without a failing test, e.g. by a lint error: it counts as one, so that a red run never
    // closes with "0 failed".
    failed: isGreen ? counted.failed : Math.max(1, counted.failed),
    failures: stage.vitest ? failuresOf(stage) : [],
  }
}

function buildFailed() {
  return results.some(({ name, verdict }) => name === buildStage.name && verdict === 'FAILED')
}

function spawnVitest(stage) {
  const json = `--outputFile.json="${reportOf(stage)}"`
  const command = ['vitest run', ...stage.vitest, '--reporter=default --reporter=json', json].join(' ')
  return spawnShell(command, stage.env)
}

function spawnShell(command, env = {}) {
  const path = `${join(root, 'node_modules/.bin')}${delimiter}${process.env.PATH}`
  const options = { cwd: root, shell: true, env: { ...process.env, ...env, PATH: path } }
  return spawnSync(command, { ...options, stdio: ['ignore', 'inherit', 'inherit'] }).status === 0
}

/** All reports so far: a title may come from the unit tests or from either server. */
function conformanceCommand() {
  const files = readdirSync(reports).map((file) => `"${join(reports, file)}"`)
  return `node scripts/conformance.mjs ${files.join(' ')}`
}

function countTests(stage) {
  if (!existsSync(reportOf(stage))) return { passed: 0, failed: 0, skipped: 0 }
  const report = JSON.parse(readFileSync(reportOf(stage), 'utf8'))
  const skipped = report.numPendingTests + report.numTodoTests
  // A test file that does not load has no tests to count, and is one failure.
  const hasFailedTest = ({ assertionResults }) => assertionResults.some(({ status }) => status === 'failed')
  const unloaded = report.testResults.filter(
    (file) => file.status === 'failed' && !hasFailedTest(file),
  ).length
  return { passed: report.numPassedTests, failed: report.numFailedTests + unloaded, skipped }
}

/** What failed, shortly: the log of a whole run is long, and often only its end is at hand. */
function failuresOf(stage) {
  if (!existsSync(reportOf(stage))) return []
  return JSON.parse(readFileSync(reportOf(stage), 'utf8')).testResults.flatMap((file) => {
    const path = relative(root, file.name)
    const tests = file.assertionResults.filter(({ status }) => status === 'failed')
    if (file.status === 'failed' && tests.length === 0) return [{ title: path, message: file.message }]
    return tests.map(({ fullName, failureMessages }) => ({
      title: `${path} > ${fullName}`,
      message: failureMessages.join('\n'),
    }))
  })
}

function reportOf(stage) {
  return join(reports, `${stage.name.replace(/\W+/g, '-')}.json`)
}

function showFailures() {
  for (const { name, failures = [] } of results) {
    if (failures.length > 0)
      console.log(`\n━━ failed: ${name} ${'━'.repeat(Math.max(0, 68 - name.length))}\n`)
    for (const { title, message } of failures.slice(0, shownFailures)) {
      console.log(
        `× ${title}\n${message.split('\n').slice(0, shownLines).join('\n').replaceAll(/^/gm, '    ')}\n`,
      )
    }
    if (failures.length > shownFailures) console.log(`… and ${failures.length - shownFailures} more`)
  }
}

function summarise() {
  const width = Math.max(...results.map(({ name }) => name.length))
  console.log(`\n━━ summary ${'━'.repeat(69)}\n`)
  for (const { name, verdict, durationMs, tests, note } of results) {
    const columns = [name.padEnd(width), verdict.padEnd(7), seconds(durationMs).padStart(8)]
    console.log(
      [...columns, tests === undefined ? '' : `${tests} ${tests === 1 ? 'test' : 'tests'}`.padStart(10), note]
        .join('  ')
        .trimEnd(),
    )
  }
  const total = (field) => results.reduce((sum, result) => sum + result[field], 0)
  if (results.some(({ verdict }) => verdict === 'FAILED')) process.exitCode = 1
  console.log(`\n${total('passed')} passed, ${total('failed')} failed`)
}

function seconds(ms) {
  return `${(ms / 1000).toFixed(1)} s`
}
