// Two or three sessions on the same messages, in every order in which their steps can be mixed (see ../interleaving/run-order.ts).
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Bench, openBench } from '../interleaving/bench.ts'
import { chosenOrder, runChosen } from '../interleaving/chosen-order.ts'
import { type Explored, explore, shortestViolation } from '../interleaving/explore.ts'
import { scenarios } from '../interleaving/scenarios.ts'
import { tableOf, transcriptOf } from '../interleaving/transcript.ts'
import { rewriteOf } from '../interleaving/twin.ts'
import { twins } from '../interleaving/twins.ts'
import { useDatabase } from '../support/database.ts'
import { longTestLimitMs } from '../support/patience.ts'

const database = useDatabase()
let bench: Bench

beforeAll(async () => {
  bench = await openBench(database)
})

describe.skipIf(chosenOrder !== null)(
  'whatever the order of their steps, the tables hold what the sessions were told:',
  () => {
    const explored: Explored[] = []
    afterAll(() => console.log(`${tableOf(explored)}\n`))

    test.each(scenarios.map((scenario) => [scenario.title, scenario] as const))(
      '%s',
      async (_, scenario) => {
        const found = await explore(bench, scenario)
        explored.push(found)

        const [first] = found.violated
        expect(first === undefined ? '' : transcriptOf(scenario.key, first)).toBe('')
        expect(found.run).toBeGreaterThan(0)
        expect(found.run + found.impossible).toBe(found.orders)
      },
      longTestLimitMs,
    )
  },
)

describe.skipIf(chosenOrder !== null)('an order shows what happens when this is not so:', () => {
  test.each(twins.filter(({ redundant }) => !redundant).map((twin) => [twin.guard, twin] as const))(
    '%s',
    async (_, twin) => {
      const run = await shortestViolation(bench, scenarioOf(twin.scenario), rewriteOf(twin))

      expect(run?.violation?.promise).toBe(twin.promise)
      expect(transcriptOf(twin.key, run!)).toMatchSnapshot()
    },
    longTestLimitMs,
  )
})

describe.skipIf(chosenOrder !== null)('no order needs it that', () => {
  test.each(
    twins.filter(({ redundant }) => redundant).map((twin) => [twin.guard, twin.redundant, twin] as const),
  )(
    '%s: %s',
    async (_guard, _reason, twin) => {
      const run = await shortestViolation(bench, scenarioOf(twin.scenario), rewriteOf(twin))

      expect(run === null ? '' : transcriptOf(twin.key, run)).toBe('')
    },
    longTestLimitMs,
  )
})

test.runIf(chosenOrder !== null)('the order that POSTBOX_ORDER names breaks no promise', async () => {
  const { transcript, run } = await runChosen(bench, scenarios)
  console.log(transcript)

  expect(run.violation).toBeNull()
})

function scenarioOf(key: string): (typeof scenarios)[number] {
  const scenario = scenarios.find((one) => one.key === key)
  if (scenario === undefined) throw new Error(`there is no scenario ${key}`)
  return scenario
}
