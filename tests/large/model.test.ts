import { expect, test } from 'vitest'
import { lineOf, rareEffects, useModel } from '../model/check.ts'
import { memoryStore, serverStore } from '../support/stores.ts'

const check = useModel([memoryStore, serverStore])

test('in 20,000 sequences of commands, or as many as three minutes hold, Postgres and the memory store do what the model does', async () => {
  const checked = await check({
    project: 'large',
    file: 'tests/large/model.test.ts',
    sequences: 20_000,
    withinMs: 180_000,
  })

  console.log(lineOf(checked))
  if (!checked.isRepeated) expect(rareEffects(checked, 3)).toEqual([])
})
