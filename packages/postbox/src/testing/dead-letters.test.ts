import { describe, expect, onTestFinished, test } from 'vitest'
import { TerminalError } from '../index.ts'
import { createTestOutbox } from './create-test-outbox.ts'

describe.each(['sync', 'loop'] as const)(
  'many dead letters, in mode %s, on a clock that stands still',
  (mode) => {
    async function withDead(deadLetters: 'table' | 'in-place') {
      const box = await createTestOutbox({ logger: false, deadLetters }, { mode })
      onTestFinished(box.dispose)
      let runs = 0
      box.outbox.subscribe('orders', () => {
        runs++
        throw new TerminalError('no')
      })
      for (const n of [1, 2]) await box.outbox.publishNow('orders', n)
      await box.drain()
      return { box, letters: box.outbox.deadLetters, runs: () => runs }
    }

    test.each(['table', 'in-place'] as const)(
      'are replayed once each, though they die again in the same moment (%s)',
      async (deadLetters) => {
        const { box, letters, runs } = await withDead(deadLetters)
        const replayed = await letters.replayAll({}, { by: 'ann' })
        await box.drain()

        expect(replayed).toMatchObject({ replayed: 2, finished: true })
        expect(runs()).toBe(4)
        expect(await letters.count()).toEqual({ count: 2, atLeast: false })
      },
    )

    test.each(['table', 'in-place'] as const)('are discarded (%s)', async (deadLetters) => {
      const { letters } = await withDead(deadLetters)

      expect(await letters.discard({}, { by: 'ann' })).toMatchObject({ discarded: 2 })
      expect(await letters.count()).toEqual({ count: 0, atLeast: false })
    })
  },
)
