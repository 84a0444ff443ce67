import { afterAll, beforeAll, expect, test } from 'vitest'
import { usePrograms } from '../chaos/processes.ts'
import { checkHistory } from '../ordering/check-history.ts'
import { type LoggedServer, startLoggedServer } from '../ordering/logged-server.ts'
import { describeVerdict } from '../ordering/report.ts'
import { play } from '../ordering/scenario.ts'
import { chosenSeed, heavy } from '../ordering/settings.ts'

const programs = usePrograms()
let server: LoggedServer

beforeAll(async () => {
  server = await startLoggedServer()
})

afterAll(async () => {
  await server[Symbol.asyncDispose]()
})

test('of an ordered queue every message is delivered, per key in the order of commits and one at a time, whatever becomes of processes', async () => {
  const seed = chosenSeed()
  console.log(`POSTBOX_HISTORY_SEED=${seed}`)
  const played = await play(server, programs, { ...heavy, seed, queue: { order: 'key' }, say: console.log })
  const verdict = checkHistory(played.history)
  const summary = describeVerdict(played, verdict)
  console.log(summary)
  expect(verdict.violations, summary).toEqual([])
})
