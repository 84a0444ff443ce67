import { describe, expect, test } from 'vitest'
import { fakeClock } from '../../../../tests/support/fake-clock.ts'
import type { ClaimedQueue, ClaimRow, MessageRow, QueueRow } from '../sql/claim-messages.ts'
import { resolveNames } from '../sql/names.ts'
import type { Statement } from '../sql/statement.ts'
import { createClaimer, type Demand } from './claimer.ts'
import type { Failpoint, FailpointName } from './failpoint.ts'
import type { Lane } from './lane.ts'

const names = resolveNames({ schema: 'public', table: 'outbox' })
const demand = (queue = 'orders', room = 10): Demand => ({ queue, room, leaseMs: 30_000 })

/** A fresh message; with `due`, one that was due then. */
function messageOf(seq: string, given: Partial<MessageRow> = {}): MessageRow {
  const fixed = { kind: 'message', queue: 'orders', key: null, body: 'eA==', headers: null } as const
  const counts = { attempts: '0', deliveries: '1', created: '1700000000123.456000', generation: null }
  return {
    ...fixed,
    ...counts,
    timer: null,
    first: null,
    suspect: 'false',
    id: `id-${seq}`,
    seq,
    due: null,
    ...given,
  }
}

function queueOf(given: Partial<QueueRow> = {}): QueueRow {
  const fixed = { kind: 'queue', queue: 'orders', nextdue: null, lowest: null, pause: null } as const
  return { ...fixed, own: '10', snapshot: '10:10:', top: '0', now: '1700000009999.5', ...given }
}

/** What one claim finds: the queue as seen by transaction `own`, none running but those of the snapshot. */
const seen = (own: number, given: Partial<QueueRow> = {}): QueueRow =>
  queueOf({ own: `${own}`, snapshot: `${own}:${own}:`, ...given })

type Answer = readonly ClaimRow[] | Error

interface Asked {
  readonly token: unknown
  readonly queues: readonly ClaimedQueue[]
}

interface Given {
  readonly answers?: Answer[]
  /** What happens while a statement is under way. */
  readonly during?: () => void
  readonly failpoint?: Failpoint
}

/** A claimer over a lane that gives the answers one after the other. */
function claimerOf({ answers = [], during = () => {}, failpoint }: Given = {}) {
  const clock = fakeClock()
  const asked: Asked[] = []
  const lane = {
    connection: 0,
    /** What happens before the turn of a statement comes. */
    waits: () => {},
    async run(given: () => Statement<ClaimRow>) {
      await Promise.resolve()
      lane.waits()
      const { values } = given()
      asked.push({ token: values[3], queues: JSON.parse(values[0] as string) })
      during()
      const answer = answers.shift() ?? [queueOf()]
      if (answer instanceof Error) throw answer
      return answer
    },
  }
  const claimer = createClaimer({ lane: lane as unknown as Lane, names, clock, failpoint })
  const claimAll = async (kinds: readonly ('claim' | 'sweep')[]): Promise<void> => {
    for (const kind of kinds) await claimer.claim([demand()], kind)
  }
  return { claimer, clock, lane, asked, claimAll }
}

const afterOf = (asked: readonly Asked[]) => asked.map(({ queues }) => queues[0]!.after)
const dueFromOf = (asked: readonly Asked[]) => asked.map(({ queues }) => queues[0]!.dueFromMs)

describe('what a claim asks for', () => {
  test('one statement asks for all queues, each with its room and lease', async () => {
    const { claimer, asked } = claimerOf({ answers: [[queueOf(), queueOf({ queue: 'mails' })]] })
    const found = await claimer.claim([demand(), { queue: 'mails', room: 3, leaseMs: 60_000 }], 'claim')

    const start = { after: '0', dueFromMs: null, sweep: false }
    expect(asked.map(({ queues }) => queues)).toEqual([
      [
        { queue: 'orders', room: 10, leaseMs: 30_000, ...start },
        { queue: 'mails', room: 3, leaseMs: 60_000, ...start },
      ],
    ])
    expect(found.map(({ queue }) => queue)).toEqual(['orders', 'mails'])
  })

  test.each([
    [1, 1_000],
    [4, 500],
    [400, 5],
  ])('room is capped so that a claim of %i queues takes at most %i of each', async (count, most) => {
    const { claimer, asked } = claimerOf()
    const queues = Array.from({ length: count }, (_, index) => demand(`queue-${index}`, 5_000))
    await claimer.claim(queues, 'claim')

    expect(new Set(asked[0]!.queues.map(({ room }) => room))).toEqual(new Set([most]))
  })

  test('each claim has a token of its own, which its leases carry', async () => {
    const answers = [[queueOf(), messageOf('1'), messageOf('2')], [queueOf()]]
    const { claimer, asked } = claimerOf({ answers })
    const [found] = await claimer.claim([demand()], 'claim')
    await claimer.claim([demand()], 'claim')

    const [first, second] = asked.map(({ token }) => token)
    expect(found!.held.map(({ lease }) => lease.token)).toEqual([first, first])
    expect(second).not.toBe(first)
  })
})

describe('what a claim gives', () => {
  test('is full when it took as much as it asked for, due and fresh together', async () => {
    const rows = [messageOf('1', { due: '5' }), messageOf('2')]
    const { claimer } = claimerOf({
      answers: [
        [queueOf(), ...rows],
        [queueOf(), ...rows],
      ],
    })
    const [exact] = await claimer.claim([demand('orders', 2)], 'claim')
    const [short] = await claimer.claim([demand('orders', 3)], 'claim')

    expect([exact!.isFull, short!.isFull]).toEqual([true, false])
  })

  test('is full at the cap though there was more room', async () => {
    const rows = Array.from({ length: 1_000 }, (_, index) => messageOf(`${index + 1}`))
    const { claimer } = claimerOf({ answers: [[queueOf(), ...rows]] })
    const [found] = await claimer.claim([demand('orders', 5_000)], 'claim')

    expect(found!.isFull).toBe(true)
  })

  test('leases end, here, after their time from when the statement was sent: not asked for, not answered', async () => {
    const { claimer, clock, lane } = claimerOf({
      answers: [[queueOf(), messageOf('1')]],
      during: () => clock.advance(400),
    })
    lane.waits = () => clock.advance(1_000)
    const [found] = await claimer.claim([demand()], 'claim')

    expect(clock.now()).toBe(1_400)
    expect(found!.held.map(({ deadline, leaseMs }) => [deadline, leaseMs])).toEqual([[31_000, 30_000]])
  })

  test('the next due time counts from when the claim was sent, however long its answer took: a claim that is sent then arrives in time', async () => {
    const { claimer, clock, lane } = claimerOf({
      answers: [[queueOf({ nextdue: '250.5' })], [queueOf()]],
      during: () => clock.advance(400),
    })
    lane.waits = () => clock.advance(1_000)
    const [waits] = await claimer.claim([demand()], 'claim')
    const [none] = await claimer.claim([demand()], 'claim')

    expect([waits!.nextDueAt, none!.nextDueAt]).toEqual([1_250.5, null])
  })

  test('the time of a sweep is that of its statement, and a claim does not change it', async () => {
    const times = [40, 7]
    const { claimer, clock, lane, claimAll } = claimerOf({ during: () => clock.advance(times.shift()!) })
    lane.waits = () => clock.advance(1_000)
    const sweepMs = [claimer.sweepMs]
    for (const kind of ['sweep', 'claim'] as const) {
      await claimAll([kind])
      sweepMs.push(claimer.sweepMs)
    }

    expect(sweepMs).toEqual([0, 40, 40])
  })
})

describe('where the next claim begins', () => {
  test('after the last fresh message, once a later claim has seen all older transactions end', async () => {
    const { asked, claimAll } = claimerOf({
      answers: [[seen(10, { top: '5' }), messageOf('4'), messageOf('5')], [seen(11, { top: '5' })]],
    })
    await claimAll(['claim', 'claim', 'claim'])

    expect(afterOf(asked)).toEqual(['0', '0', '5'])
  })

  test('not before the transactions that are older than the claim have ended', async () => {
    const { asked, claimAll } = claimerOf({
      answers: [
        [seen(10, { top: '5' }), messageOf('5')],
        [queueOf({ own: '12', snapshot: '9:12:9', top: '5' })],
        [queueOf({ own: '13', snapshot: '13:13:', top: '5' })],
      ],
    })
    await claimAll(['claim', 'claim', 'claim', 'claim'])

    expect(afterOf(asked)).toEqual(['0', '0', '0', '5'])
  })

  test('a transaction that was first seen 250 ms ago holds it back no longer, one of 249 ms does', async () => {
    const running = { snapshot: '9:12:9', top: '5' }
    const { asked, clock, claimAll } = claimerOf({
      answers: [
        [queueOf({ own: '12', ...running }), messageOf('5')],
        [queueOf({ own: '13', ...running, snapshot: '9:13:9' })],
        [queueOf({ own: '14', ...running, snapshot: '9:14:9' })],
      ],
    })
    await claimAll(['claim'])
    clock.advance(249)
    await claimAll(['claim'])
    clock.advance(1)
    await claimAll(['claim', 'claim'])

    expect(afterOf(asked)).toEqual(['0', '0', '0', '5'])
  })

  test('a claim that finds nothing goes on to the sequence value of the claim before it', async () => {
    const { asked, claimAll } = claimerOf({
      answers: [[seen(10, { top: '70' })], [seen(11, { top: '80' })], [seen(12, { top: '80' })]],
    })
    await claimAll(['claim', 'claim', 'claim', 'claim'])

    expect(afterOf(asked)).toEqual(['0', '0', '0', '70'])
  })

  test('each queue has a place of its own', async () => {
    const both = (own: number): ClaimRow[] => [
      seen(own, { top: '0' }),
      seen(own, { queue: 'mails', top: '0' }),
    ]
    const { claimer, asked } = claimerOf({
      answers: [[...both(10), messageOf('5'), messageOf('7', { queue: 'mails' })], both(11)],
    })
    for (let n = 0; n < 3; n++) await claimer.claim([demand(), demand('mails')], 'claim')

    expect(asked[2]!.queues.map(({ after }) => after)).toEqual(['5', '7'])
  })

  test('due messages are looked for from five seconds before the last one, and never from earlier', async () => {
    const { asked, claimAll } = claimerOf({
      answers: [
        [queueOf(), messageOf('1', { due: '70000' }), messageOf('2', { due: '90000.5' })],
        [queueOf()],
        [queueOf(), messageOf('3', { due: '20000' })],
        [queueOf(), messageOf('4', { due: '99000' })],
      ],
    })
    await claimAll(['claim', 'claim', 'sweep', 'claim', 'claim'])

    expect(dueFromOf(asked)).toEqual([null, 85_000.5, null, 85_000.5, 94_000])
  })
})

describe('where a sweep begins', () => {
  /** The lowest live row is 4 in every answer, and no transaction runs. */
  const sweptAnswers = (count: number): ClaimRow[][] =>
    Array.from({ length: count }, (_, index) => [seen(10 + index, { top: '9', lowest: '4' })])

  test('below the lowest live message that a sweep before the last one saw, and says that it is one', async () => {
    const { asked, claimAll } = claimerOf({ answers: sweptAnswers(3) })
    await claimAll(['sweep', 'sweep', 'sweep'])

    expect(afterOf(asked)).toEqual(['0', '0', '3'])
    expect(asked.map(({ queues }) => queues[0]!.sweep)).toEqual([true, true, true])
  })

  test('not above what a transaction may still commit, however long it has run', async () => {
    const held = (own: number): ClaimRow[] => [
      queueOf({ own: `${own}`, snapshot: `9:${own}:9`, top: '9', lowest: '4' }),
    ]
    const { asked, clock, claimAll } = claimerOf({ answers: [held(12), held(13)] })
    await claimAll(['sweep'])
    clock.advance(3_600_000)
    await claimAll(['sweep', 'sweep'])

    expect(afterOf(asked)).toEqual(['0', '0', '0'])
  })

  test('every tenth sweep begins at zero', async () => {
    const { asked, claimAll } = claimerOf({ answers: sweptAnswers(22) })
    await claimAll(Array.from({ length: 22 }, () => 'sweep'))

    const fromZero = afterOf(asked).flatMap((after, index) => (after === '0' ? [index] : []))
    expect(fromZero).toEqual([0, 1, 10, 20])
  })

  test('what claims say of the lowest message does not move it', async () => {
    const { asked, claimAll } = claimerOf({ answers: sweptAnswers(3) })
    await claimAll(['sweep', 'claim', 'sweep'])

    expect(afterOf(asked.filter(({ queues }) => queues[0]!.sweep))).toEqual(['0', '0'])
  })
})

describe('what a claimer forgets', () => {
  /** Moves the cursor to 5, the floor to 3 and the due floor to 85,000. */
  const learning = (): ClaimRow[][] => [
    [seen(10, { top: '5', lowest: '4' }), messageOf('5'), messageOf('1', { due: '90000' })],
    [seen(11, { top: '5', lowest: '4' })],
  ]
  const learned = [
    ['5', 85_000],
    ['3', null],
  ]
  const nothing = [
    ['0', null],
    ['0', null],
  ]
  const placesOf = (asked: readonly Asked[]) =>
    asked.map(({ queues: [queue] }) => [queue!.after, queue!.dueFromMs])

  test('nothing, while its connection lives', async () => {
    const { asked, claimAll } = claimerOf({ answers: [...learning(), [seen(12, { top: '5' })]] })
    await claimAll(['sweep', 'sweep', 'claim', 'sweep'])

    expect(placesOf(asked.slice(2))).toEqual(learned)
  })

  test('everything, when the lane has another connection by the time of the turn: once', async () => {
    const { asked, lane, claimAll } = claimerOf({ answers: [...learning(), ...learning()] })
    await claimAll(['sweep', 'sweep'])
    lane.waits = () => {
      lane.connection = 1
    }
    await claimAll(['claim', 'sweep', 'claim'])

    expect(placesOf(asked.slice(2))).toEqual([...nothing, learned[0]])
  })

  test('everything, when the sequence went back', async () => {
    const { asked, claimAll } = claimerOf({ answers: [...learning(), [seen(12, { top: '4' })]] })
    await claimAll(['sweep', 'sweep', 'claim', 'claim', 'sweep'])

    expect(placesOf(asked.slice(2))).toEqual([learned[0], ...nothing])
  })

  test('nothing, when a claim failed', async () => {
    const lost = new Error('connection lost')
    const { claimer, asked, claimAll } = claimerOf({ answers: [...learning(), lost] })
    await claimAll(['sweep', 'sweep'])
    await expect(claimer.claim([demand()], 'claim')).rejects.toBe(lost)
    await claimAll(['claim'])

    expect(placesOf(asked.slice(2))).toEqual([learned[0], learned[0]])
  })
})

describe('the failpoints of a claim', () => {
  test('lie before it is sent, while it is under way, and after its answer', async () => {
    const reached: (FailpointName | 'sent')[] = []
    const { claimer } = claimerOf({
      during: () => void reached.push('sent'),
      failpoint: { reach: async (name) => void reached.push(name) },
    })
    await claimer.claim([demand()], 'claim')

    expect(reached).toEqual(['before_claim', 'claim_sent', 'sent', 'after_claim'])
  })

  test('a claim that fails while it is held at one rejects where it is awaited, and nowhere else', async () => {
    const lost = new Error('connection lost')
    const unhandled: unknown[] = []
    const note = (error: unknown): void => void unhandled.push(error)
    process.on('unhandledRejection', note)
    const failpoint = { reach: () => new Promise<void>((resolve) => setImmediate(resolve)) }
    const { claimer } = claimerOf({ answers: [lost], failpoint })
    await expect(claimer.claim([demand()], 'claim')).rejects.toBe(lost)
    process.off('unhandledRejection', note)

    expect(unhandled).toEqual([])
  })
})
