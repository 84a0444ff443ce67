import { setTimeout as wait } from 'node:timers/promises'
import type { Contender, Settings } from '../contenders/catalogue.ts'
import type { Behaviour, Consumed, Spent } from '../contenders/protocol.ts'
import { Stretch } from '../contenders/stretch.ts'
import { miscountOf } from '../contenders/tally.ts'
import type { BenchDatabase, Spending } from './database.ts'
import type { Metrics } from './metrics.ts'
import { type Player, type Program, startPlayer } from './player.ts'

/** A contender, its tuning, and a database of its own. */
export interface Stage {
  readonly contender: Contender
  readonly settings: Settings
  readonly database: BenchDatabase
  readonly program: Program
  /** When it aborts, its processes are killed and the run fails. */
  readonly signal: AbortSignal
}

export function enter({ program, contender, settings, database, signal }: Stage): Promise<Player> {
  const { name, driver, isTransactional } = contender
  return startPlayer(program, { name, driver, isTransactional, settings, url: database.url }, signal)
}

/** In a process that is gone afterwards, with its connections. */
export async function play<T>(stage: Stage, work: (player: Player) => Promise<T>): Promise<T> {
  await using player = await enter(stage)
  const result = await work(player)
  await player.tell('stop', null)
  return result
}

const slice = 1_000

export interface Published {
  readonly perSecond: number
  readonly costs: Metrics
  readonly walBytes: number
}

/** `already`: messages that are there, and stay. */
export async function publishMany(stage: Stage, messages: number, already = 0): Promise<Published> {
  const work = (player: Player): Promise<Spent> => player.tell('publishMany', { messages, slice })
  return publishing({ ...stage, already }, messages, work)
}

export async function publishing(
  stage: Stage & { readonly already?: number },
  messages: number,
  work: (player: Player) => Promise<Spent>,
): Promise<Published> {
  const { database, contender, already = 0 } = stage
  await database.query('checkpoint')
  const before = await database.spent()
  const { perSecond, nodeCpuMs } = await play(stage, work)
  const after = await database.spent()
  const [row] = await database.query<{ count: number }>(contender.unfinished)
  const there = row!.count - already
  if (there !== messages) throw new Error(`${there} of ${messages} messages were published`)
  const costs = { ...costsOf({ before, after, messages }), nodeCpuUs: (nodeCpuMs * 1_000) / messages }
  return { perSecond, costs, walBytes: after.walBytes - before.walBytes }
}

export interface DrainInput {
  readonly messages: number
  readonly processes?: number
  readonly behaviour?: Behaviour
  /** How often each is handled. */
  readonly times?: number
  /** Messages have one of so many, and come in order within each. */
  readonly keys?: number
  /** Messages that are not due and stay. */
  readonly left?: number
  /** A drain that takes longer is given up. */
  readonly deadlineMs?: number
}

export interface Drained {
  readonly perSecond: number
  readonly costs: Metrics
  readonly walBytes: number
}

/** Until every message is handled, and the database says that all of them are done. */
export async function drain(stage: Stage, input: DrainInput): Promise<Drained> {
  const { messages, processes = 1, behaviour = { kind: 'nothing' }, times = 1, keys } = input
  const { database } = stage
  // No checkpoint here: the first change of each page after one writes the whole page, which is a cost of checkpoints and of nobody's design.
  await database.query('vacuum analyze')
  const before = await database.spent()
  const players = await Promise.all(Array.from({ length: processes }, () => enter(stage)))
  try {
    await Promise.all(players.map((player) => player.tell('openConsumer', null)))
    const stretch = new Stretch(messages * times, performance.now())
    const what = { messages, behaviour, ...(keys !== undefined && { keys }) }
    await Promise.all(players.map((player) => player.tell('consume', what)))
    await untilDone(stage, players, { ...input, stretch })
    const perSecond = stretch.perSecond(performance.now()) / times
    const consumed = await Promise.all(players.map((player) => player.tell('stop', null)))
    refuseMiscount(
      consumed.map(({ tally }) => tally),
      times,
    )
    refuseDisorder(consumed)
    const after = await database.spent()
    const costs = { ...costsOf({ before, after, messages }), ...memoryAndCpu(consumed, messages) }
    return { perSecond, costs, walBytes: after.walBytes - before.walBytes }
  } finally {
    await Promise.all(players.map((player) => player.kill()))
  }
}

export async function untilDone(
  { database, contender, signal }: Stage,
  players: readonly Player[],
  {
    messages,
    times = 1,
    left = 0,
    deadlineMs = 180_000,
    stretch,
  }: DrainInput & { readonly stretch?: Stretch },
): Promise<void> {
  const deadline = performance.now() + deadlineMs
  const handledNow = (): number => players.reduce((sum, { handled }) => sum + handled, 0)
  const pause = async (ms: number): Promise<void> => {
    signal.throwIfAborted()
    stretch?.see(handledNow(), performance.now())
    if (performance.now() > deadline)
      throw new Error(`${handledNow()} of ${messages * times} deliveries came within ${deadlineMs} ms`)
    await wait(ms)
  }
  while (handledNow() < messages * times) await pause(2)
  for (;;) {
    const [row] = await database.query<{ count: number }>(contender.unfinished)
    if (row!.count === left) return
    await pause(1)
  }
}

/** `late`: so many may be missing, for they are not lost, but not waited for. */
export function refuseMiscount(tallies: readonly string[], times = 1, late = 0): void {
  const miscount = miscountOf(tallies, times)
  if (miscount === null || (miscount.repeated === 0 && miscount.missing === late)) return
  throw new Error(`${miscount.missing} messages were not handled, ${miscount.repeated} more than once`)
}

function refuseDisorder(consumed: readonly Consumed[]): void {
  const disordered = consumed.reduce((sum, one) => sum + one.disordered, 0)
  if (disordered > 0) throw new Error(`${disordered} messages came after a later one of their key`)
}

interface Between {
  readonly before: Spending
  readonly after: Spending
  readonly messages: number
}

/** Per message. */
function costsOf({ before, after, messages }: Between): Metrics {
  const of = (name: keyof Spending): number | null => {
    const [from, to] = [before[name], after[name]]
    return from === null || to === null ? null : (to - from) / messages
  }
  const cpu = of('databaseCpuMs')
  const updates = of('updates')!
  return {
    statements: of('statements'),
    transactions: of('transactions'),
    walBytes: of('walBytes'),
    deadRows: of('deadRows'),
    hotShare: updates === 0 ? null : of('hotUpdates')! / updates,
    databaseCpuUs: cpu === null ? null : cpu * 1_000,
  }
}

function memoryAndCpu(consumed: readonly Consumed[], messages: number): Metrics {
  const sum = (pick: (one: Consumed) => number): number =>
    consumed.reduce((total, one) => total + pick(one), 0)
  return {
    nodeCpuUs: (sum(({ nodeCpuMs }) => nodeCpuMs) * 1_000) / messages,
    peakRssMb: sum(({ peakRssMb }) => peakRssMb),
    peakHeapMb: sum(({ peakHeapMb }) => peakHeapMb),
  }
}
