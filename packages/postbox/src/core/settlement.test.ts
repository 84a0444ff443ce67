// U-MSG-06, 08 and 11 (a second decision, none at all, the framework's state) are decided before an outcome is made: decision.test.ts.
import { describe, expect, test } from 'vitest'
import { followOn, leaseOf } from '../../../../tests/support/settlements.ts'
import { describeError, describerOf } from './describe-error.ts'
import { OutboxError } from './errors.ts'
import type { OpenOutcome } from './outcome.ts'
import { constant, exponential, type Failure, noRetry, type RetryPolicy } from './retry.ts'
import { type SettleRules, settle } from './settlement.ts'

const lease = leaseOf('7', { attempt: 3, deliveries: 4 })
const endedAt = new Date('2026-01-02T03:04:05Z')
const thrown = new TypeError('bad')
const failing = (error: unknown): OpenOutcome => ({ kind: 'fail', error, isShared: false })
const failure = failing(thrown)
const shared: OpenOutcome = { kind: 'fail', error: thrown, isShared: true }
/** By what it threw, under `reject-on-error`. */
const rejection: OpenOutcome = { kind: 'reject', error: thrown, isSaid: false }

/** Usual rules: transient, described as they are stored, a retry after a second for ever. */
function rulesWith(given: Partial<SettleRules> = {}): SettleRules {
  return {
    retry: () => 1_000,
    failingHead: 'block',
    classify: () => ({ value: 'transient' }),
    describe: (error) => ({ value: describeError(error) }),
    endedAt: () => endedAt,
    random: () => 0.5,
    ...given,
  }
}

const terminal: Partial<SettleRules> = { classify: () => ({ value: 'terminal' }) }
const settled = (outcome: OpenOutcome, given: Partial<SettleRules> = {}) =>
  settle(lease, outcome, rulesWith(given))
const buried = (reason: string, more: object = {}) => ({
  settlement: { write: 'bury', lease, reason, error: 'TypeError: bad', thrown, attempts: 3, ...more },
  troubles: [],
})
const rescheduled = (delayMs: number, more: object = {}) => ({
  settlement: { write: 'reschedule', lease, delayMs, error: 'TypeError: bad', thrown, ...more },
  troubles: [],
})

describe('settle', () => {
  test('an acknowledged message is deleted, with what it publishes: no reason, no delay (U-MSG-01)', () => {
    expect(settled({ kind: 'ack', followOns: [followOn] })).toEqual({
      settlement: { write: 'delete', lease, followOns: [followOn] },
      troubles: [],
    })
  })

  test('a rejected message is dead, whatever the policy would say (U-MSG-05)', () => {
    expect(settled(rejection, { retry: unasked })).toEqual(buried('rejected'))
  })

  test('a body that is not what its queue says is dead at once, whatever the policy would say', () => {
    expect(settled({ kind: 'invalid', error: thrown })).toEqual(buried('invalid_body'))
  })

  test('a snoozed message comes back when the handler said, and the policy is not asked', () => {
    expect(settled({ kind: 'snooze', delayMs: 1_234.5 }, { retry: unasked })).toEqual({
      settlement: { write: 'snooze', lease, delayMs: 1_234.5 },
      troubles: [],
    })
  })

  test('what a stop interrupted is given back, and the policy is not asked', () => {
    const released = { settlement: { write: 'release', lease }, troubles: [] }

    expect(settled({ kind: 'interrupt' }, { retry: unasked, classify: unasked })).toEqual(released)
  })

  test('what was delivered too often is dead; this one ran nothing, so it is neither an attempt nor a delivery (U-DLQ-01)', () => {
    const sentence = 'delivered 6 times without an outcome: each time the process died, or lost the lease'
    const often = leaseOf('7', { attempt: 3, deliveries: 9 })

    expect(settle(often, { kind: 'exhausted' }, rulesWith({ retry: unasked }))).toEqual({
      settlement: {
        write: 'bury',
        lease: { ...often, deliveries: 8 },
        reason: 'max_deliveries',
        error: sentence,
        thrown: sentence,
        attempts: 2,
      },
      troubles: [],
    })
  })

  test.each<OpenOutcome>([
    rejection,
    { kind: 'reject', error: 'no', isSaid: true },
    { kind: 'invalid', error: thrown },
    { kind: 'exhausted' },
    { kind: 'retry', afterMs: null, error: thrown },
  ])('the classifier is asked only about what was thrown, not about $kind', (outcome) => {
    expect(() => settled(outcome, { classify: unasked })).not.toThrow()
  })

  test('an outcome of another kind is an error of ours', () => {
    expect(() => settled({ kind: 'shrug' } as never)).toThrow('unreachable: {"kind":"shrug"}')
  })
})

describe('a failure', () => {
  test('comes back after the delay of the policy, with its error and without a reason (U-MSG-03, U-MSG-09)', () => {
    expect(settled(failure, { retry: () => 3_000.5 })).toEqual(rescheduled(3_000.5))
  })

  test('comes back after the backoff of its attempt, by the chance that was given', () => {
    expect(settled(failure, { retry: exponential() })).toEqual(rescheduled(2_000))
  })

  test('is shown to the policy: attempt, error, chance, and when the first and the last run failed', () => {
    const firstAttemptAt = new Date('2026-01-01T00:00:00Z')
    const random = () => 0.25
    const { asked, retry } = watchedPolicy()
    settle({ ...lease, firstAttemptAt }, failure, rulesWith({ retry, random }))

    expect(asked).toEqual([{ attempt: 3, error: thrown, firstAttemptAt, lastAttemptAt: endedAt, random }])
  })

  test('that is the first has failed first when it failed last', () => {
    const { asked, retry } = watchedPolicy()
    settle({ ...lease, firstAttemptAt: null }, failure, rulesWith({ retry }))

    expect(asked).toMatchObject([{ firstAttemptAt: endedAt, lastAttemptAt: endedAt }])
  })

  test('is classified by what was thrown itself', () => {
    const seen: unknown[] = []
    const classify: SettleRules['classify'] = (error) => {
      seen.push(error)
      return { value: 'transient' }
    }
    settled(failure, { classify })

    expect(seen).toEqual([thrown])
    expect(seen[0]).toBe(thrown)
  })

  test('that is terminal is dead, and the policy is not asked', () => {
    expect(settled(failure, { ...terminal, retry: unasked })).toEqual(buried('terminal_error'))
  })

  test.each<[title: string, retry: RetryPolicy]>([
    ['has no next run', () => null],
    ['is none at all (U-MSG-02, U-MSG-04)', noRetry()],
    ['has come to its last attempt', constant({ delayMs: 1, maxAttempts: 3 })],
  ])('whose policy %s is dead: retry_terminal', (_title, retry) => {
    expect(settled(failure, { retry })).toEqual(buried('retry_terminal'))
  })

  test('before the last attempt of its policy lives', () => {
    expect(settled(failure, { retry: constant({ delayMs: 1, maxAttempts: 4 }) })).toEqual(rescheduled(1))
  })

  test.each<[title: string, answer: () => unknown]>([
    ['throws (U-RTY-10)', boom],
    ['answers NaN', () => Number.NaN],
    ['answers a negative number', () => -1],
    ['answers Infinity', () => Number.POSITIVE_INFINITY],
    ['answers undefined', () => undefined],
    ['answers a promise', async () => 1],
  ])('whose policy %s is dead, and the policy is reported', (_title, answer) => {
    const { settlement, troubles } = settled(failure, { retry: answer as RetryPolicy })

    expect(settlement).toEqual(buried('retry_terminal').settlement)
    expect(troubles).toEqual([{ code: 'policy_failed', error: expect.any(OutboxError) }])
    expect(troubles[0]?.error).toMatchObject({ code: 'OUTBOX_INVALID_POLICY' })
  })
})

// Thrown by a handler of many messages: each is run alone before one is blamed.
describe('a failure that many share', () => {
  test('comes back after the delay of the policy', () => {
    expect(settled(shared)).toEqual(rescheduled(1_000))
  })

  test('is never terminal, whatever the classifier says', () => {
    expect(settled(shared, terminal)).toEqual(rescheduled(1_000))
  })

  test('comes back at once when the policy is at its end', () => {
    expect(settled(shared, { retry: () => null })).toEqual(rescheduled(0))
    expect(settled(shared, { ...terminal, retry: () => null })).toEqual(rescheduled(0))
  })

  test('comes back at once when the policy is broken, which is reported', () => {
    const { settlement, troubles } = settled(shared, { retry: boom })

    expect(settlement).toEqual(rescheduled(0).settlement)
    expect(troubles).toMatchObject([{ code: 'policy_failed' }])
  })
})

describe('a retry that the handler asked for', () => {
  const retry = (afterMs: number | null): OpenOutcome => ({ kind: 'retry', afterMs, error: thrown })

  test.each([0, 5, 86_400_000])('comes back after %d ms if that is what it said', (afterMs) => {
    expect(settled(retry(afterMs))).toEqual(rescheduled(afterMs))
  })

  test('comes back when the policy says if it did not say', () => {
    expect(settled(retry(null))).toEqual(rescheduled(1_000))
  })

  test('obeys the end of the policy, however soon it wants to come back (U-MSG-10)', () => {
    expect(settled(retry(5), { retry: () => null })).toEqual(buried('retry_terminal'))
    expect(settled(retry(null), { retry: () => null })).toEqual(buried('retry_terminal'))
  })

  test('is dead when the policy is broken, which is reported', () => {
    const { settlement, troubles } = settled(retry(5), { retry: boom })

    expect(settlement).toEqual(buried('retry_terminal').settlement)
    expect(troubles).toMatchObject([{ code: 'policy_failed' }])
  })

  test('need not say why: nothing is described and nothing stored', () => {
    const outcome: OpenOutcome = { kind: 'retry', afterMs: 5, error: undefined }
    const nothing = { error: null, thrown: undefined }
    const given = { describe: unasked }

    expect(settled(outcome, given)).toEqual(rescheduled(5, nothing))
    expect(settled(outcome, { ...given, retry: () => null })).toEqual(buried('retry_terminal', nothing))
  })
})

describe('what is stored of an error', () => {
  test.each([new TypeError('bad'), 'a\u0000b', undefined, null])(
    'is apart from what was thrown, which goes to events as it was (case %#)',
    (error) => {
      for (const retry of [() => 1, () => null]) {
        const { settlement } = settled(failing(error), { retry })

        expect('thrown' in settlement && Object.is(settlement.thrown, error)).toBe(true)
      }
    },
  )

  test('is what describes it: an error that would fail the write itself is cleaned', () => {
    const { settlement } = settled(failing('a\u0000b'))

    expect(settlement).toMatchObject({ error: 'a\ufffdb' })
  })

  test.each([failure, rejection])('is nothing when nothing should be (case %#)', (outcome) => {
    const describe = (error: unknown) => ({ value: describerOf(() => null)(error).text })
    const { settlement, troubles } = settled(outcome, { describe })

    expect(settlement).toMatchObject({ error: null, thrown })
    expect(troubles).toEqual([])
  })

  // Only who asks for a retry need not say why: what failed did so for a reason, though it be none.
  test.each<[title: string, outcome: OpenOutcome, rules?: Partial<SettleRules>]>([
    ['a failure', failing(undefined)],
    ['a shared failure', { kind: 'fail', error: undefined, isShared: true }],
    ['a terminal failure', failing(undefined), terminal],
    ['a failure at the end of its policy', failing(undefined), { retry: () => null }],
    ['a rejection', { kind: 'reject', error: undefined, isSaid: false }],
    ['a bad body', { kind: 'invalid', error: undefined }],
  ])('of %s that threw undefined is that word', (_title, outcome, given = {}) => {
    expect(settled(outcome, given).settlement).toMatchObject({ error: 'undefined', thrown: undefined })
  })

  test('of a retry for null is that word: null was given', () => {
    const { settlement } = settled({ kind: 'retry', afterMs: 5, error: null })

    expect(settlement).toMatchObject({ error: 'null', thrown: null })
  })
})

// A describer redacts errors; it may not know what to do with a sentence, which is nobody's secret.
describe('what is said in words', () => {
  test('by the handler is stored as it is, and not given to the describer', () => {
    const said = { error: 'no stock', thrown: 'no stock' }

    expect(settled({ kind: 'reject', error: 'no stock', isSaid: true }, { describe: unasked })).toEqual(
      buried('rejected', said),
    )
  })

  test('by us is stored as it is, and not given to the describer', () => {
    const { settlement } = settled({ kind: 'exhausted' }, { describe: unasked })

    expect(settlement).toMatchObject({
      error: expect.stringMatching(/^delivered 1 times without an outcome/),
    })
  })

  test('is cleaned like any other: a NUL would fail the write itself', () => {
    const { settlement } = settled({ kind: 'reject', error: 'a\u0000b', isSaid: true })

    expect(settlement).toMatchObject({ error: 'a\ufffdb', thrown: 'a\u0000b' })
  })

  test('is not what is thrown under `reject-on-error`, though it be a string: that is described', () => {
    const describe = () => ({ value: 'redacted' })
    const { settlement } = settled({ kind: 'reject', error: 'secret', isSaid: false }, { describe })

    expect(settlement).toMatchObject({ error: 'redacted', thrown: 'secret' })
  })
})

// The application's own code is broken: what was decided stands, and each is told once.
describe('troubles', () => {
  const classifyTrouble = { code: 'classify_failed', error: new Error('classify') } as const
  const describeTrouble = { code: 'describe_failed', error: new Error('describe') } as const
  const broken: Partial<SettleRules> = {
    classify: () => ({ value: 'transient', trouble: classifyTrouble }),
    describe: () => ({ value: 'undescribed', trouble: describeTrouble }),
  }

  test.each<[title: string, outcome: OpenOutcome, codes: readonly string[]]>([
    ['a failure', failure, ['classify_failed', 'describe_failed']],
    ['a shared failure', shared, ['classify_failed', 'describe_failed']],
    ['a retry', { kind: 'retry', afterMs: 1, error: thrown }, ['describe_failed']],
    ['a rejection', rejection, ['describe_failed']],
    ['a rejection in words', { kind: 'reject', error: 'no', isSaid: true }, []],
    ['a bad body', { kind: 'invalid', error: thrown }, ['describe_failed']],
    ['too many deliveries', { kind: 'exhausted' }, []],
    ['a success', { kind: 'ack', followOns: [] }, []],
    ['a snooze', { kind: 'snooze', delayMs: 1 }, []],
    ['an interruption', { kind: 'interrupt' }, []],
  ])('of %s are all told', (_title, outcome, codes) => {
    expect(codesOf(outcome, broken)).toEqual(codes)
  })

  test.each([failure, shared])('of a failure at the end of its policy are all told (case %#)', (outcome) => {
    const codes = ['classify_failed', 'describe_failed']

    expect(codesOf(outcome, { ...broken, retry: () => null })).toEqual(codes)
  })

  test.each([failure, shared])('of a failure with a broken policy are all told (case %#)', (outcome) => {
    const codes = ['classify_failed', 'policy_failed', 'describe_failed']

    expect(codesOf(outcome, { ...broken, retry: boom })).toEqual(codes)
  })

  test('of a terminal failure are told, with the errors themselves', () => {
    const classify: SettleRules['classify'] = () => ({ value: 'terminal', trouble: classifyTrouble })
    const { settlement, troubles } = settled(failure, { ...broken, classify })

    expect(settlement).toMatchObject({ reason: 'terminal_error', error: 'undescribed' })
    expect(troubles).toEqual([classifyTrouble, describeTrouble])
  })
})

function codesOf(outcome: OpenOutcome, given: Partial<SettleRules>): readonly string[] {
  return settled(outcome, given).troubles.map(({ code }) => code)
}

function unasked(): never {
  throw new Error('was asked')
}

function boom(): never {
  throw new Error('boom')
}

function watchedPolicy() {
  const asked: Failure[] = []
  const retry: RetryPolicy = (failure) => {
    asked.push(failure)
    return 1
  }
  return { asked, retry }
}
