import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type ConstantOptions,
  constant,
  type ExponentialOptions,
  exponential,
  type Failure,
  type LinearOptions,
  linear,
  nextDelay,
  noRetry,
  type RetryPolicy,
} from './retry.ts'
import { runtimeErrorCatalogue } from './runtime-error-catalogue.ts'

const start = Date.UTC(2026, 0, 1)
const hundredYearsMs = 3_155_760_000_000

function failure(attempt: number, { chance = 0.5, elapsedMs = 0 } = {}): Failure {
  const [firstAttemptAt, lastAttemptAt] = [new Date(start), new Date(start + elapsedMs)]
  return { attempt, error: new Error('down'), firstAttemptAt, lastAttemptAt, random: () => chance }
}

const policy = (answer: () => unknown): RetryPolicy => answer as RetryPolicy

describe('nextDelay', () => {
  test('gives the delay of a policy, or that there is none', () => {
    expect(nextDelay(constant({ delayMs: 7 }), failure(1))).toEqual({ kind: 'delay', delayMs: 7 })
    expect(
      nextDelay(
        policy(() => 0),
        failure(1),
      ),
    ).toEqual({ kind: 'delay', delayMs: 0 })
    expect(nextDelay(noRetry(), failure(1))).toEqual({ kind: 'terminal' })
  })

  test('a custom policy gets the failure as it is', () => {
    const given = failure(3)
    const seen: Failure[] = []
    nextDelay((one) => {
      seen.push(one)
      return null
    }, given)

    expect(seen).toEqual([given])
  })

  test('no delay is longer than a hundred years', () => {
    expect(
      nextDelay(
        policy(() => 1e300),
        failure(1),
      ),
    ).toEqual({ kind: 'delay', delayMs: hundredYearsMs })
  })

  test('a policy that throws is broken: the message is neither retried nor lost (U-RTY-10)', () => {
    const cause = new TypeError('no such table')
    const answer = nextDelay(
      policy(() => {
        throw cause
      }),
      failure(1),
    )

    expect(answer).toMatchObject({ kind: 'broken', error: { code: 'OUTBOX_INVALID_POLICY', cause } })
    expect(answer).toMatchObject({
      error: {
        message: `the retry policy threw \`"TypeError: no such table"\` (string). ${runtimeErrorCatalogue.OUTBOX_INVALID_POLICY}`,
      },
    })
  })

  test.each([
    [Number.NaN, '`NaN` (number)'],
    [Number.POSITIVE_INFINITY, '`Infinity` (number)'],
    [-1, '`-1` (number)'],
    [undefined, '`undefined`'],
    ['1000', '`"1000"` (string)'],
    [10n, '`10n` (bigint)'],
    [true, '`true` (boolean)'],
    [{ delayMs: 5 }, '`{"delayMs":5}` (object)'],
    [[5], '`[5]` (array)'],
    [Promise.resolve(5), '`Promise` (object)'],
  ])('a policy that answers with %s is broken, and the error says so', (given, shown) => {
    const answer = nextDelay(
      policy(() => given),
      failure(1),
    )

    expect(answer).toMatchObject({ kind: 'broken', error: { code: 'OUTBOX_INVALID_POLICY' } })
    expect(answer).toMatchObject({ error: { message: expect.stringContaining(`got ${shown}`) } })
  })

  test('whatever is thrown or returned, nextDelay answers', () => {
    fc.assert(
      fc.property(fc.anything(), fc.boolean(), (value, isThrown) => {
        const answer = nextDelay(
          policy(() => {
            if (isThrown) throw value
            return value
          }),
          failure(1),
        )

        expect(['delay', 'terminal', 'broken']).toContain(answer.kind)
        if (answer.kind === 'delay') expect(answer.delayMs).toBe(Math.min(value as number, hundredYearsMs))
      }),
    )
  })

  // Vitest fails a run with an unhandled rejection: it would end the process of a user.
  test('the rejection of an async policy is nobody’s, and ends nothing', async () => {
    const rejected = Promise.reject(new Error('late'))

    expect(
      nextDelay(
        policy(() => rejected),
        failure(1),
      ).kind,
    ).toBe('broken')
    await new Promise((resolve) => setImmediate(resolve))
  })
})

const chance = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
const attempt = fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 1_000_000 }))
const durationMs = fc.double({ min: 0, minExcluded: true, noNaN: true, noDefaultInfinity: true })
const jitter = fc.oneof(
  fc.constantFrom('none' as const, 'full' as const, 'equal' as const),
  fc.double({ min: 0, max: 2, noNaN: true }),
)
const unlimited = { maxAttempts: fc.constant(null), jitter }
const exponentials: fc.Arbitrary<ExponentialOptions> = fc.record({
  ...unlimited,
  initialMs: durationMs,
  factor: fc.oneof(durationMs, fc.double({ min: 0.5, max: 3, noNaN: true })),
  maxMs: fc.option(durationMs, { nil: null }),
})
const linears: fc.Arbitrary<LinearOptions> = fc.record({
  ...unlimited,
  initialMs: durationMs,
  stepMs: fc.oneof(fc.constant(0), durationMs),
})
const constants: fc.Arbitrary<ConstantOptions> = fc.record({ ...unlimited, delayMs: durationMs })
const policies = fc.oneof(exponentials.map(exponential), linears.map(linear), constants.map(constant))
const sane = { initialMs: 100, maxMs: 60_000, maxAttempts: null } as const

describe('every policy', () => {
  test('whatever its options, a delay is a number from zero to a hundred years', () => {
    fc.assert(
      fc.property(policies, attempt, chance, (one, n, drawn) => {
        const delayMs = one(failure(n, { chance: drawn }))

        expect(delayMs !== null && delayMs >= 0 && delayMs <= hundredYearsMs).toBe(true)
      }),
      { numRuns: 2_000 },
    )
  })

  test('no jitter goes above the cap (U-RTY-06)', () => {
    fc.assert(
      fc.property(exponentials, attempt, chance, (options, n, drawn) => {
        const delayMs = exponential(options)(failure(n, { chance: drawn })) ?? Number.NaN

        expect(delayMs <= (options.maxMs ?? hundredYearsMs)).toBe(true)
      }),
      { numRuns: 2_000 },
    )
  })

  test('without jitter, delays never become shorter: factor of one or more, or a step (U-RTY-05)', () => {
    const factor = fc.double({ min: 1, max: 10, noNaN: true })
    const growing = fc.oneof(
      fc
        .tuple(exponentials, factor)
        .map(([options, grown]) => exponential({ ...options, factor: grown, jitter: 'none' })),
      linears.map((options) => linear({ ...options, jitter: 'none' })),
    )
    fc.assert(
      fc.property(growing, attempt, (one, n) => {
        expect(Number(one(failure(n))) <= Number(one(failure(n + 1)))).toBe(true)
      }),
    )
  })

  test.each([
    ['full', 0, 1],
    ['equal', 0.5, 1],
    [0.5, 0.75, 1.25],
    [2, 0, 2],
  ] as const)(
    '%s jitter keeps a delay from %f to %f times what it would be (U-RTY-05)',
    (given, least, most) => {
      fc.assert(
        fc.property(fc.integer({ min: 1, max: 9 }), chance, (n, drawn) => {
          const rawMs = 100 * 2 ** (n - 1)
          const delayMs = exponential({ ...sane, jitter: given })(failure(n, { chance: drawn })) ?? Number.NaN

          expect(delayMs >= rawMs * least && delayMs <= rawMs * most).toBe(true)
          expect(delayMs).toBeCloseTo(rawMs * (least + (most - least) * drawn), 6)
        }),
      )
    },
  )

  test('runs end with maxAttempts, wherever it is', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1_000 }), attempt, (maxAttempts, n) => {
        expect(exponential({ maxAttempts })(failure(n)) === null).toBe(n >= maxAttempts)
      }),
    )
  })

  test('a delay is given exactly if it ends within maxTotalMs (U-RTY-04)', () => {
    const ms = fc.integer({ min: 1, max: 1_000_000 })
    fc.assert(
      fc.property(fc.record({ maxTotalMs: ms, elapsedMs: ms, n: fc.nat(20), drawn: chance }), (given) => {
        const { maxTotalMs, elapsedMs, n, drawn } = given
        const at = failure(n + 1, { chance: drawn, elapsedMs })
        const freeMs = exponential(sane)(at) ?? Number.NaN

        expect(exponential({ ...sane, maxTotalMs })(at)).toBe(elapsedMs + freeMs > maxTotalMs ? null : freeMs)
      }),
    )
  })
})
