// What becomes of the first message of a key, in an ordered queue, when it fails for good.
import { describe, expect, test } from 'vitest'
import { leaseOf } from '../../../../tests/support/settlements.ts'
import { describeError } from './describe-error.ts'
import type { OpenOutcome } from './outcome.ts'
import { noRetry } from './retry.ts'
import { type FailingHead, type SettleRules, settle } from './settlement.ts'

const heads: readonly FailingHead[] = ['block', 'park', 'skip']
const error = new TypeError('bad')

const settled = (
  outcome: OpenOutcome,
  given: Partial<SettleRules> & { readonly isOrdered?: boolean; readonly attempt?: number } = {},
) => {
  const { isOrdered = true, attempt = 3, ...rules } = given
  return settle(leaseOf('7', { key: 'k', isOrdered, attempt, deliveries: 9 }), outcome, {
    retry: noRetry(),
    failingHead: 'block',
    classify: () => ({ value: 'transient' }),
    describe: (thrown) => ({ value: describeError(thrown) }),
    endedAt: () => new Date(0),
    random: () => 0.5,
    ...rules,
  }).settlement
}

const ends: readonly (readonly [string, OpenOutcome, Partial<SettleRules>])[] = [
  ['that its policy gives up', { kind: 'fail', error, isShared: false }, {}],
  [
    'that fails with a terminal error',
    { kind: 'fail', error, isShared: false },
    { retry: () => 5, classify: () => ({ value: 'terminal' }) },
  ],
  ['whose body cannot be read', { kind: 'invalid', error }, {}],
]

describe.each(ends)('a first message %s', (_, outcome, given) => {
  test('is tried again when its key is to wait for it', () => {
    expect(settled(outcome, { ...given, failingHead: 'block' })).toMatchObject({ write: 'reschedule' })
  })

  test('is dead and holds its key when that is to be parked', () => {
    expect(settled(outcome, { ...given, failingHead: 'park' })).toMatchObject({ write: 'bury', parks: true })
  })

  test('is dead when its key is to go on', () => {
    const burial = settled(outcome, { ...given, failingHead: 'skip' })

    expect(burial.write).toBe('bury')
    expect(burial).not.toHaveProperty('parks')
  })

  test.each(heads)('is dead in a queue without an order, whatever `failingHead` says (%s)', (failingHead) => {
    const burial = settled(outcome, { ...given, failingHead, isOrdered: false })

    expect(burial.write).toBe('bury')
    expect(burial).not.toHaveProperty('parks')
  })
})

test.each([
  ['block', true],
  ['park', true],
  ['skip', undefined],
] as const)('what is rejected, or kills its process, is dead; with %s, parks: %s', (failingHead, parks) => {
  const rejected = settled({ kind: 'reject', error, isSaid: true }, { failingHead })
  const exhausted = settled({ kind: 'exhausted' }, { failingHead })

  for (const one of [rejected, exhausted]) {
    expect(one.write).toBe('bury')
    expect('parks' in one ? one.parks : undefined).toBe(parks)
  }
})

test('while its policy names delays, those count; then it comes after a second, two, four … five minutes', () => {
  const failing: OpenOutcome = { kind: 'fail', error, isShared: false }

  expect(settled(failing, { retry: () => 7 })).toMatchObject({ delayMs: 7 })
  const delays = [1, 2, 3, 9, 10, 5_000].map((attempt) => settled(failing, { attempt }))
  expect(delays.map((one) => ('delayMs' in one ? one.delayMs : null))).toEqual([
    1_000, 2_000, 4_000, 256_000, 300_000, 300_000,
  ])
})
