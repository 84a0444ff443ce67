import { expect, test } from 'vitest'
import { Tally } from '../contenders/tally.ts'
import { refuseMiscount } from './stage.ts'

function tallyOf(messages: number, ...handled: readonly number[]): readonly string[] {
  const tally = new Tally(messages)
  for (const n of handled) tally.add(n)
  return [tally.toText()]
}

test('a run that lost or repeated a message is refused', () => {
  expect(() => refuseMiscount(tallyOf(2, 0, 1))).not.toThrow()
  expect(() => refuseMiscount(tallyOf(2, 0))).toThrow('1 messages were not handled')
  expect(() => refuseMiscount(tallyOf(2, 0, 1, 1))).toThrow('1 more than once')
})

test('messages that are not waited for may be missing, and no others, and none may come twice', () => {
  expect(() => refuseMiscount(tallyOf(3, 0, 1), 1, 1)).not.toThrow()
  expect(() => refuseMiscount(tallyOf(3, 0), 1, 1)).toThrow('2 messages were not handled')
  expect(() => refuseMiscount(tallyOf(3, 0, 0), 1, 2)).toThrow('1 more than once')
})
