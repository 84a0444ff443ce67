import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { followOn, leaseOf } from '../../../../tests/support/settlements.ts'
import { describeError } from './describe-error.ts'
import type { OpenOutcome } from './outcome.ts'
import type { RetryPolicy } from './retry.ts'
import { type Settlement, type SettleRules, settle } from './settlement.ts'

const thrown = fc.oneof(fc.anything(), fc.string().map(Error))
const duration = fc.double({ min: 0, max: 36_525 * 86_400_000, noNaN: true })

const outcomes: fc.Arbitrary<OpenOutcome> = fc.oneof(
  fc.record({ kind: fc.constant('ack' as const), followOns: fc.constantFrom([], [followOn]) }),
  fc.record({ kind: fc.constant('fail' as const), error: thrown, isShared: fc.boolean() }),
  fc.record({ kind: fc.constant('reject' as const), error: thrown, isSaid: fc.boolean() }),
  fc.record({ kind: fc.constant('invalid' as const), error: thrown }),
  fc.record({ kind: fc.constant('retry' as const), afterMs: fc.option(duration), error: thrown }),
  fc.record({ kind: fc.constant('snooze' as const), delayMs: duration }),
  fc.record({ kind: fc.constantFrom('interrupt' as const, 'exhausted' as const) }),
)

const leases = fc
  .record({ attempt: fc.integer({ min: 1, max: 1_000 }), silent: fc.integer({ min: 0, max: 1_000 }) })
  .map(({ attempt, silent }) => leaseOf('7', { attempt, deliveries: attempt + silent }))

/** A policy may answer anything, and throw anything. */
const policies: fc.Arbitrary<RetryPolicy> = fc
  .oneof(fc.constant(null), fc.double(), duration, fc.anything(), fc.constant('throw'))
  .map((answer) => () => {
    if (answer === 'throw') throw answer
    return answer as number | null
  })

const rules: fc.Arbitrary<SettleRules> = fc
  .record({
    retry: policies,
    verdict: fc.constantFrom('terminal' as const, 'transient' as const),
    isSilent: fc.boolean(),
  })
  .map(({ retry, verdict, isSilent }) => ({
    retry,
    failingHead: 'block',
    classify: () => ({ value: verdict }),
    describe: (error) => ({ value: isSilent ? null : describeError(error) }),
    endedAt: () => new Date(0),
    random: () => 0.5,
  }))

/** What an outcome may become: nothing else. */
const possible: Readonly<Record<OpenOutcome['kind'], readonly string[]>> = {
  ack: ['delete'],
  fail: ['reschedule', 'bury retry_terminal', 'bury terminal_error'],
  retry: ['reschedule', 'bury retry_terminal'],
  reject: ['bury rejected'],
  invalid: ['bury invalid_body'],
  snooze: ['snooze'],
  interrupt: ['release'],
  exhausted: ['bury max_deliveries'],
}

const nameOf = (settlement: Settlement): string =>
  settlement.write === 'bury' ? `bury ${settlement.reason}` : settlement.write

describe('whatever a delivery came to', () => {
  test('it is settled once, for its own lease, in a way that such an outcome may be', () => {
    fc.assert(
      fc.property(leases, outcomes, rules, (lease, outcome, given) => {
        const { settlement } = settle(lease, outcome, given)

        // One that is not run was not delivered.
        const notRun = outcome.kind === 'exhausted' ? 1 : 0
        expect(settlement.lease).toEqual({ ...lease, deliveries: lease.deliveries - notRun })
        expect(possible[outcome.kind]).toContain(nameOf(settlement))
      }),
      { numRuns: 500 },
    )
  })

  test('its delay is a finite number, 0 or more', () => {
    fc.assert(
      fc.property(leases, outcomes, rules, (lease, outcome, given) => {
        const { settlement } = settle(lease, outcome, given)
        if (!('delayMs' in settlement)) return

        expect(settlement.delayMs).toBeGreaterThanOrEqual(0)
        expect(settlement.delayMs).toBeLessThan(Number.POSITIVE_INFINITY)
      }),
      { numRuns: 500 },
    )
  })

  test('a dead letter counts its runs, this one included, unless it was not run', () => {
    fc.assert(
      fc.property(leases, outcomes, rules, (lease, outcome, given) => {
        const { settlement } = settle(lease, outcome, given)
        if (settlement.write !== 'bury') return

        const notRun = settlement.reason === 'max_deliveries' ? 1 : 0
        expect(settlement.attempts).toBe(lease.attempt - notRun)
      }),
      { numRuns: 500 },
    )
  })

  test('the application describes its error at most once, and nothing that was said in words', () => {
    fc.assert(
      fc.property(leases, outcomes, rules, (lease, outcome, given) => {
        const asked: unknown[] = []
        const describe: SettleRules['describe'] = (error) => {
          asked.push(error)
          return { value: 'described' }
        }
        const { settlement } = settle(lease, outcome, { ...given, describe })
        const isDescribed = 'error' in settlement && settlement.error === 'described'

        expect(asked).toEqual(isDescribed ? [settlement.thrown] : [])
        if (outcome.kind === 'exhausted' || (outcome.kind === 'reject' && outcome.isSaid))
          expect(asked).toEqual([])
      }),
      { numRuns: 500 },
    )
  })

  test('what many share never makes a message dead', () => {
    fc.assert(
      fc.property(leases, thrown, rules, (lease, error, given) => {
        const { settlement } = settle(lease, { kind: 'fail', error, isShared: true }, given)

        expect(settlement.write).toBe('reschedule')
      }),
    )
  })
})
