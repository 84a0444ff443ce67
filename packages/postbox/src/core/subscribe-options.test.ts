import { describe, expect, test } from 'vitest'
import { resolveSubscribeOptions } from './subscribe-options.ts'

const invalid = expect.objectContaining({ code: 'OUTBOX_INVALID_OPTION' })

describe('resolveSubscribeOptions', () => {
  test('fills the documented defaults', () => {
    expect(resolveSubscribeOptions(undefined)).toEqual({
      name: undefined,
      concurrency: 10,
      leaseMs: 30_000,
      pollMs: { min: 20, max: 5_000 },
    })
  })

  test('the subscription goes before the outbox, the outbox before the defaults', () => {
    const base = resolveSubscribeOptions({ concurrency: 3, leaseMs: 5_000 })

    expect(resolveSubscribeOptions({ concurrency: 7 }, base)).toMatchObject({
      concurrency: 7,
      leaseMs: 5_000,
    })
  })

  test('the result is frozen', () => {
    expect(Object.isFrozen(resolveSubscribeOptions({}))).toBe(true)
  })

  test.each([
    { concurrency: 1, leaseMs: 1_000, pollMs: { min: 1, max: 1 }, name: 'x' },
    {
      concurrency: 10_000,
      leaseMs: 86_400_000,
      pollMs: { min: 3_600_000, max: 3_600_000 },
      name: 'é'.repeat(127),
    },
  ])('accepts its limits (case %#)', (options) => {
    expect(resolveSubscribeOptions(options)).toEqual(options)
  })

  test.each([
    { concurrency: 0 },
    { concurrency: 10_001 },
    { concurrency: 1.5 },
    { concurrency: '8' },
    { leaseMs: 999 },
    { leaseMs: 86_400_001 },
    { name: '' },
    { name: 'é'.repeat(128) },
    { pollMs: 20 },
    { pollMs: null },
    { pollMs: {} },
    { pollMs: { min: 0, max: 5 } },
    { pollMs: { min: 5, max: 3_600_001 } },
    { pollMs: { min: 6, max: 5 } },
    { concurency: 5 },
    null,
  ])('refuses what lies outside them (case %#)', (options) => {
    expect(() => resolveSubscribeOptions(options as never)).toThrow(invalid)
  })

  test('says which end of the ladder is wrong', () => {
    const act = (pollMs: object) => () => resolveSubscribeOptions({ pollMs } as never)

    expect(act({ min: 0, max: 5 })).toThrow(
      /expected `pollMs\.min` to be a whole number from 1 to 3600000, got `0`/,
    )
    expect(act({ min: 1 })).toThrow(/expected `pollMs\.max` to be a whole number/)
    expect(act({ min: 6, max: 5 })).toThrow(/expected `pollMs` to have `min` not above `max`/)
  })
})
