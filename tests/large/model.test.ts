// As ../integration/model.test.ts, thousands of times.
import { describe, expect, test } from 'vitest'
import type { StorageModes } from '../../packages/postbox/src/core/storage-modes.ts'
import { lineOf, rareEffects, useModel } from '../model/check.ts'
import { effectsOfMoving } from '../model/tally.ts'
import { memoryStore, pgliteStore, serverStore } from '../support/stores.ts'

const options = { project: 'large', file: 'tests/large/model.test.ts' }
const kept: StorageModes = { deadLetters: 'in-place', delivered: 'table' }

describe('in any sequence of commands', () => {
  const check = useModel([memoryStore, serverStore])

  test('Postgres and the memory store do what the model does, in 20,000 of them or as many as three minutes hold', async () => {
    const checked = await check({ ...options, sequences: 20_000, withinMs: 180_000 })

    console.log(lineOf(checked))
    if (!checked.isRepeated) expect(rareEffects(checked, 3)).toEqual([])
  })
})

describe('in any sequence of commands, with dead letters kept in place and delivered messages kept', () => {
  const check = useModel([memoryStore, serverStore], kept)

  test('Postgres and the memory store do what the model does, in 10,000 of them or as many as two minutes hold', async () => {
    const checked = await check({ ...options, sequences: 10_000, withinMs: 120_000 })

    console.log(lineOf(checked))
    if (!checked.isRepeated) expect(rareEffects(checked, 1, effectsOfMoving)).toEqual([])
  })
})

describe('in any sequence of commands, in the process itself', () => {
  const check = useModel([pgliteStore])

  test('PGlite does what the model does, in 500 of them', async () => {
    await check({ ...options, sequences: 500, withinMs: null })
  })
})
