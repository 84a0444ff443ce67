import { expect, test } from 'vitest'
import { bodyOf } from './driver.ts'
import { miscountOf, OrderCheck, Tally } from './tally.ts'

function tallyOf(messages: number, ...handled: readonly number[]): string {
  const tally = new Tally(messages)
  for (const n of handled) tally.add(n)
  return tally.toText()
}

test('nothing is wrong when each message was handled once, by whichever process', () => {
  expect(miscountOf([tallyOf(4, 0, 1, 2, 3)])).toBeNull()
  expect(miscountOf([tallyOf(4, 0, 3), tallyOf(4, 2, 1)])).toBeNull()
})

test('a message that was not handled and one that was handled twice are both found, though the sum is right', () => {
  expect(miscountOf([tallyOf(3, 0, 1, 1)])).toEqual({ missing: 1, repeated: 1 })
  expect(miscountOf([tallyOf(2, 0, 1), tallyOf(2, 1)])).toEqual({ missing: 0, repeated: 1 })
})

test('messages that are to fail twice have to be handled three times', () => {
  expect(miscountOf([tallyOf(2, 0, 0, 0, 1, 1, 1)], 3)).toBeNull()
  expect(miscountOf([tallyOf(2, 0, 0, 0, 1, 1)], 3)).toEqual({ missing: 1, repeated: 0 })
})

test('a message that comes after a later one of its key is found, one of another key is not', () => {
  const order = new OrderCheck(2)
  for (const n of [0, 3, 2, 1, 4, 5]) order.see(n)
  expect(order.disordered).toBe(1)
})

test('a message that was handled is told from one that was not', () => {
  const tally = new Tally(2)
  tally.add(1)
  expect([tally.has(0), tally.has(1)]).toEqual([false, true])
})

test('adding tells how often the message has been handled', () => {
  const tally = new Tally(2)
  expect([tally.add(1), tally.add(1), tally.add(0)]).toEqual([1, 2, 1])
  expect(tally.handled).toBe(3)
})

test.each([[bodyOf(0)], [bodyOf(999_999)], [bodyOf(5, 1_800_000_000_000)]])(
  'a body has 256 bytes',
  (body) => {
    expect(Buffer.byteLength(JSON.stringify(body))).toBe(256)
  },
)
