import { describe, expect, test } from 'vitest'
import { OutboxError } from './errors.ts'
import {
  adr054,
  constant,
  defaultRetry,
  exponential,
  type Failure,
  linear,
  noRetry,
  type RetryPolicy,
} from './retry.ts'

const start = new Date('2026-01-01T00:00:00Z')
const almostOne = 1 - Number.EPSILON / 2
const hundredYearsMs = 3_155_760_000_000

/** The n-th failure, `elapsedMs` after the first. */
function failure(attempt: number, { chance = 0.5, elapsedMs = 0 } = {}): Failure {
  const lastAttemptAt = new Date(start.getTime() + elapsedMs)
  return { attempt, error: new Error('down'), firstAttemptAt: start, lastAttemptAt, random: () => chance }
}

const delays = (policy: RetryPolicy, attempts: readonly number[]): (number | null)[] =>
  attempts.map((attempt) => policy(failure(attempt)))

describe('policies', () => {
  test('noRetry ends with the first failure, and with any other (U-RTY-01)', () => {
    expect(delays(noRetry(), [1, 2, 1_000])).toEqual([null, null, null])
    expect(noRetry().maxAttempts).toBe(1)
  })

  test('constant waits the same each time, exactly (U-RTY-02)', () => {
    expect(delays(constant({ delayMs: 700.5 }), [1, 2, 9])).toEqual([700.5, 700.5, 700.5])
  })

  test('a numeric jitter spreads a delay by half of it below and half above (U-RTY-02)', () => {
    const policy = constant({ delayMs: 1_000, jitter: 0.2 })

    expect(policy(failure(1, { chance: 0 }))).toBe(900)
    expect(policy(failure(1, { chance: 0.25 }))).toBe(950)
    expect(policy(failure(1, { chance: almostOne }))).toBeCloseTo(1_100, 6)
  })

  test.each([
    ['exponential', exponential({ maxAttempts: 3 })],
    ['linear', linear({ initialMs: 1, stepMs: 1, maxAttempts: 3 })],
    ['constant', constant({ delayMs: 1, maxAttempts: 3 })],
  ])('%s allows as many runs as it says, and not one more (U-RTY-03)', (_name, policy) => {
    expect(policy.maxAttempts).toBe(3)
    expect(policy(failure(2))).not.toBeNull()
    expect(policy(failure(3))).toBeNull()
    expect(policy(failure(4))).toBeNull()
  })

  test('a run that would begin after maxTotalMs is not made; one that begins with it is (U-RTY-04)', () => {
    const policy = constant({ delayMs: 1_000, maxTotalMs: 10_000 })

    expect(policy(failure(2, { elapsedMs: 9_000 }))).toBe(1_000)
    expect(policy(failure(2, { elapsedMs: 9_001 }))).toBeNull()
  })

  test('linear grows by its step, exactly (U-RTY-05)', () => {
    expect(delays(linear({ initialMs: 100, stepMs: 50 }), [1, 2, 3, 9])).toEqual([100, 150, 200, 500])
    expect(delays(linear({ initialMs: 100, stepMs: 0 }), [1, 9])).toEqual([100, 100])
  })

  test('exponential grows by its factor up to its cap, exactly (U-RTY-06)', () => {
    const policy = exponential({ initialMs: 100, factor: 3, maxMs: 2_000, jitter: 'none' })

    expect(delays(policy, [1, 2, 3, 4, 5])).toEqual([100, 300, 900, 2_000, 2_000])
  })

  test('the cap holds after a numeric jitter, which is applied before it (U-RTY-06)', () => {
    const policy = exponential({ initialMs: 1_000, maxMs: 1_000, jitter: 1 })

    expect(policy(failure(1, { chance: 0.9 }))).toBe(1_000)
    expect(policy(failure(1, { chance: 0.1 }))).toBe(600)
    expect(policy(failure(2, { chance: 0.1 }))).toBe(1_000)
  })

  test.each([
    ['full', 0, 2_000],
    ['equal', 1_000, 2_000],
  ] as const)('%s jitter still spreads delays that the cap has cut', (jitter, leastMs, mostMs) => {
    const policy = exponential({ initialMs: 1_000, maxMs: 2_000, jitter, maxAttempts: null })

    expect(policy(failure(50, { chance: 0 }))).toBe(leastMs)
    expect(policy(failure(50, { chance: 0.5 }))).toBe((leastMs + mostMs) / 2)
    expect(policy(failure(50, { chance: almostOne }))).toBeCloseTo(mostMs, 6)
  })

  test.each(['none', 2, 0] as const)(
    'without caps, 2,000 attempts come to a hundred years and not to infinity: jitter %s (U-RTY-07)',
    (jitter) => {
      const policy = exponential({ maxMs: null, maxAttempts: null, jitter })

      expect(policy(failure(2_000))).toBe(hundredYearsMs)
    },
  )

  test('an overflow times a chance of zero is zero, and a number', () => {
    const policy = exponential({ maxMs: null, maxAttempts: null, jitter: 2 })

    expect(policy(failure(2_000, { chance: 0 }))).toBe(0)
  })

  test('the default: ten runs, 1 s doubling to 5 min, full jitter (U-RTY-09)', () => {
    const attempts = [1, 2, 3, 8, 9]

    expect(defaultRetry.maxAttempts).toBe(10)
    expect(delays(defaultRetry, attempts)).toEqual([500, 1_000, 2_000, 64_000, 128_000])
    expect(defaultRetry(failure(9, { chance: 0 }))).toBe(0)
    expect(defaultRetry(failure(10))).toBeNull()
    expect(delays(exponential({ maxAttempts: null }), [10, 100])).toEqual([150_000, 150_000])
  })

  test('adr054: six runs and five delays', () => {
    expect(adr054().maxAttempts).toBe(6)
    expect(delays(adr054(), [1, 2, 3, 4, 5, 6])).toEqual([500, 1_000, 2_000, 4_000, 8_000, null])
  })

  test.each([linear({ initialMs: 1, stepMs: 1 }), constant({ delayMs: 1 }), exponential()])(
    'every policy allows ten runs unless it is told otherwise (case %#)',
    (policy) => {
      expect(policy.maxAttempts).toBe(10)
      expect(delays(policy, [9, 10])).toEqual([expect.any(Number), null])
    },
  )

  test('null is no limit of runs, and a limit of time alone does not call itself unlimited', () => {
    expect(constant({ delayMs: 1, maxAttempts: null }).maxAttempts).toBeNull()
    expect(constant({ delayMs: 1, maxAttempts: null })(failure(1_000_000))).toBe(1)
    expect(constant({ delayMs: 1, maxAttempts: null, maxTotalMs: 5 }).maxAttempts).toBeUndefined()
    expect(constant({ delayMs: 1, maxAttempts: 3, maxTotalMs: 5 }).maxAttempts).toBe(3)
  })

  test.each([
    exponential(),
    linear({ initialMs: 1, stepMs: 1 }),
    constant({ delayMs: 1 }),
    noRetry(),
    adr054(),
    exponential({ maxAttempts: null, maxTotalMs: 5 }),
  ])('a policy cannot be changed (case %#)', (policy) => {
    expect(Object.isFrozen(policy)).toBe(true)
  })
})

// What users of plain JavaScript write.
const any = (value: unknown): never => value as never

function refusal(make: () => unknown): string {
  try {
    make()
  } catch (error) {
    expect(OutboxError.is(error, 'OUTBOX_INVALID_OPTION')).toBe(true)
    return (error as OutboxError).message
  }
  throw new Error('nothing was refused')
}

describe('options of policies', () => {
  const nonsense = [Number.NaN, Number.POSITIVE_INFINITY, -1, '1000', true, {}, 10n]
  const rejected: readonly (readonly [make: (given: never) => unknown, name: string, values: unknown[]])[] = [
    [exponential, 'initialMs', [0, null]],
    [exponential, 'factor', [0, null]],
    [exponential, 'maxMs', [0]],
    [exponential, 'jitter', [2.1, 'half', null]],
    [exponential, 'maxAttempts', [0, 1.5]],
    [exponential, 'maxTotalMs', [0]],
    [linear, 'initialMs', [0, null, undefined]],
    [linear, 'stepMs', [-0.1, null, undefined]],
    [linear, 'jitter', [3]],
    [constant, 'delayMs', [0, null, undefined]],
    [constant, 'jitter', [-0.1]],
    [constant, 'maxAttempts', [0]],
    [constant, 'maxTotalMs', [0]],
  ]
  const cases = rejected.flatMap(([make, name, values]) =>
    [...values, ...nonsense].map((value) => ({ policy: make.name, make, name, value })),
  )

  test.each(cases)('$policy refuses $name: $value (U-RTY-08)', ({ make, name, value }) => {
    const right = { linear: { initialMs: 1, stepMs: 1 }, constant: { delayMs: 1 } }[make.name]

    expect(refusal(() => make(any({ ...right, [name]: value })))).toContain(`expected \`${name}\` to be `)
  })

  test('says all that is wrong or missing at once, and what was probably meant', () => {
    const message = refusal(() => linear(any({ stepMs: -1, maxAtempts: 3, jitter: 'some' })))

    expect(message).toContain('expected `stepMs` to be a finite number, 0 or more, got `-1` (number)')
    expect(message).toContain(
      'unknown option `maxAtempts` with value `3` (number): did you mean `maxAttempts`?',
    )
    expect(message).toContain("expected `jitter` to be 'none', 'full', 'equal' or a number from 0 to 2, got")
    expect(message).toContain('expected `initialMs` to be a finite number above 0, got `undefined`')
  })

  test('says that null is allowed where it is', () => {
    expect(refusal(() => exponential({ maxMs: 0 }))).toContain(
      'to be a finite number above 0, or null, got `0`',
    )
  })

  test.each([
    ['exponential', () => exponential(any(null))],
    ['exponential', () => exponential(any(5))],
    ['linear', () => linear(any(undefined))],
    ['constant', () => constant(any(1_000))],
  ])('%s says that its options are an object', (name, make) => {
    expect(refusal(make)).toContain(`expected the options of ${name} to be an object`)
  })

  test.each([
    { delayMs: 1, maxMs: 5 },
    { delayMs: 1, factor: 2 },
  ])('constant knows no option of others (case %#)', (given) => {
    expect(refusal(() => constant(any(given)))).toContain('unknown option')
  })

  test('what is undefined is left at its default', () => {
    const given = {
      initialMs: undefined,
      maxMs: undefined,
      jitter: undefined,
      maxAttempts: undefined,
      maxTotalMs: undefined,
    }

    expect(exponential(any(given))(failure(1))).toBe(500)
    expect(exponential(any(given)).maxAttempts).toBe(10)
  })
})
