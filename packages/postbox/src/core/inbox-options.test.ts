import { describe, expect, test } from 'vitest'
import { nextLookMs, type OnceOptions, resolveOnce } from './inbox-options.ts'

const work = (): void => {}
const message = { consumer: 'billing', id: 'order-1' }

test('somebody else is waited for a second, unless told otherwise', () => {
  expect(resolveOnce(message, work)).toEqual({ ...message, lockMs: 1_000 })
  expect(resolveOnce({ ...message, lockMs: undefined }, work).lockMs).toBe(1_000)
  expect(resolveOnce({ ...message, lockMs: 0 }, work).lockMs).toBe(0)
})

test.each([
  ['one byte', 'x'],
  ['1,024 bytes', 'x'.repeat(1_024)],
  ['1,024 bytes in half as many letters', 'ü'.repeat(512)],
  ['quotes, backslashes and blanks', ` '"\\ \n\t$1`],
  ['an emoji', '🚚'],
])('an id may be any text: %s', (_, id) => {
  expect(resolveOnce({ ...message, id }, work).id).toBe(id)
})

test.each<[string, unknown, readonly string[]]>([
  ['nothing', undefined, ['expected the message to handle once to be an object, got `undefined`']],
  ['an id alone', 'order-1', ['the message to handle once to be an object', '"order-1"']],
  ['no consumer and no id', {}, ['`consumer` to be a non-empty string', '`id` to be a non-empty string']],
  ['an empty id', { ...message, id: '' }, ['`id` to be a non-empty string']],
  ['a number for an id', { ...message, id: 7 }, ['`id` to be a non-empty string, got `7`']],
  ['an id with a NUL', { ...message, id: 'a\0' }, ['`id` to be storable text', 'NUL']],
  ['an id with half an emoji', { ...message, id: '\ud83d' }, ['`id` to be storable text', 'surrogate']],
  [
    'an id of 1,025 bytes',
    { ...message, id: `${'ü'.repeat(512)}x` },
    ['`id` to be at most 1024 bytes long; pass a hash of it'],
  ],
  [
    'a consumer of 256 bytes',
    { ...message, consumer: 'x'.repeat(256) },
    ['`consumer` to be at most 255 bytes'],
  ],
  ['a negative wait', { ...message, lockMs: -1 }, ['`lockMs` to be a whole number from 0 to 3600000']],
  ['a wait for ever', { ...message, lockMs: Number.POSITIVE_INFINITY }, ['`lockMs`']],
  ['a misspelt wait', { ...message, lockMS: 1 }, ['did you mean `lockMs`?']],
])('%s is refused', (_, given, says) => {
  const attempt = (): unknown => resolveOnce(given as OnceOptions, work)

  for (const sentence of says) expect(attempt).toThrow(sentence)
  expect(attempt).toThrow(expect.objectContaining({ code: 'OUTBOX_INVALID_OPTION' }))
})

test('work that is no function is refused, along with everything else', () => {
  expect(() => resolveOnce({ ...message, id: '' }, Promise.resolve())).toThrow(
    /`id` to be a non-empty string.*; expected `work` to be a function, got `Promise`/,
  )
})

describe('looking again', () => {
  test('is soon at first, and then ten times a second', () => {
    expect([1, 2, 3, 4, 5, 6, 7, 99].map((looks) => nextLookMs(looks, 10_000))).toEqual([
      5, 10, 20, 40, 80, 100, 100, 100,
    ])
  })

  test('happens a last time when the time is over, and then no more', () => {
    expect([nextLookMs(6, 30), nextLookMs(7, 0), nextLookMs(1, 0), nextLookMs(1, -5)]).toEqual([
      30,
      null,
      null,
      null,
    ])
  })
})
