import { describe, expect, test } from 'vitest'
import { fakeClock } from '../../../../tests/support/fake-clock.ts'
import { answering, idle, leased, type Sent, summaryOf } from '../../../../tests/support/lease-bench.ts'
import { recordedEvents } from '../../../../tests/support/recorded-events.ts'
import { subscriptionOf } from '../../../../tests/support/runner-bench.ts'
import { describerOf } from '../core/describe-error.ts'
import { LeaseLostError } from '../core/errors.ts'
import type { Outcome } from '../core/outcome.ts'
import { resolveNames } from '../sql/names.ts'
import type { Statement } from '../sql/statement.ts'
import type { Failpoint, FailpointName } from './failpoint.ts'
import { createHand } from './hand.ts'
import type { Held } from './held.ts'
import { createLane, type Lane } from './lane.ts'
import { keepLeases } from './lease-keeper.ts'
import { createSettler } from './settler.ts'

const names = resolveNames({ schema: 'public', table: 'outbox' })
const leaseMs = 8_000
const tickMs = leaseMs / 8

/** A keeper of these leases over a lane whose turns come when they may. */
function keeperOf(
  inHand: readonly Held[],
  { failpoint, isHeard = false }: { failpoint?: Failpoint; isHeard?: boolean } = {},
) {
  const [clock, ending, held] = [fakeClock(), new AbortController(), new Set(inHand)]
  const { teller, told } = recordedEvents({ isHeard })
  const sent: Sent[] = []
  const waiting: (() => void)[] = []
  const state = { isBusy: false, isOver: false, shortestLeaseMs: leaseMs }
  const send = answering(sent)
  const lane = {
    async run(given: Statement | (() => Statement | null)) {
      await new Promise<void>((resolve) => (state.isBusy ? waiting.push(resolve) : resolve()))
      const statement = typeof given === 'function' ? given() : given
      return statement === null ? [] : send(statement)
    },
  }
  const parts = { held, lane: lane as unknown as Lane, names, clock, teller, failpoint }
  const shortestLeaseMs = (): number => state.shortestLeaseMs
  void keepLeases({ ...parts, shortestLeaseMs }, ending.signal).then(() => {
    state.isOver = true
  })
  return {
    ...{ clock, held, told, sent, ending, state },
    /** Moves on to the next looks. */
    async tick(count = 1) {
      for (let n = 0; n < count; n++) {
        clock.advance(tickMs)
        await idle()
      }
    },
    free(): Promise<void> {
      state.isBusy = false
      for (const go of waiting.splice(0)) go()
      return idle()
    },
  }
}

const leaseLost = expect.any(LeaseLostError)

describe('renewing leases', () => {
  test('looks eight times within the shortest lease there is at the time', async () => {
    const keeper = keeperOf([])
    await keeper.tick(2)
    keeper.state.shortestLeaseMs = 30_000
    await keeper.tick()

    expect(keeper.clock.asked).toEqual([1_000, 1_000, 1_000, 3_750])
  })

  test('sends nothing while no lease is past its half', async () => {
    const keeper = keeperOf([leased(1)])
    await keeper.tick(3)
    const before = summaryOf(keeper.sent)
    await keeper.tick()

    expect([before, summaryOf(keeper.sent)]).toEqual([[], [['extend_leases', '1']]])
  })

  test('renews all that are past their half with one statement, in the order of seq, and no other', async () => {
    const lost = leased(7)
    lost.isLost = true
    const keeper = keeperOf([leased(10), leased(9), leased(1, 1), leased(2, 0, 30_000), lost, leased(100)])
    await keeper.tick(4)

    expect(summaryOf(keeper.sent)).toEqual([['extend_leases', '9', '10', '100']])
  })

  test('renews a thousand at most with one statement, all of them, and those that are locked once', async () => {
    const keeper = keeperOf(Array.from({ length: 2_500 }, (_, n) => leased(n + 1)))
    await keeper.tick(4)
    for (const locked of [false, true, false, false])
      await keeper.sent.at(-1)!.answer(...(locked ? [] : keeper.sent.at(-1)!.seqs.map(Number)))

    expect(keeper.sent.map(({ seqs }) => seqs.length)).toEqual([1_000, 1_000, 1_000, 500])
    expect(new Set(keeper.sent.flatMap(({ seqs }) => seqs)).size).toBe(2_500)
  })

  test('neither renews nor warns what a transaction of its handler has locked, until that lets it go', async () => {
    const [locked, neighbour] = [leased(1), leased(2)]
    locked.isFenced = true
    const keeper = keeperOf([locked, neighbour])
    await keeper.tick(9)
    const meanwhile = summaryOf(keeper.sent)
    const { reason } = locked
    locked.isFenced = false
    await keeper.tick()

    expect(meanwhile).toEqual([['extend_leases', '2']])
    expect(reason).toBeUndefined()
    expect(locked.reason).toEqual(leaseLost)
  })

  test('each is renewed for as long as its own lease lasts, and proved by its token', async () => {
    const keeper = keeperOf([leased(1), leased(2, -11_000, 30_000)])
    await keeper.tick(4)

    expect(JSON.parse(keeper.sent[0]!.values[0] as string)).toEqual([
      { seq: '1', token: 'token-1', leaseMs: 8_000 },
      { seq: '2', token: 'token-2', leaseMs: 30_000 },
    ])
  })

  test('they are chosen when the turn of the statement comes: what was settled until then is not in it', async () => {
    const [first, second] = [leased(1), leased(2)]
    const keeper = keeperOf([first, second])
    keeper.state.isBusy = true
    await keeper.tick(4)
    keeper.held.delete(first)
    await keeper.free()

    expect(summaryOf(keeper.sent)).toEqual([['extend_leases', '2']])
  })

  test('what was renewed ends after its time from when the statement was sent: not asked for, not answered', async () => {
    const one = leased(1)
    const keeper = keeperOf([one])
    keeper.state.isBusy = true
    await keeper.tick(4)
    keeper.clock.advance(300)
    await keeper.free()
    keeper.clock.advance(200)
    await keeper.sent[0]!.answer(1)

    expect([one.deadline, one.isLost, one.reason]).toEqual([4_300 + 8_000, false, undefined])
  })

  test('a handler is not told to give up while its lease is renewed, however long it runs', async () => {
    const one = leased(1)
    const keeper = keeperOf([one])
    for (let n = 0; n < 40; n++) await keeper.tick().then(() => keeper.sent.at(-1)?.answer(1))

    expect([one.reason, one.isLost, keeper.sent.length]).toEqual([undefined, false, 10])
  })

  test('ends when it is told to, after the renewal that is under way', async () => {
    const keeper = keeperOf([leased(1)])
    await keeper.tick(4)
    keeper.ending.abort()
    await idle()
    const before = keeper.state.isOver
    await keeper.sent[0]!.answer(1)

    expect([before, keeper.state.isOver, keeper.clock.left]).toEqual([false, true, []])
  })
})

describe('a lease that did not come back', () => {
  /** One lease came back from a renewal, the other did not. */
  async function missingOne() {
    const [kept, missing] = [leased(1), leased(2)]
    const keeper = keeperOf([kept, missing])
    await keeper.tick(4)
    await keeper.sent[0]!.answer(1)
    return { keeper, kept, missing }
  }

  test('is asked for without a lock, and it alone', async () => {
    const { keeper } = await missingOne()

    expect(summaryOf(keeper.sent)).toEqual([
      ['extend_leases', '1', '2'],
      ['holds_leases', '2'],
    ])
    expect(keeper.sent[1]!.values).toEqual(['{2}', '{token-2}'])
  })

  test('is kept when it is still held: somebody has locked the row', async () => {
    const { keeper, missing } = await missingOne()
    await keeper.sent[1]!.answer(2)

    expect([missing.isLost, missing.reason, keeper.told]).toEqual([false, undefined, []])
    expect(missing.deadline).toBe(8_000)
  })

  test('is lost when it is not: its handler is told to give up, and so is everybody else', async () => {
    const { keeper, kept, missing } = await missingOne()
    await keeper.sent[1]!.answer()

    expect([missing.isLost, missing.reason]).toEqual([true, leaseLost])
    expect([kept.isLost, kept.reason]).toEqual([false, undefined])
    expect(missing.reason).toMatchObject({
      code: 'OUTBOX_LEASE_LOST',
      message: expect.stringMatching(/id-2 .* was taken over/),
    })
    const about = { queue: 'orders', id: 'id-2', seq: '2', attempt: 1, deliveries: 3, durationMs: null }
    expect(keeper.told).toEqual([{ kind: 'lease_lost', ...about, phase: 'running', mayHaveLanded: false }])
  })

  test.each([
    [true, [{ kind: 'lease_renewed', count: 2 }]],
    [false, []],
  ])('is counted with the others that were renewed, if somebody hears (%s)', async (isHeard, told) => {
    const keeper = keeperOf([leased(1), leased(2), leased(3)], { isHeard })
    await keeper.tick(4)
    await keeper.sent[0]!.answer(1, 3)
    await keeper.sent[1]!.answer(2)

    expect(keeper.told).toEqual(told)
  })

  test('is not asked for again once it is lost', async () => {
    const { keeper } = await missingOne()
    await keeper.sent[1]!.answer()
    await keeper.tick(4)

    expect(summaryOf(keeper.sent.slice(2))).toEqual([['extend_leases', '1']])
  })

  test('is not asked for when it was settled while the renewal was under way', async () => {
    const settled = leased(2)
    const keeper = keeperOf([leased(1), settled])
    await keeper.tick(4)
    keeper.held.delete(settled)
    await keeper.sent[0]!.answer(1)

    expect(summaryOf(keeper.sent)).toEqual([['extend_leases', '1', '2']])
    expect([settled.isLost, keeper.told]).toEqual([false, []])
  })

  test('is not called lost when a transaction of its handler has taken it meanwhile', async () => {
    const held = leased(1)
    const keeper = keeperOf([held])
    await keeper.tick(4)
    held.isFenced = true
    await keeper.sent[0]!.answer()
    await keeper.sent[1]!.answer()

    expect(keeper.told).toEqual([])
    expect(held.reason).toBeUndefined()
  })

  test('is not called lost when it was settled while it was being asked for', async () => {
    const { keeper, missing } = await missingOne()
    keeper.held.delete(missing)
    await keeper.sent[1]!.answer()

    expect([missing.isLost, missing.reason, keeper.told]).toEqual([false, undefined, []])
  })
})

describe('a renewal that does not get through', () => {
  test.each([0, 1, 250, 500, 999])(
    'does not keep a handler from being told an eighth before its lease ends, sent for at %i ms',
    async (sentAt) => {
      const one = leased(1, sentAt)
      const keeper = keeperOf([one])
      let toldAt: number | null = null
      while (keeper.clock.now() < one.deadline && toldAt === null) {
        await keeper.tick()
        if (one.reason !== undefined) toldAt = keeper.clock.now()
      }

      expect(one.reason).toEqual(leaseLost)
      expect(toldAt).toBeLessThanOrEqual(one.deadline - leaseMs / 8)
      // Not before its last quarter either: until then a renewal may get through.
      expect(toldAt).toBeGreaterThanOrEqual(one.deadline - leaseMs / 4)
      expect([summaryOf(keeper.sent), one.isLost]).toEqual([[['extend_leases', '1']], false])
    },
  )

  test('does not abort handlers whose lease has time left', async () => {
    const [soon, later] = [leased(1), leased(2, 3_000)]
    const keeper = keeperOf([soon, later])
    await keeper.tick(6)

    expect([soon.reason, later.reason]).toEqual([leaseLost, undefined])
  })

  test('is told of when it fails, and tried again at the next look', async () => {
    const one = leased(1)
    const keeper = keeperOf([one])
    const error = new Error('connection lost')
    await keeper.tick(4)
    await keeper.sent[0]!.fail(error)
    await keeper.tick()
    await keeper.sent[1]!.answer(1)

    expect(keeper.told).toMatchObject([{ kind: 'warning', code: 'renewal_failed', error }])
    expect(summaryOf(keeper.sent)).toEqual([
      ['extend_leases', '1'],
      ['extend_leases', '1'],
    ])
    expect([one.deadline, one.reason, one.isLost]).toEqual([13_000, undefined, false])
  })

  test('tells nobody that a lease is lost when it is the look without a lock that fails', async () => {
    const one = leased(1)
    const keeper = keeperOf([one])
    await keeper.tick(4)
    await keeper.sent[0]!.answer()
    await keeper.sent[1]!.fail(new Error('connection lost'))

    expect([one.isLost, one.reason, keeper.told.length]).toEqual([false, undefined, 1])
  })

  test('a renewal that fails while it is held at a failpoint rejects nowhere, and is told of', async () => {
    const reached: FailpointName[] = []
    const unhandled: unknown[] = []
    const note = (error: unknown): void => void unhandled.push(error)
    process.on('unhandledRejection', note)
    const reach = async (name: FailpointName): Promise<void> => {
      reached.push(name)
      await idle()
      if (name === 'renewal_sent') await keeper.sent[0]?.fail(new Error('connection lost'))
    }
    const keeper = keeperOf([leased(1, -4_000)], { failpoint: { reach } })
    await keeper.tick()
    for (let n = 0; n < 5; n++) await idle()
    process.off('unhandledRejection', note)

    expect([reached, keeper.told.length]).toEqual([['before_renewal', 'renewal_sent'], 1])
    expect(unhandled).toEqual([])
  })
})

describe('renewals and flushes on one lane', () => {
  const ack: Outcome = { kind: 'ack', followOns: [] }

  /** Two messages in hand whose leases are past their half, over the real lane, settler and hand. */
  function together() {
    const [clock, ending] = [fakeClock(), new AbortController()]
    const sent: Sent[] = []
    const { teller, told } = recordedEvents()
    const send = answering(sent)
    const run = async (statement: Statement<unknown>): Promise<unknown> =>
      statement.name === 'read_isolation' ? [{ isolation: 'read committed' }] : send(statement)
    const lane = createLane({
      database: { run, transaction: run, capacity: 1 } as never,
      statementTimeoutMs: 10_000,
    })
    const shared = { lane, names, clock, teller, changed: () => {}, emptied: () => {}, putBack: () => {} }
    const modes = { deadLetters: 'table', delivered: 'delete' } as const
    const writing = { wake: 'quiet' as const, ...modes, giveUp: ending.signal }
    const settler = createSettler({ ...shared, ...writing })
    const hand = createHand({ ...shared, settler, describe: describerOf(undefined) })
    const { finished } = hand.desk(subscriptionOf())
    void keepLeases({ ...shared, held: hand.held, shortestLeaseMs: () => leaseMs }, ending.signal)
    const [first, second] = [leased(1, -4_000), leased(2, -4_000)]
    hand.hold([first, second])
    return { clock, sent, told, finished, first, second }
  }

  test('what a flush has written is not in the renewal that waited for it', async () => {
    const { clock, sent, finished, first } = together()
    finished(first, ack, 5)
    await idle()
    clock.advance(tickMs)
    await idle()
    await sent[0]!.answer(1)
    await sent[1]!.answer(2)

    expect(summaryOf(sent)).toEqual([
      ['delete_acked', '1'],
      ['extend_leases', '2'],
    ])
  })

  test('what one statement of a flush has written is not in it, or called lost, before the next one', async () => {
    const { clock, sent, told, finished, first, second } = together()
    finished(first, ack, 5)
    finished(second, { kind: 'fail', error: new Error('bad'), isShared: false }, 5)
    await idle()
    clock.advance(tickMs)
    await idle()
    await sent[0]!.answer(1)
    // The row that was deleted never comes back: neither from the renewal nor from the look without a lock.
    for (let n = 1; n < sent.length; n++) await sent[n]!.answer(2)

    expect(summaryOf(sent)).toEqual([
      ['delete_acked', '1'],
      ['extend_leases', '2'],
      ['reschedule_retried', '2'],
    ])
    expect(told.map(({ kind }) => kind)).toEqual(['acked', 'lease_renewed', 'retried'])
  })
})
