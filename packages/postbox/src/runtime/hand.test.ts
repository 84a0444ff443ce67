import { afterEach, describe, expect, test, vi } from 'vitest'
import { each, leaseOf, subscriptionOf } from '../../../../tests/support/delivery-bench.ts'
import { fakeClock } from '../../../../tests/support/fake-clock.ts'
import { recordedEvents } from '../../../../tests/support/recorded-events.ts'
import { describerOf } from '../core/describe-error.ts'
import type { Outcome } from '../core/outcome.ts'
import type { Failure } from '../core/retry.ts'
import type { Settlement } from '../core/settlement.ts'
import type { SubscribeOptions } from '../core/subscribe-options.ts'
import { createHand, type Desk } from './hand.ts'
import type { Held } from './held.ts'
import type { Settling, Written } from './settling.ts'

afterEach(() => {
  vi.restoreAllMocks()
})

const leased = (seq: string): Held => leaseOf({ seq, attempt: 2, deliveries: 3 })

/** Resolves when everything that could run without waiting has run. */
const idle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

interface Asked {
  readonly settlement: Settlement
  readonly how: Settling
  /** It is written, unless told otherwise. */
  done(written?: Written): Promise<void>
}

/** A hand whose settler writes when it is told to, with the desk of one subscription. */
function handOf(
  options: SubscribeOptions = {},
  describeError: ((error: unknown) => string | null) | undefined = undefined,
) {
  const asked: Asked[] = []
  const counts = { emptied: 0, lost: 0 }
  const putBack: [string, number][] = []
  const clock = fakeClock()
  const { teller, told } = recordedEvents()
  const hand = createHand({
    settler: {
      settle(settlement, how, tell) {
        const done: Asked['done'] = (written = { kind: 'over', landed: true }) => {
          tell(written)
          return idle()
        }
        asked.push({ settlement, how, done })
      },
      countLost: () => {
        counts.lost++
      },
      transacted: () => {},
    },
    clock,
    teller,
    describe: describerOf(describeError),
    putBack: (queue, delayMs) => putBack.push([queue, delayMs]),
    emptied: () => {
      counts.emptied++
    },
  })
  const deskOf = (own: SubscribeOptions): Desk =>
    hand.desk(
      subscriptionOf(
        each(() => {}),
        own,
      ),
    )
  return { hand, desk: deskOf(options), deskOf, asked, counts, putBack, clock, told }
}

const settlementsOf = (asked: readonly Asked[]): readonly Settlement[] =>
  asked.map(({ settlement }) => settlement)

const throwing = (): never => {
  throw new Error('broken')
}

const bad = new TypeError('bad')
const ack: Outcome = { kind: 'ack', followOns: [] }
const fail: Outcome = { kind: 'fail', error: bad, isShared: false }

describe('createHand', () => {
  test('holds what was claimed until what became of it is written', async () => {
    const { hand, desk, asked } = handOf()
    const [first, second] = [leased('1'), leased('2')]
    hand.hold([first, second])
    desk.finished(first, ack, 0)
    await idle()
    const before = [...hand.held]
    await asked[0]!.done()

    expect([before, [...hand.held]]).toEqual([[first, second], [second]])
  })

  test('a message whose handler succeeded is deleted, with its follow-on messages in the same statement', () => {
    const { desk, asked } = handOf()
    const one = leased('1')
    const followOns = [{ id: 'next' } as never]
    desk.finished(one, { kind: 'ack', followOns }, 0)

    expect(settlementsOf(asked)).toEqual([{ write: 'delete', lease: one.lease, followOns }])
  })

  test('a message whose handler failed is put back, by chance somewhere in its delay', () => {
    vi.spyOn(Math, 'random').mockReturnValue(0.25)
    const { desk, asked } = handOf()
    const one = leased('1')
    desk.finished(one, fail, 0)

    // The second attempt: a quarter of two seconds.
    expect(settlementsOf(asked)).toEqual([
      { write: 'reschedule', lease: one.lease, delayMs: 500, error: 'TypeError: bad', thrown: bad },
    ])
  })

  test('a message that was never started is released, and has no duration', () => {
    const { desk, asked } = handOf()
    const one = leased('1')
    desk.unstarted(one)

    expect(asked.map(({ settlement, how }) => [settlement, how.durationMs])).toEqual([
      [{ write: 'release', lease: one.lease }, null],
    ])
  })

  test.each<[string, (desk: Desk, one: Held) => void]>([
    ['finished', (desk, one) => desk.finished(one, ack, 0)],
    ['failed', (desk, one) => desk.finished(one, fail, 0)],
    ['was delivered too often', (desk, one) => desk.finished(one, { kind: 'exhausted' }, null)],
    ['was not started', (desk, one) => desk.unstarted(one)],
  ])('nothing is written for a message that was lost and %s: it is counted and let go of', async (_, end) => {
    const { hand, desk, asked, counts, told } = handOf({ retry: throwing, classify: throwing }, throwing)
    const one = leased('1')
    hand.hold([one])
    one.isLost = true
    end(desk, one)
    await idle()

    // Nor is anything of the application asked, which would be told of as broken.
    expect([asked, hand.held.size, counts, told]).toEqual([[], 0, { emptied: 1, lost: 1 }, []])
  })

  test('the settler is told how many its subscription lets one statement write: 1 when each is flushed alone, but not when they are given back', () => {
    const { deskOf, asked } = handOf()
    const each = deskOf({ flush: 'each', maxBatch: 7 })
    for (const desk of [deskOf({ maxBatch: 7 }), each, deskOf({})]) desk.finished(leased('1'), ack, 0)
    each.unstarted(leased('2'))

    expect(asked.map(({ how }) => how.maxBatch)).toEqual([7, 1, 1_000, 7])
  })

  test('the settler is told how long the handler ran', () => {
    const { desk, asked } = handOf()
    desk.finished(leased('1'), ack, 12)
    desk.finished(leased('2'), { kind: 'exhausted' }, null)

    expect(asked.map(({ how }) => how.durationMs)).toEqual([12, null])
  })

  test('untilEmpty resolves at once when nothing is held', async () => {
    await expect(handOf().hand.untilEmpty()).resolves.toBeUndefined()
  })

  test('untilEmpty resolves when the last one is written, for all who wait, and not before', async () => {
    const { hand, desk, asked } = handOf()
    const [first, second] = [leased('1'), leased('2')]
    hand.hold([first, second])
    const empties: string[] = []
    void hand.untilEmpty().then(() => empties.push('one'))
    void hand.untilEmpty().then(() => empties.push('other'))
    desk.finished(first, ack, 0)
    desk.finished(second, ack, 0)
    await asked[0]!.done()
    const before = [...empties]
    await asked[1]!.done()

    expect([before, empties]).toEqual([[], ['one', 'other']])
  })

  test('tells each time that it became empty, and only then', async () => {
    const { hand, desk, asked, counts } = handOf()
    const [first, second, third] = [leased('1'), leased('2'), leased('3')]
    hand.hold([first, second])
    desk.finished(first, ack, 0)
    desk.unstarted(second)
    await asked[0]!.done()
    const before = counts.emptied
    await asked[1]!.done()
    const between = counts.emptied
    hand.hold([third])
    desk.finished(third, ack, 0)
    await asked[2]!.done()

    expect([before, between, counts.emptied]).toEqual([0, 1, 2])
  })

  test('says when a message that was put back is due again, once that is written', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(0.5)
    const { hand, desk, asked, putBack } = handOf()
    const ends: Outcome[] = [
      fail,
      { kind: 'retry', afterMs: 70, error: undefined },
      { kind: 'snooze', delayMs: 30 },
      ack,
      { kind: 'reject', error: 'no', isSaid: true },
      { kind: 'interrupt' },
    ]
    const helds = ends.map((_, index) => leased(`${index}`))
    hand.hold(helds)
    for (const [index, end] of ends.entries()) desk.finished(helds[index]!, end, 0)
    await idle()
    const before = [...putBack]
    for (const { done } of asked) await done()

    expect([before, putBack]).toEqual([
      [],
      [
        ['orders', 1_000],
        ['orders', 70],
        ['orders', 30],
      ],
    ])
  })
})

describe('what the rules of a subscription make of an outcome', () => {
  test.each<[Outcome, Partial<Settlement>]>([
    [ack, { write: 'delete' }],
    [
      { kind: 'snooze', delayMs: 30 },
      { write: 'snooze', delayMs: 30 },
    ],
    [{ kind: 'interrupt' }, { write: 'release' }],
    [
      { kind: 'retry', afterMs: 70, error: bad },
      { write: 'reschedule', delayMs: 70, thrown: bad },
    ],
    [
      { kind: 'reject', error: 'no', isSaid: true },
      { write: 'bury', reason: 'rejected', error: 'no' },
    ],
    [
      { kind: 'invalid', error: bad },
      { write: 'bury', reason: 'invalid_body' },
    ],
    [{ kind: 'exhausted' }, { write: 'bury', reason: 'max_deliveries' }],
  ])('%j', (outcome, settlement) => {
    const { desk, asked } = handOf()
    desk.finished(leased('1'), outcome, 0)

    expect(settlementsOf(asked)).toMatchObject([settlement])
  })

  test.each([
    [100, 5_150],
    // The clock of a process goes forward, but whoever injects one may err.
    [300, 5_000],
  ])(
    'its retry policy is asked, with the times of the database: as long after the claim there as here (%i)',
    (sentAt, endedAt) => {
      const failures: Failure[] = []
      const { desk, asked, clock } = handOf({
        retry: (failure) => {
          failures.push(failure)
          return 40
        },
      })
      const held = leaseOf({ attempt: 2, claimedAt: new Date(5_000), firstAttemptAt: new Date(1_000) })
      clock.advance(250)
      desk.finished({ ...held, sentAt }, fail, 0)

      expect(failures).toMatchObject([
        { attempt: 2, error: bad, firstAttemptAt: new Date(1_000), lastAttemptAt: new Date(endedAt) },
      ])
      expect(settlementsOf(asked)).toMatchObject([{ write: 'reschedule', delayMs: 40 }])
    },
  )

  test('its classes of terminal errors and its `classify` are asked', () => {
    const { deskOf, asked } = handOf()
    deskOf({ terminalErrors: [TypeError] }).finished(leased('1'), fail, 0)
    deskOf({ classify: () => 'terminal' }).finished(leased('2'), fail, 0)
    deskOf({ terminalErrors: [TypeError], classify: () => 'transient' }).finished(leased('3'), fail, 0)

    expect(settlementsOf(asked)).toMatchObject([
      { write: 'bury', reason: 'terminal_error' },
      { write: 'bury', reason: 'terminal_error' },
      { write: 'reschedule' },
    ])
  })

  test('the describer of the outbox says what is stored', () => {
    const { desk, asked } = handOf({}, () => 'redacted')
    desk.finished(leased('1'), fail, 0)

    expect(settlementsOf(asked)).toMatchObject([{ error: 'redacted', thrown: bad }])
  })

  test.each<[string, SubscribeOptions, ((error: unknown) => string | null) | undefined, string, object]>([
    [
      'policy_failed',
      { retry: throwing },
      undefined,
      'the retry policy is broken: there is no other run',
      { write: 'bury', reason: 'retry_terminal' },
    ],
    [
      'classify_failed',
      { classify: throwing },
      undefined,
      '`classify` is broken: the usual rules were asked',
      { write: 'reschedule' },
    ],
    [
      'describe_failed',
      {},
      throwing,
      '`describeError` is broken: a sentence was recorded in place of the error',
      { write: 'reschedule', thrown: bad },
    ],
  ])('%s: told once, with the message and what went wrong, and what is decided is written', (...given) => {
    const [code, options, describeError, message, settlement] = given
    const { desk, asked, told } = handOf(options, describeError)
    desk.finished(leased('1'), fail, 0)

    const fields = { queue: 'orders', id: 'id-1', seq: '1', attempt: 2, deliveries: 3 }
    const error = expect.objectContaining({ code: 'OUTBOX_INVALID_POLICY' })
    expect(told).toEqual([{ kind: 'warning', code, message, fields, error }])
    expect(settlementsOf(asked)).toMatchObject([settlement])
  })

  test('rules that work are not told of', () => {
    const { desk, told } = handOf({ retry: () => 5, classify: () => undefined }, () => null)
    desk.finished(leased('1'), fail, 0)

    expect(told).toEqual([])
  })
})

describe('follow-on messages that cannot be written', () => {
  const refused = new Error('no such queue')
  const acked: Outcome = { kind: 'ack', followOns: [{ id: 'next' } as never] }

  test('are told of once, and their message fails by the policy, with the duration of its run', async () => {
    const { hand, desk, asked, counts, told, putBack } = handOf({ retry: () => 40 })
    const one = leased('1')
    hand.hold([one])
    desk.finished(one, acked, 12)
    await asked[0]!.done({ kind: 'refused', error: refused })
    const between = [hand.held.size, [...putBack]]
    await asked[1]!.done()

    const about = { queue: 'orders', id: 'id-1', seq: '1', attempt: 2, deliveries: 3 }
    expect(told).toEqual([{ kind: 'follow_on_failed', ...about, error: refused }])
    expect(asked.map(({ settlement, how }) => [settlement, how])).toEqual([
      [expect.objectContaining({ write: 'delete' }), { maxBatch: 1_000, durationMs: 12, isLink: false }],
      [
        expect.objectContaining({ write: 'reschedule', delayMs: 40, thrown: refused }),
        { maxBatch: 1_000, durationMs: 12, isLink: false },
      ],
    ])
    expect([between, hand.held.size, counts.emptied, putBack]).toEqual([[1, []], 0, 1, [['orders', 40]]])
  })

  test('kill a message whose policy gives it up', async () => {
    const { desk, asked } = handOf({ retry: () => null })
    desk.finished(leased('1'), acked, 0)
    await asked[0]!.done({ kind: 'refused', error: refused })

    expect(settlementsOf(asked)[1]).toMatchObject({
      write: 'bury',
      reason: 'retry_terminal',
      thrown: refused,
    })
  })

  test('leave their message on its way into the table: whether its lease still holds, the next write tells', async () => {
    const { desk, asked } = handOf({ retry: () => 40 })
    const one = leased('1')
    desk.finished(one, acked, 0)
    const during = one.isEnding
    await asked[0]!.done({ kind: 'refused', error: refused })

    expect([during, one.isEnding, asked.length]).toEqual([true, true, 2])
  })
})
