// The promises of an outbox as a pure function (tests/model/reducer.ts), and everything that keeps messages held to it.
import { describe, expect, test } from 'vitest'
import { lineOf, rareEffects, useModel } from '../model/check.ts'
import { effectsOfMoving } from '../model/tally.ts'
import { memoryStore, pgliteStore, serverStore } from '../support/stores.ts'

const options = { project: 'integration', file: 'tests/integration/model.test.ts', withinMs: null }
// Finding the shortest sequence that fails takes a multiple of what the sequences take.
const timeoutMs = 300_000

describe('in any sequence of commands', () => {
  const check = useModel([memoryStore, serverStore])

  test(
    'Postgres and the memory store answer as the model does, and hold what it holds',
    async () => {
      const checked = await check({ ...options, sequences: 250 })

      console.log(lineOf(checked))
      // A sequence in which nothing meets proves nothing.
      if (!checked.isRepeated) expect(rareEffects(checked, 3)).toEqual([])
    },
    timeoutMs,
  )
})

describe('in any sequence of commands, with dead letters kept in place and delivered messages kept', () => {
  const check = useModel([memoryStore, serverStore], { deadLetters: 'in-place', delivered: 'table' })

  test(
    'Postgres and the memory store answer as the model does, and every delivered message is kept once',
    async () => {
      const checked = await check({ ...options, sequences: 250 })

      console.log(lineOf(checked))
      if (!checked.isRepeated) expect(rareEffects(checked, 1, effectsOfMoving)).toEqual([])
    },
    timeoutMs,
  )
})

describe('in any sequence of commands, in the process itself', () => {
  const check = useModel([pgliteStore])

  test(
    'PGlite answers as the model does, and holds what it holds',
    async () => {
      await check({ ...options, sequences: 20 })
    },
    timeoutMs,
  )
})
