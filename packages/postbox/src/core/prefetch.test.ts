import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { averaged, claimLimit, prefetchFor } from './prefetch.ts'

const small = { bodyBytes: 100 }
const mebibyte = 1024 * 1024

describe('prefetchFor', () => {
  test('nothing is claimed ahead before a handler has been measured', () => {
    expect(prefetchFor(10_000, { handlerMs: null, bodyBytes: null })).toBe(0)
    expect(prefetchFor(10_000, { handlerMs: null, bodyBytes: 1 })).toBe(0)
  })

  test.each([
    [10, 1, 200],
    [10, 4, 50],
    [10, 200, 1],
    [1, 20, 1],
    [1, 0.5, 40],
    [50, 7, 142],
  ])(
    '%i slots with handlers of %d ms have %i messages ahead: 20 ms of work',
    (concurrency, handlerMs, rows) => {
      expect(prefetchFor(concurrency, { ...small, handlerMs })).toBe(rows)
    },
  )

  test.each([
    [1, 20.1],
    [10, 201],
    [10, 60_000],
    [100, 2_001],
  ])(
    '%i slots with handlers of %d ms have none: another process may start sooner',
    (concurrency, handlerMs) => {
      expect(prefetchFor(concurrency, { ...small, handlerMs })).toBe(0)
    },
  )

  test.each([
    [mebibyte, 8],
    [3 * mebibyte, 2],
    [8 * mebibyte, 1],
    [8 * mebibyte + 1, 0],
  ])('bodies of %i bytes are claimed %i ahead: no more than eight mebibytes', (bodyBytes, rows) => {
    expect(prefetchFor(100, { handlerMs: 1, bodyBytes })).toBe(rows)
  })

  test.each([
    [10, 0.1],
    [10_000, 1],
    [1, 0],
  ])('never more than two thousand: %i slots, %d ms', (concurrency, handlerMs) => {
    expect(prefetchFor(concurrency, { handlerMs, bodyBytes: 0 })).toBe(2_000)
  })

  test('bodies that have not been measured do not bound it', () => {
    expect(prefetchFor(10, { handlerMs: 1, bodyBytes: null })).toBe(200)
  })

  test('it is a whole number within every bound, whatever was measured', () => {
    const duration = fc.double({ min: 0, max: 1e9, noNaN: true })
    const bytes = fc.option(fc.nat(1e9))

    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 10_000 }),
        duration,
        bytes,
        (concurrency, handlerMs, bodyBytes) => {
          const rows = prefetchFor(concurrency, { handlerMs, bodyBytes })

          expect(Number.isSafeInteger(rows) && rows >= 0 && rows <= 2_000).toBe(true)
          expect(rows * (bodyBytes ?? 0)).toBeLessThanOrEqual(8 * mebibyte)
          expect(rows * handlerMs).toBeLessThanOrEqual(concurrency * 20 * (1 + Number.EPSILON * 4))
        },
      ),
    )
  })
})

describe('averaged', () => {
  test('the first value is the average', () => {
    expect(averaged(null, 7)).toBe(7)
    expect(averaged(null, 0)).toBe(0)
  })

  test('a new value counts a fifth', () => {
    expect(averaged(100, 200)).toBe(120)
    expect(averaged(100, 0)).toBe(80)
    expect(averaged(0, 100)).toBe(20)
  })

  test('it never leaves the range of its values', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 1_000_000 }), { minLength: 1 }), (values) => {
        const average = values.reduce<number | null>(averaged, null) ?? Number.NaN

        expect(average).toBeGreaterThanOrEqual(Math.min(...values) - 1e-6)
        expect(average).toBeLessThanOrEqual(Math.max(...values) + 1e-6)
      }),
    )
  })
})

describe('claimLimit', () => {
  test.each([
    [1, 1_000],
    [2, 1_000],
    [3, 666],
    [20, 100],
    [200, 10],
    [201, 9],
    [10_000, 1],
  ])('of %i queues a claim may take %i messages each', (queues, rows) => {
    expect(claimLimit(queues)).toBe(rows)
  })

  test('it is a limit for no queues, too', () => {
    expect(claimLimit(0)).toBe(1_000)
  })

  // Above that cost Postgres compiles the statement: 130 to 590 ms of a claim that runs in three.
  test('up to two hundred queues, the planner expects no more than two thousand rows of all of them', () => {
    for (let queues = 1; queues <= 200; queues++)
      expect(queues * claimLimit(queues)).toBeLessThanOrEqual(2_000)
  })
})
