// The scenarios of ../integration/interleaving.test.ts with more sessions, and with time that passes whenever it likes: tens of thousands of orders.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Bench, openBench } from '../interleaving/bench.ts'
import { chosenOrder, runChosen } from '../interleaving/chosen-order.ts'
import { cursorScenario, cursorTwin } from '../interleaving/cursor.ts'
import { type Explored, explore, shortestViolation } from '../interleaving/explore.ts'
import { largeScenarios } from '../interleaving/scenarios.ts'
import { tableOf, transcriptOf } from '../interleaving/transcript.ts'
import { rewriteOf } from '../interleaving/twin.ts'
import { useDatabase } from '../support/database.ts'

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

    test.each(largeScenarios.map((scenario) => [scenario.title, scenario] as const))(
      '%s',
      async (_, scenario) => {
        const found = await explore(bench, scenario)
        explored.push(found)

        const [first] = found.violated
        expect(first === undefined ? '' : transcriptOf(scenario.key, first)).toBe('')
        expect(found.run).toBeGreaterThan(0)
        expect(found.run + found.impossible).toBe(found.orders)
      },
    )
  },
)

test.skipIf(chosenOrder !== null)(
  'an order shows why a cursor waits for every transaction older than the claim, not than its snapshot',
  async () => {
    const run = await shortestViolation(bench, cursorScenario, rewriteOf(cursorTwin))

    expect(run?.violation?.promise).toBe(cursorTwin.promise)
    console.log(transcriptOf(cursorTwin.key, run!))
  },
)

test.runIf(chosenOrder !== null)('the order that POSTBOX_ORDER names breaks no promise', async () => {
  const { transcript, run } = await runChosen(bench, largeScenarios)
  console.log(transcript)

  expect(run.violation).toBeNull()
})
