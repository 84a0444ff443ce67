import { mkdir, rm, writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Budget, quickSeconds } from './budget.ts'
import { type Choice, chooseScenarios } from './choose.ts'
import { Interrupted, interruptible } from './interrupt.ts'
import { chartsOf, pageOf } from './page.ts'
import { installPeers } from './peers.ts'
import { costsOf, heatsOf, minutesOf, partsIn } from './plan.ts'
import { contenderProgram } from './player.ts'
import { Progress } from './progress.ts'
import { type Report, reportOf } from './report.ts'
import { runHeats } from './rounds.ts'
import { startBenchServer } from './server.ts'
import { refusals } from './tables.ts'
import { textOf } from './text.ts'

export interface BenchWish extends Choice {
  readonly isJson: boolean
  readonly rounds: number
  /** Of the messages: less than 1 to see that everything works. */
  readonly share: number
  /** A folder for the page of this run, whatever it is of. */
  readonly page: string | null
  /** An empty database of a server that databases may be made on; null: an embedded server. */
  readonly database: string | null
}

/** 1: a contender lost or repeated messages, and is not reported. Missed bars do not fail: time depends on the machine. */
export async function runBench(wish: BenchWish): Promise<number> {
  try {
    const report = await interruptible((signal) => measure(wish, signal))
    await keep(report)
    if (isWhole(wish)) await publish(report, new URL('docs/', root))
    if (wish.page !== null) await publish(report, pathToFileURL(`${resolve(wish.page)}/`))
    console.log(wish.isJson ? JSON.stringify(report, null, 2) : textOf(report))
    return refusals(report.results).length === 0 ? 0 : 1
  } catch (error) {
    console.error((error as Error).message)
    return error instanceof Interrupted ? error.exitCode : 1
  }
}

/** The page is about all of them: a part of the run must not take the place of the whole. */
function isWhole({ isQuick, only, peers, trials, share }: BenchWish): boolean {
  return !isQuick && only === null && peers === null && trials.length === 0 && share === 1
}

async function measure(wish: BenchWish, interrupted: AbortSignal): Promise<Report> {
  const { isQuick, rounds, share } = wish
  const startedAt = new Date()
  const heats = heatsOf({ scenarios: chooseScenarios(wish), rounds, isQuick })
  const peers = await installPeers((line) => console.error(line), interrupted)
  interrupted.throwIfAborted()
  const clock = secondsSinceNow()
  const timeOver = isQuick ? AbortSignal.timeout(quickSeconds.end * 1_000) : new AbortController().signal
  await using server = await startBenchServer(wish.database)
  const minutes = minutesOf(
    heats.map((heat) => costsOf(heat, isQuick)),
    share,
  )
  console.error(
    isQuick
      ? 'less than three minutes, with fewer messages and rounds where the machine is slow'
      : `about ${Math.ceil(minutes)} minutes on an idle machine`,
  )
  const budget = isQuick ? new Budget(quickSeconds.measure, clock) : null
  const plan = { heats, isQuick, budget, share }
  const progress = new Progress(heats.reduce((sum, heat) => sum + partsIn(heat).length, 0))
  const program = contenderProgram(peers.node)
  const results = await runHeats({ server, program, plan, progress, interrupted, timeOver })
  return reportOf({ startedAt, isQuick, peers, server, results })
}

function secondsSinceNow(): () => number {
  const startedAt = performance.now()
  return () => (performance.now() - startedAt) / 1_000
}

const root = new URL('../../../', import.meta.url)

async function keep(report: Report): Promise<void> {
  const folder = new URL('benchmarks/results/', root)
  await mkdir(folder, { recursive: true })
  const name = `${report.startedAt.slice(0, 19).replaceAll(':', '-')}-${report.mode}.json`
  await writeFile(new URL(name, folder), `${JSON.stringify(report, null, 2)}\n`)
  console.error(`kept in benchmarks/results/${name}`)
}

async function publish(report: Report, folder: URL): Promise<void> {
  const charts = new URL('benchmarks/', folder)
  await rm(charts, { recursive: true, force: true })
  await mkdir(charts, { recursive: true })
  for (const [name, svg] of chartsOf(report)) await writeFile(new URL(name, charts), svg)
  await writeFile(new URL('benchmarks.md', folder), pageOf(report))
}
