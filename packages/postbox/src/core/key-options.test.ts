import { describe, expect, test } from 'vitest'
import {
  assertKeyDecision,
  type KeyCursor,
  keyCursorText,
  readKeyCursor,
  resolveKeyList,
} from './key-options.ts'

const refusal = (says: string, code = 'OUTBOX_INVALID_OPTION') =>
  expect.objectContaining({ code, message: expect.stringContaining(says) })

describe('resolveKeyList', () => {
  test('takes everything for granted but the queue', () => {
    expect(resolveKeyList({ queue: 'orders' })).toEqual({
      queue: 'orders',
      state: null,
      limit: 50,
      after: null,
    })
    expect(resolveKeyList({ queue: 'orders', blocked: true }).state).toBeNull()
  })

  test('gives back what was asked for', () => {
    const given = { queue: 'orders', blocked: 'parked', limit: 200, after: 'r-5-6' } as const

    expect(resolveKeyList(given)).toEqual({
      ...{ queue: 'orders', state: 'parked', limit: 200 },
      after: { state: 'retrying', dueMicros: '5', seq: '6' },
    })
  })

  test.each([
    [undefined, 'give { queue }'],
    ['orders', 'give { queue }'],
    [{ queue: 'orders', blocked: false }, "to be 'parked', 'retrying', or true for both, got `false`"],
    [{ queue: 'orders', blocked: 'dead' }, 'or true for both'],
    [{ queue: 'orders', limit: 0 }, 'from 1 to 200'],
    [{ queue: 'orders', after: 7 }, 'expected `after` to be a string'],
    [{ queue: 'orders', afer: 'x' }, 'did you mean `after`?'],
  ])('refuses %j', (given, says) => {
    expect(() => resolveKeyList(given as never)).toThrow(refusal(says))
  })

  test.each([[{}], [{ queue: '' }], [{ queue: 7 }]])('refuses %j, which names no queue', (given) => {
    expect(() => resolveKeyList(given as never)).toThrow(refusal('`queue`', 'OUTBOX_INVALID_QUEUE'))
  })
})

describe('assertKeyDecision', () => {
  const right = { queue: 'orders', key: 'a', options: { by: 'ann' } }

  test('takes a queue, a key and who decides', () => {
    expect(() => assertKeyDecision('skip', right)).not.toThrow()
  })

  test.each([
    [{ key: '' }, '`key` to be a non-empty string'],
    [{ key: undefined }, '`key` to be a non-empty string'],
    [{ key: 'é'.repeat(513) }, 'at most 1024 bytes'],
    [{ options: undefined }, 'expected the options of skip to be an object'],
    [{ options: {} }, '`by` to be a non-empty string'],
    [{ options: { by: '' } }, '`by` to be a non-empty string'],
    [{ options: { by: 'a'.repeat(256) } }, 'at most 255 bytes'],
    [{ options: { by: 'ann', delayMs: 5 } }, 'unknown option `delayMs`'],
  ])('refuses %j', (wrong, says) => {
    expect(() => assertKeyDecision('skip', { ...right, ...wrong } as never)).toThrow(refusal(says))
  })

  test('refuses what is no queue with a code of its own', () => {
    expect(() => assertKeyDecision('resume', { ...right, queue: '' })).toThrow(
      refusal('`queue`', 'OUTBOX_INVALID_QUEUE'),
    )
  })
})

test.each<KeyCursor>([
  { state: 'parked', key: 'customer-7' },
  { state: 'parked', key: `a~b%c/d?e=f&g #'"\\ 😀` },
  { state: 'parked', key: 'r-1-2' },
  { state: 'parked', key: 'x'.repeat(1024) },
  { state: 'retrying', dueMicros: '1767225603123456', seq: '9223372036854775807' },
])('a cursor comes back from its text as it was, and needs no escaping in a URL: %j', (cursor) => {
  const text = keyCursorText(cursor)

  expect(readKeyCursor(text)).toEqual(cursor)
  expect(encodeURIComponent(text)).toBe(text)
})

test.each([
  [''],
  ['garbage'],
  ['p-'],
  ['p-~'],
  ['p-~ZZ'],
  ['p-~00'],
  ['r-1'],
  ['r-1-'],
  ['r-1-1.5'],
  ['r-1-9223372036854775808'],
  ['1767225603123456-d-1'],
])('what is no cursor is refused with its value: %j', (given) => {
  expect(() => readKeyCursor(given)).toThrow(refusal('`after`'))
})
