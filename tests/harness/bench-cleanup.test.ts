// What a benchmark leaves behind on somebody's server: nothing, however it ends.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { beforeEach, expect, inject, test } from 'vitest'
import { tuned } from '../../benchmarks/src/bench/cast.ts'
import type { Program } from '../../benchmarks/src/bench/player.ts'
import { Progress } from '../../benchmarks/src/bench/progress.ts'
import { runHeats } from '../../benchmarks/src/bench/rounds.ts'
import type { Scenario } from '../../benchmarks/src/bench/scenario.ts'
import { startBenchServer } from '../../benchmarks/src/bench/server.ts'
import { enter } from '../../benchmarks/src/bench/stage.ts'
import { isRunning } from '../support/operating-system.ts'
import { signal } from '../support/signals.ts'

// A contender that sets up and stops, tells its process id as its progress, and never answers anything else.
const script = `
  process.on('message', ({ id, name }) => {
    if (name === 'setup' || name === 'stop') process.send({ kind: 'answer', id, output: null })
    else process.send({ kind: 'progress', handled: process.pid })
  })
  process.on('disconnect', () => process.exit(0))
  process.send({ kind: 'ready' })`

interface Somebody {
  /** A database of theirs, empty. */
  readonly url: string
  readonly program: Program
  databases(): Promise<readonly string[]>
}

let somebody: Somebody

beforeEach(async ({ onTestFinished }) => {
  const admin = new pg.Client({ connectionString: inject('postgresUrl') })
  await admin.connect()
  const name = `somebody_${process.pid}`
  await admin.query(`create database ${name}`)
  const folder = await mkdtemp(join(tmpdir(), 'postbox-bench-'))
  const file = join(folder, 'contender.mjs')
  await writeFile(file, script)
  onTestFinished(async () => {
    await admin.query(`drop database ${name} with (force)`)
    await admin.end()
    await rm(folder, { recursive: true })
  })
  const url = new URL(inject('postgresUrl'))
  url.pathname = name
  somebody = {
    url: url.href,
    program: { node: process.execPath, script: file },
    async databases() {
      const text = `select datname as name from pg_database where datname like 'postbox_bench_%'`
      return (await admin.query<{ name: string }>(text)).rows.map((row) => row.name)
    },
  }
})

interface Ends {
  readonly interrupted?: AbortSignal
  readonly timeOver?: AbortSignal
}

async function runScenario(run: Scenario['run'], { interrupted, timeOver }: Ends): Promise<unknown> {
  await using server = await startBenchServer(somebody.url)
  const scenario: Scenario = {
    ...{ name: 'hang', title: 'Hang', about: '', figure: 'perSecond', isMoreBetter: true, quick: null },
    ...{ cast: tuned('postbox', 'floor'), messages: 1, seconds: () => 1, run },
  }
  const never = new AbortController().signal
  return await runHeats({
    server,
    program: somebody.program,
    plan: { heats: [{ scenario, round: 0 }], isQuick: false, budget: null, share: 1 },
    progress: new Progress(2),
    interrupted: interrupted ?? never,
    timeOver: timeOver ?? never,
  })
}

const hung = signal<number>('a contender hangs')

/** Until its process is killed. */
const hang: Scenario['run'] = async (stage) => {
  await using player = await enter(stage)
  const answer = player.tell('publishMany', { messages: 1, slice: 1 })
  const watch = setInterval(() => player.handled > 0 && hung.send(player.handled), 5)
  await answer.finally(() => clearInterval(watch))
  return {}
}

test('an interrupted run drops the databases that it made, and kills its processes', async () => {
  const controller = new AbortController()
  const run = runScenario(hang, { interrupted: controller.signal })
  const pid = await hung.wait()
  expect(isRunning(pid)).toBe(true)
  // One is copied, one is run on.
  expect(await somebody.databases()).toHaveLength(2)
  controller.abort(new Error('interrupted'))
  await expect(run).rejects.toThrow('interrupted')
  expect(isRunning(pid)).toBe(false)
  expect(await somebody.databases()).toEqual([])
})

test('a run whose time is over is not reported, nor are those that come after it, and nothing is left', async () => {
  const controller = new AbortController()
  const results = runScenario(
    async (stage) => {
      controller.abort()
      return hang(stage, 1)
    },
    { timeOver: controller.signal },
  )
  const refused = { rounds: [], refused: ['no time was left'] }
  expect(await results).toMatchObject([{ lines: [refused, refused] }])
  expect(await somebody.databases()).toEqual([])
})

test('a contender that fails is not reported, and leaves nothing', async () => {
  const results = runScenario(() => Promise.reject(new Error('3 messages were not handled')), {})
  const refused = { rounds: [], refused: ['3 messages were not handled'] }
  expect(await results).toMatchObject([{ lines: [refused, refused] }])
  expect(await somebody.databases()).toEqual([])
})

test('a contender that cannot set up its tables is told why in every round, and leaves nothing', async () => {
  await writeFile(somebody.program.script, `throw new Error('not for this server')`)
  const results = runScenario(hang, {})
  const refused = { rounds: [], refused: [expect.stringContaining('has ended')] }
  expect(await results).toMatchObject([{ lines: [refused, refused] }])
  expect(await somebody.databases()).toEqual([])
})

test('a database that is not empty is refused, and nothing is made', async () => {
  const client = new pg.Client({ connectionString: somebody.url })
  await client.connect()
  await client.query('create table theirs (id int)')
  await client.end()
  await expect(startBenchServer(somebody.url)).rejects.toThrow(
    'the database is not empty (it has public.theirs)',
  )
  expect(await somebody.databases()).toEqual([])
})
