import { describe, expect, test } from 'vitest'
import {
  createDecision,
  type Decision,
  type Ended,
  outcomeOf,
  refuseFunction,
  withFailure,
  withFollowOns,
} from './decision.ts'
import type { Draft } from './message.ts'
import type { Outcome } from './outcome.ts'

const bad = new Error('bad')
const modes = ['auto', 'reject-on-error', 'manual'] as const

type Say = (decision: Decision) => void

/** Each decision, and what it records. */
const said: readonly (readonly [string, Say, Outcome])[] = [
  ['ack()', (decision) => decision.ack(), { kind: 'ack', followOns: [] }],
  ['retry()', (decision) => decision.retry(), { kind: 'retry', afterMs: null, error: undefined }],
  [
    'retry({ afterMs, error })',
    (decision) => decision.retry({ afterMs: 5, error: bad }),
    { kind: 'retry', afterMs: 5, error: bad },
  ],
  [
    'reject()',
    (decision) => decision.reject(),
    { kind: 'reject', error: 'rejected by its handler', isSaid: true },
  ],
  ['reject(reason)', (decision) => decision.reject('no'), { kind: 'reject', error: 'no', isSaid: true }],
  // It is described like one that is thrown; a text is recorded as it is.
  ['reject(error)', (decision) => decision.reject(bad), { kind: 'reject', error: bad, isSaid: false }],
  ['snooze(ms)', (decision) => decision.snooze(7), { kind: 'snooze', delayMs: 7 }],
]

const pairs = said.flatMap(([first, sayFirst, outcome]) =>
  said.map(([second, saySecond]) => [first, second, sayFirst, saySecond, outcome] as const),
)

describe('createDecision', () => {
  test('nothing is decided before somebody says so', () => {
    expect(createDecision().outcome).toBeNull()
  })

  test.each(said)('%s is recorded as what it says', (_, say, outcome) => {
    const decision = createDecision()
    say(decision)

    expect(decision.outcome).toEqual(outcome)
  })

  test.each(pairs)('of %s and then %s the first counts', (...[, , sayFirst, saySecond, outcome]) => {
    const decision = createDecision()
    sayFirst(decision)
    saySecond(decision)

    expect(decision.outcome).toEqual(outcome)
  })

  test.each(said)('%s after the delivery is over records nothing', (_, say) => {
    const decision = createDecision()
    decision.close()
    say(decision)

    expect(decision.outcome).toBeNull()
  })

  test.each(said)('%s stands when the delivery is over', (_, say, outcome) => {
    const decision = createDecision()
    say(decision)
    decision.close()

    expect(decision.outcome).toEqual(outcome)
  })

  const longestMs = 36_525 * 86_400_000

  test.each([0, 0.5, longestMs])('%d milliseconds are accepted', (ms) => {
    const [retried, snoozed] = [createDecision(), createDecision()]
    retried.retry({ afterMs: ms })
    snoozed.snooze(ms)

    expect([retried.outcome, snoozed.outcome]).toEqual([
      { kind: 'retry', afterMs: ms, error: undefined },
      { kind: 'snooze', delayMs: ms },
    ])
  })

  test('an option that is undefined is not given', () => {
    const decision = createDecision()
    decision.retry({ afterMs: undefined, error: bad } as never)

    expect(decision.outcome).toEqual({ kind: 'retry', afterMs: null, error: bad })
  })

  const durations = [
    Number.NaN,
    -1,
    1e15,
    longestMs + 1,
    Number.POSITIVE_INFINITY,
    '5',
    null,
    5n,
    new Date(5),
  ]

  const wrong: readonly (readonly [string, (decision: Decision) => void, RegExp])[] = [
    ...durations.flatMap((ms) => [
      [
        `retry({ afterMs: ${ms} })`,
        (decision: Decision) => decision.retry({ afterMs: ms as never }),
        /`afterMs` to be a number of milliseconds, from 0 to a hundred years, got/,
      ] as const,
      [
        `snooze(${ms})`,
        (decision: Decision) => decision.snooze(ms as never),
        /`delayMs` to be a number of milliseconds, from 0 to a hundred years, got/,
      ] as const,
    ]),
    ['snooze()', (decision) => decision.snooze(undefined as never), /`delayMs` to be a number/],
    [
      'retry with a misspelt option',
      (decision) => decision.retry({ afterMS: 5 } as never),
      /did you mean `afterMs`\?/,
    ],
    ['retry with an option of snooze', (decision) => decision.retry({ delayMs: 5 } as never), /`delayMs`/],
    ['retry(5)', (decision) => decision.retry(5 as never), /the options of retry to be an object, got `5`/],
    ['retry(text)', (decision) => decision.retry('later' as never), /the options of retry to be an object/],
    [
      'retry(error)',
      (decision) => decision.retry(bad as never),
      /the options of retry to be \{ afterMs, error \}, got `Error`.*: give it as `error`/,
    ],
    [
      'retry with an error of a class of its own',
      (decision) => decision.retry(new TypeError('late') as never),
      /give it as `error`/,
    ],
    ['retry(null)', (decision) => decision.retry(null as never), /the options of retry to be an object/],
    ...[null, 5, { message: 'no' }].map(
      (reason) =>
        [
          `reject(${JSON.stringify(reason)})`,
          (decision: Decision) => decision.reject(reason as never),
          /`reason` to be a text or an error, got `/,
        ] as const,
    ),
  ]

  test.each(wrong)('%s is refused, and nothing is recorded', (_, say, sentence) => {
    const decision = createDecision()

    expect(() => say(decision)).toThrow(
      expect.objectContaining({ code: 'OUTBOX_INVALID_OPTION', message: expect.stringMatching(sentence) }),
    )
    expect(decision.outcome).toBeNull()
  })

  test('after one that was refused, another decides', () => {
    const decision = createDecision()
    expect(() => decision.snooze(-1)).toThrow()
    decision.ack()

    expect(decision.outcome).toEqual({ kind: 'ack', followOns: [] })
  })
})

const answered: Ended = { kind: 'answered' }
const returned: Ended = { kind: 'returned', value: undefined, isInterrupted: false }
const stopped: Ended = { ...returned, isInterrupted: true }
const threw: Ended = { kind: 'threw', error: bad, isInterrupted: false }
const interrupted: Ended = { kind: 'threw', error: bad, isInterrupted: true }

describe('outcomeOf', () => {
  const ack: Outcome = { kind: 'ack', followOns: [] }
  const reject: Outcome = { kind: 'reject', error: bad, isSaid: false }
  const undecided: Outcome = {
    kind: 'reject',
    error: 'the handler returned without a decision, which `ack: manual` asks for',
    isSaid: true,
  }
  const failAlone: Outcome = { kind: 'fail', error: bad, isShared: false }
  const failTogether: Outcome = { kind: 'fail', error: bad, isShared: true }
  const interrupt: Outcome = { kind: 'interrupt' }

  test.each([
    ['auto', false, ack, failAlone, interrupt],
    ['auto', true, ack, failTogether, interrupt],
    ['reject-on-error', false, ack, reject, interrupt],
    // Which of them is to blame is not known yet: none may be buried for it.
    ['reject-on-error', true, ack, failTogether, interrupt],
    ['manual', false, undecided, failAlone, interrupt],
    ['manual', true, undecided, failTogether, interrupt],
  ] as const)(
    'ack: %s, shared: %s, undecided: what returns, throws or is interrupted becomes what the table says',
    (ack, isShared, ...expected) => {
      const how = { ack, isShared }

      expect([returned, threw, interrupted].map((ended) => outcomeOf(null, ended, how))).toEqual(expected)
    },
  )

  // It had no time to decide: its message must not be buried for that.
  test.each([
    ['auto', ack],
    ['reject-on-error', ack],
    ['manual', interrupt],
  ] as const)('ack: %s, what returns undecided because the process stops: %j', (mode, outcome) => {
    const outcomes = [true, false].map((isShared) => outcomeOf(null, stopped, { ack: mode, isShared }))

    expect(outcomes).toEqual([outcome, outcome])
  })

  // Nobody decides for a handler that is not run: `manual` cannot ask it to.
  test.each(modes)(
    'ack: %s acknowledges what a middleware answered for the handler, shared or not',
    (mode) => {
      const outcomes = [true, false].map((isShared) => outcomeOf(null, answered, { ack: mode, isShared }))

      expect(outcomes).toEqual([ack, ack])
    },
  )

  test.each(said)(
    '%s stands, whatever the mode of acknowledging and however the handler ended',
    (...[, , outcome]) => {
      const endings = [answered, returned, stopped, threw, interrupted]
      const outcomes = modes.flatMap((ack) =>
        endings.map((ended) => outcomeOf(outcome, ended, { ack, isShared: false })),
      )

      expect(outcomes).toEqual(Array(15).fill(outcome))
    },
  )
})

describe('refuseFunction', () => {
  test('a handler that returned a function has failed, and is told which', () => {
    const { retry } = createDecision()

    expect(refuseFunction({ ...returned, value: retry })).toEqual({
      kind: 'threw',
      isInterrupted: false,
      error: expect.objectContaining({
        code: 'OUTBOX_INVALID_OUTCOME',
        message: expect.stringContaining('the handler returned `retry` (function) instead of calling it'),
      }),
    })
  })

  test.each([undefined, null, false, 0, 'retry', { kind: 'retry' }, bad])('%s may be returned', (value) => {
    const ended: Ended = { ...returned, value }

    expect(refuseFunction(ended)).toBe(ended)
  })

  test.each<[string, Ended]>([
    ['a function that was thrown stays what was thrown', { ...threw, error: () => {} } as Ended],
    ['what a middleware answered stays answered', answered],
  ])('%s', (_, ended) => {
    expect(refuseFunction(ended)).toBe(ended)
  })
})

describe('a transaction', () => {
  const committed = { kind: 'committed', followOns: 1 } as const

  test.each<[string, (decision: Decision) => void]>([
    ['nothing was decided', () => {}],
    ['an ack', (decision) => decision.ack()],
    ['the delivery was over', (decision) => decision.close()],
  ])('concludes the delivery after %s, and nothing changes that', (_, before) => {
    const decision = createDecision()
    before(decision)
    decision.conclude(committed)
    decision.retry()

    expect(decision.outcome).toBe(committed)
    expect(outcomeOf(decision.outcome, threw, { ack: 'auto', isShared: false })).toBe(committed)
  })

  test.each<[string, Ended, boolean]>([
    ['returned', { ...returned, value: 1, isInterrupted: false }, false],
    ['returned because of a stop', { ...returned, value: 1, isInterrupted: true }, true],
    ['was answered for', answered, false],
  ])('that failed fails a handler that %s', (_, ended, isInterrupted) => {
    expect(withFailure(ended, bad)).toEqual({ kind: 'threw', error: bad, isInterrupted })
  })

  test('that failed does not hide what its handler threw', () => {
    const ended = { ...threw, error: new Error('own') }

    expect(withFailure(ended, bad)).toBe(ended)
  })
})

describe('withFollowOns', () => {
  const draft = (id: string): Draft => ({ id }) as Draft
  const kept = (value: Draft | null): PromiseSettledResult<Draft | null> => ({ status: 'fulfilled', value })
  const refused = (reason: unknown): PromiseSettledResult<Draft | null> => ({ status: 'rejected', reason })
  const ack: Outcome = { kind: 'ack', followOns: [] }

  const failed = (error: unknown): Outcome => ({ kind: 'fail', error, isShared: false })
  const rejected = (error: unknown): Outcome => ({ kind: 'reject', error, isSaid: false })

  test.each(modes)(
    'ack: %s, an acknowledged delivery publishes them in their order, without those that a middleware kept back',
    (mode) => {
      expect(withFollowOns(ack, [kept(draft('b')), kept(null), kept(draft('a'))], mode)).toEqual({
        kind: 'ack',
        followOns: [draft('b'), draft('a')],
      })
    },
  )

  test.each([
    ['auto', 'fails', failed],
    ['manual', 'fails', failed],
    // It must not be run again, whatever it is that went wrong.
    ['reject-on-error', 'rejects', rejected],
  ] as const)('ack: %s, the first that is refused %s an acknowledged delivery, by itself', (mode, _, end) => {
    const [first, second] = [new Error('first'), new Error('second')]

    expect(withFollowOns(ack, [kept(draft('a')), refused(first), refused(second)], mode)).toEqual(end(first))
    // With nothing, too.
    expect(withFollowOns(ack, [refused(undefined)], mode)).toEqual(end(undefined))
  })

  test.each<Outcome>([
    { kind: 'fail', error: bad, isShared: true },
    { kind: 'retry', afterMs: 1, error: bad },
    { kind: 'reject', error: bad, isSaid: false },
    { kind: 'snooze', delayMs: 1 },
    { kind: 'interrupt' },
  ])('a delivery that came to $kind publishes nothing, and is not changed by what was refused', (outcome) => {
    const outcomes = modes.flatMap((mode) => [
      withFollowOns(outcome, [kept(draft('a'))], mode),
      withFollowOns(outcome, [refused(new Error('other'))], mode),
    ])

    expect(outcomes).toEqual(Array(6).fill(outcome))
  })
})
