// All orders of a scenario, or of a broken twin until the shortest order that shows it is found.
import type { Bench } from './bench.ts'
import { countBeginning, firstOrder, nextOrder, nextOtherwise, type Order } from './orders.ts'
import { type Run, runOrder } from './run-order.ts'
import type { Rewrite } from './session.ts'
import type { Scenario } from './terms.ts'

export interface Explored {
  readonly scenario: Scenario
  /** All merges of the programs, by the formula. */
  readonly orders: number
  readonly run: number
  /** Those that give a turn to somebody who waits. */
  readonly impossible: number
  /** Of those that were run: somebody had to wait. */
  readonly waited: number
  /** How often each error was told. */
  readonly failures: ReadonlyMap<string, number>
  /** Which kinds of answers came, that a scenario can be seen to show what it is for. */
  readonly told: ReadonlySet<string>
  readonly violated: readonly Run[]
}

export async function explore(bench: Bench, scenario: Scenario): Promise<Explored> {
  const first = firstOrder(lengthsOf(scenario))
  const counts = { run: 0, impossible: 0, waited: 0 }
  const failures = new Map<string, number>()
  const told = new Set<string>()
  const violated: Run[] = []
  for (let order: Order | null = first; order !== null; ) {
    const run: Run = await runOrder(bench, scenario, { order })
    if (run.impossibleAt !== null) {
      counts.impossible += countBeginning(order, run.impossibleAt + 1)
      order = nextOtherwise(order, run.impossibleAt + 1)
      continue
    }
    counts.run++
    if (finishedOf(run).some(({ waited }) => waited)) counts.waited++
    for (const one of finishedOf(run).flatMap((finished) => finished.told)) {
      told.add(one.kind)
      if (one.kind === 'failed') failures.set(one.sqlState, (failures.get(one.sqlState) ?? 0) + 1)
    }
    if (run.violation !== null) violated.push(run)
    order = nextOrder(order)
  }
  await bench.reset({ given: [] })
  return { scenario, orders: countBeginning(first, 0), ...counts, failures, told, violated }
}

/** The run that breaks a promise after the fewest steps; null: none does. */
export async function shortestViolation(
  bench: Bench,
  scenario: Scenario,
  rewrite: Rewrite,
): Promise<Run | null> {
  const before = bench.world.rewrite
  bench.world.rewrite = rewrite
  try {
    return await searched(bench, scenario)
  } finally {
    bench.world.rewrite = before
    await bench.reset({ given: [] })
  }
}

async function searched(bench: Bench, scenario: Scenario): Promise<Run | null> {
  let shortest: Run | null = null
  let limit = Object.values(scenario.programs).flat().length
  for (let order: Order | null = firstOrder(lengthsOf(scenario)); order !== null && limit > 0; ) {
    const run: Run = await runOrder(bench, scenario, { order, limit })
    if (run.violation !== null) {
      shortest = run
      limit = run.lines.length - 1
    }
    order = nextOtherwise(order, run.impossibleAt === null ? limit : run.impossibleAt + 1)
  }
  return shortest
}

function finishedOf({ lines }: Run) {
  return lines.flatMap(({ finished }) => finished)
}

function lengthsOf({ programs }: Scenario): ReadonlyMap<string, number> {
  return new Map(Object.entries(programs).map(([letter, steps]) => [letter, steps.length]))
}
