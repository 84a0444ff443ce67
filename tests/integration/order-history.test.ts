import { afterAll, beforeAll, expect, test } from 'vitest'
import { usePrograms } from '../chaos/processes.ts'
import { checkHistory } from '../ordering/check-history.ts'
import { type LoggedServer, startLoggedServer } from '../ordering/logged-server.ts'
import { countByRule, describeVerdict } from '../ordering/report.ts'
import { play } from '../ordering/scenario.ts'
import { chosenSeed, light } from '../ordering/settings.ts'
import { longTestLimitMs } from '../support/patience.ts'

const programs = usePrograms()
let server: LoggedServer

beforeAll(async () => {
  server = await startLoggedServer()
})

afterAll(async () => {
  await server[Symbol.asyncDispose]()
})

test(
  'of an ordered queue every message is delivered, per key in the order of commits and one at a time, though a process is killed',
  async () => {
    const seed = chosenSeed()
    const played = await play(server, programs, { ...light, seed, queue: { order: 'key' } })
    const verdict = checkHistory(played.history)
    const summary = `POSTBOX_HISTORY_SEED=${seed}\n${describeVerdict(played, verdict)}`
    expect(verdict.violations, summary).toEqual([])
  },
  longTestLimitMs,
)

test(
  'the checker finds out an unordered queue, and that it loses nothing',
  async () => {
    const seed = chosenSeed()
    const played = await play(server, programs, { ...light, messages: 300, kills: 0, seed, queue: {} })
    const verdict = checkHistory(played.history)
    const summary = `POSTBOX_HISTORY_SEED=${seed}\n${describeVerdict(played, verdict)}`
    expect(Object.keys(countByRule(verdict.violations)).sort(), summary).toEqual([
      'disorder',
      'overlap',
      'overtaking',
      'return',
    ])
  },
  longTestLimitMs,
)
