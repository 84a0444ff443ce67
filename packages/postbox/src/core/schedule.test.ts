import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { resolveSchedule } from './schedule.ts'

const centuryMs = 100 * 365.25 * 86_400_000
/** 24 November 4714 BC: the first day of Postgres' calendar. Before it, `to_timestamp` fails with 22008. */
const firstDayMs = -210_866_803_200_000

const invalidTime = expect.objectContaining({ code: 'OUTBOX_INVALID_TIME' })

describe('resolveSchedule', () => {
  test('without a time a message is due now', () => {
    expect(resolveSchedule(undefined, undefined)).toEqual({ kind: 'now' })
  })

  test.each([0, -0])('a delay of %d is now', (delayMs) => {
    expect(resolveSchedule(delayMs, undefined)).toEqual({ kind: 'now' })
  })

  test.each([1, 0.5, 60_000, centuryMs, Number.MIN_VALUE])('a delay of %d ms stays a delay', (delayMs) => {
    expect(resolveSchedule(delayMs, undefined)).toEqual({ kind: 'after', delayMs })
  })

  test.each([
    -1,
    -Number.MIN_VALUE,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    centuryMs + 1,
    '60',
    60n,
    null,
    {},
    new Date(),
    [5],
  ])('a delay of %s is refused (case %#)', (delayMs) => {
    expect(() => resolveSchedule(delayMs, undefined)).toThrow(invalidTime)
  })

  // U-PUB-11
  test.each([
    [new Date(1_700_000_000_000), 1_700_000_000_000],
    [{ epochMilliseconds: 1_700_000_000_000 }, 1_700_000_000_000],
    [new Date(0), 0],
    [new Date(-1), -1],
    [new Date(Date.UTC(9999, 11, 31)), Date.UTC(9999, 11, 31)],
  ])('an absolute time keeps its millisecond (case %#)', (at, epochMs) => {
    expect(resolveSchedule(undefined, at)).toEqual({ kind: 'at', epochMs })
  })

  // U-PUB-08
  test.each([
    new Date(Number.NaN),
    new Date(Date.UTC(10_000, 0, 1)),
    { epochMilliseconds: Number.POSITIVE_INFINITY },
    { epochMilliseconds: '1700000000000' },
    { epochMilliseconds: 1_700_000_000_000n },
    {},
    '2026-01-01T00:00:00Z',
    1_700_000_000_000,
    null,
    false,
  ])('%s is no absolute time (case %#)', (at) => {
    expect(() => resolveSchedule(undefined, at)).toThrow(invalidTime)
  })

  // U-PUB-07
  test('a delay and a time together are refused, even when both are wrong', () => {
    expect(() => resolveSchedule(1, new Date())).toThrow(invalidTime)
    expect(() => resolveSchedule(0, new Date())).toThrow(/got both/)
    expect(() => resolveSchedule(null, null)).toThrow(/got both/)
  })

  test('no accepted time lies before Postgres’ calendar begins', () => {
    const at = fc.date({ noInvalidDate: false })

    fc.assert(
      fc.property(at, (date) => {
        const epochMs = epochOf(date)

        expect(epochMs === null || epochMs >= firstDayMs).toBe(true)
      }),
      { examples: [[new Date(-253_402_214_400_000)], [new Date(firstDayMs - 1)]] },
    )
  })

  test('whatever is accepted is a finite number', () => {
    fc.assert(
      fc.property(fc.oneof(fc.double(), fc.anything()), (delayMs) => {
        fc.pre(delayMs !== undefined)
        try {
          const schedule = resolveSchedule(delayMs, undefined)
          expect(
            schedule.kind === 'now' || (schedule.kind === 'after' && Number.isFinite(schedule.delayMs)),
          ).toBe(true)
        } catch (error) {
          expect(error).toMatchObject({ code: 'OUTBOX_INVALID_TIME' })
        }
      }),
    )
  })
})

/** The epoch that will reach the statement; null when the time was refused. */
function epochOf(date: Date): number | null {
  try {
    const schedule = resolveSchedule(undefined, date)
    return schedule.kind === 'at' ? schedule.epochMs : null
  } catch (error) {
    expect(error).toMatchObject({ code: 'OUTBOX_INVALID_TIME' })
    return null
  }
}
