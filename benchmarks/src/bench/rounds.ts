import type { Budget } from './budget.ts'
import type { Part } from './cast.ts'
import type { Line, Metrics, Result } from './metrics.ts'
import { costsOf, type Heat, messagesOf, partsIn, startSeconds } from './plan.ts'
import type { Program } from './player.ts'
import { startPlayer } from './player.ts'
import type { Progress } from './progress.ts'
import type { Scenario } from './scenario.ts'
import type { BenchServer } from './server.ts'

export interface Plan {
  readonly heats: readonly Heat[]
  readonly isQuick: boolean
  readonly budget: Budget | null
  /** Of the messages. */
  readonly share: number
}

export interface Show {
  readonly server: BenchServer
  readonly program: Program
  readonly plan: Plan
  readonly progress: Progress
  /** Ends everything: the run was interrupted. */
  readonly interrupted: AbortSignal
  /** Ends the run that is on: the time is over. */
  readonly timeOver: AbortSignal
}

interface Cell {
  readonly part: Part
  readonly messages: number[]
  readonly rounds: Metrics[]
  readonly refused: string[]
}

type Board = Map<Scenario, readonly Cell[]>

/** All contenders in turn: a machine that is busy for a while is so for all. */
export async function runHeats(show: Show): Promise<readonly Result[]> {
  const { heats, isQuick, budget } = show.plan
  const costs = heats.map((heat) => costsOf(heat, isQuick))
  const board: Board = new Map(
    heats.map(({ scenario: { cast }, scenario }) => [
      scenario,
      cast.map((part): Cell => ({ part, messages: [], rounds: [], refused: [] })),
    ]),
  )
  for (const [index, heat] of heats.entries()) {
    const isBegun = heats[index - 1]?.round === heat.round
    const share = budget === null ? 1 : budget.shareFor(costs.slice(index), isBegun)
    if (share === null) break
    const parts = partsIn(heat)
    for (const cell of board.get(heat.scenario)!.filter(({ part }) => parts.includes(part)))
      await runCell(show, { heat, cell, share: share * show.plan.share })
  }
  show.progress.close()
  return [...board].map(([scenario, cells]) => resultOf(scenario, cells, isQuick))
}

interface Turn {
  readonly heat: Heat
  readonly cell: Cell
  readonly share: number
}

async function runCell(show: Show, { heat: { scenario }, cell, share }: Turn): Promise<void> {
  const { progress, interrupted } = show
  const { isQuick, budget } = show.plan
  const { contender, tuning } = cell.part
  const what = `${scenario.name}: ${contender.name}, ${tuning}`
  const messages = Math.max(1, Math.round(messagesOf(scenario, cell.part, isQuick) * share))
  progress.begin(what)
  const startedAt = performance.now()
  const outcome = await runOnce(show, { scenario, cell, messages })
  interrupted.throwIfAborted()
  const expected = startSeconds + scenario.seconds(cell.part, messages)
  budget?.learn(expected, (performance.now() - startedAt) / 1_000)
  progress.end(`${what}: ${outcome}`)
}

interface Once {
  readonly scenario: Scenario
  readonly cell: Cell
  readonly messages: number
}

/** A contender that loses or repeats a message, or fails, has no figure in this round; the others have theirs. */
async function runOnce(show: Show, { scenario, cell, messages }: Once): Promise<string> {
  const { server, program } = show
  const { contender, tuning, settings } = cell.part
  const signal = AbortSignal.any([show.interrupted, show.timeOver])
  const { name, driver, isTransactional } = contender
  const casting = { name, driver, isTransactional, settings }
  try {
    signal.throwIfAborted()
    await using database = await server.database(`${name} ${tuning}`, async (url) => {
      await using player = await startPlayer(program, { ...casting, url }, signal)
      await player.tell('setup', null)
      await player.tell('stop', null)
    })
    const metrics = await scenario.run({ program, contender, settings, database, signal }, messages)
    cell.rounds.push(metrics)
    cell.messages.push(messages)
    return `${metrics[scenario.figure]?.toFixed(1)} ${scenario.figure}`
  } catch (error) {
    const reason = show.timeOver.aborted ? 'no time was left' : firstLine(error)
    cell.refused.push(reason)
    return `not reported: ${reason}`
  }
}

function firstLine(error: unknown): string {
  return String(error instanceof Error ? error.message : error).split('\n')[0]!
}

function resultOf(scenario: Scenario, cells: readonly Cell[], isQuick: boolean): Result {
  const { name, title, about, figure, isMoreBetter, cannot = {}, cast, isPublishing = false } = scenario
  const wanted = Math.max(...cast.map((part) => messagesOf(scenario, part, isQuick)))
  const lines = cells.map(({ part, messages, rounds, refused }): Line => {
    const isGivenFewer = messagesOf(scenario, part, isQuick) < wanted
    const { contender, tuning, settings } = part
    return { contender: contender.name, tuning, settings, messages, isGivenFewer, rounds, refused }
  })
  return { scenario: name, title, about, figure, isMoreBetter, isPublishing, cannot, lines }
}
