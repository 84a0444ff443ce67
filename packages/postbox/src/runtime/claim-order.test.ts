import { describe, expect, test } from 'vitest'
import { fakeClock } from '../../../../tests/support/fake-clock.ts'
import { runtimeError } from '../core/runtime-errors.ts'
import type {
  OrderedClaimInput,
  OrderedMessageRow,
  OrderedQueue,
  OrderedQueueRow,
} from '../sql/claim-in-order.ts'
import { resolveNames } from '../sql/names.ts'
import type { Statement } from '../sql/statement.ts'
import { createOrderedClaimer } from './claim-order.ts'
import type { Demand } from './claimer.ts'
import type { Lane } from './lane.ts'

const names = resolveNames({ schema: 'public', table: 'outbox' })
const demand = (given: Partial<Demand> = {}): Demand => ({
  ...{ queue: 'orders', room: 10, leaseMs: 30_000, isOrdered: true },
  ...given,
})

function messageOf(seq: number, given: Partial<OrderedMessageRow> = {}): OrderedMessageRow {
  const fixed = { kind: 'message', queue: 'orders', key: 'a', body: 'eA==', headers: null } as const
  const counts = {
    attempts: '0',
    deliveries: '1',
    suspect: 'false',
    created: '1700000000123.456000',
    generation: null,
  }
  const none = { timer: null, first: null, due: null, afterdead: null }
  return { ...fixed, ...counts, ...none, id: `id-${seq}`, seq: `${seq}`, ...given }
}

function queueOf(own = 10, given: Partial<OrderedQueueRow> = {}): OrderedQueueRow {
  const fixed = { kind: 'queue', queue: 'orders', nextdue: null, now: '1700000009999.5', top: '0' } as const
  const looked = {
    reached: null,
    more: 'false',
    lastkey: null,
    joining: '0',
    leftkeys: null,
    leftover: 'false',
    pause: null,
  }
  return { ...fixed, ...looked, own: `${own}`, snapshot: `${own}:${own}:`, ...given }
}

type Answer = readonly object[] | Error

/** A claimer over a lane that gives the answers one after the other. */
function claimerOf(...answers: Answer[]) {
  const clock = fakeClock()
  const sent: { readonly name: string; readonly queues: readonly OrderedQueue[] }[] = []
  const options: { readonly patience?: number; late?(rows: readonly object[]): void }[] = []
  const lane = {
    connection: 0,
    async run(given: Statement<object> | (() => Statement<object>), how = {}) {
      const { name, values, input } = typeof given === 'function' ? given() : given
      const { queues = [] } = name === 'claim_in_order' ? (input as OrderedClaimInput) : {}
      sent.push({ name, queues: name === 'join_keys' ? JSON.parse(values[0] as string) : queues })
      options.push(how)
      clock.advance(7)
      const answer = answers.shift() ?? [queueOf()]
      if (answer instanceof Error) throw answer
      return answer
    },
  }
  const claimer = createOrderedClaimer({ lane: lane as unknown as Lane, names, clock })
  const asked = () => sent.map(({ queues }) => queues[0]!)
  return { claimer, clock, lane, sent, asked, options }
}

describe('a claim', () => {
  test('asks for fresh rows from the start, for what is due, and for no keys', async () => {
    const { claimer, asked } = claimerOf()
    await claimer.claim([demand()], 'claim')

    expect(asked()).toEqual([
      {
        ...{ queue: 'orders', room: 10, leaseMs: 30_000, after: '0' },
        ...{ dueFromMs: null, keys: [], keysFrom: null },
      },
    ])
  })

  test('takes no more than a claim may', async () => {
    const { claimer, asked } = claimerOf()
    await claimer.claim([demand({ room: 5_000 })], 'claim')

    expect(asked()[0]!.room).toBe(1_000)
  })

  test('gives what is due by time, then what is fresh by place, and says who died before it', async () => {
    const rows = [
      messageOf(9, { afterdead: 'id-7' }),
      messageOf(3, { key: null }),
      messageOf(5, { due: '200' }),
      messageOf(6, { due: '100' }),
    ]
    const { claimer } = claimerOf([queueOf(), ...rows])
    const [found] = await claimer.claim([demand()], 'claim')

    expect(found!.held.map(({ lease }) => [lease.seq, lease.isOrdered, lease.afterDead])).toEqual([
      ['6', true, null],
      ['5', true, null],
      ['3', false, null],
      ['9', true, 'id-7'],
    ])
    expect([found!.isFull, found!.nextDueAt]).toEqual([false, null])
  })

  test('begins where all that lies below has been seen, and at what is due a little before the last', async () => {
    const { claimer, asked } = claimerOf(
      [queueOf(10, { top: '8', reached: '8' }), messageOf(2, { due: '20000' })],
      [queueOf(11, { top: '8' })],
      [queueOf(12, { top: '8' })],
    )
    for (let n = 0; n < 3; n++) await claimer.claim([demand()], 'claim')

    expect(asked().map(({ after, dueFromMs }) => [after, dueFromMs])).toEqual([
      ['0', null],
      ['0', 15_000],
      ['8', 15_000],
    ])
  })

  test.each([
    ['on another connection', 'connection'],
    ['after a server that has given less places out', 'top'],
  ])('begins anew %s, and goes on with the keys that were settled', async (_, what) => {
    const top = what === 'top' ? '3' : '8'
    const { claimer, asked, lane } = claimerOf(
      [queueOf(10, { top: '8', reached: '8' })],
      [queueOf(11, { top: '8' })],
      [queueOf(12, { top })],
      [queueOf(13, { top })],
    )
    for (let n = 0; n < 2; n++) await claimer.claim([demand()], 'claim')
    if (what === 'connection') lane.connection = 1
    await claimer.claim([demand()], 'claim')
    claimer.keySettled('orders', 'a', '7')
    if (what === 'connection') lane.connection = 2
    await claimer.claim([demand()], 'claim')

    expect(asked().at(-1)).toMatchObject({
      after: '0',
      keys: [{ key: 'a', after: what === 'connection' ? '0' : '7' }],
    })
  })

  test('asks for what comes behind settled keys once, unless they are settled again meanwhile', async () => {
    const { claimer, asked, lane } = claimerOf()
    claimer.keySettled('orders', 'a', '7')
    claimer.keySettled('orders', 'b', '8')
    const run = lane.run
    lane.run = async (given, how) => {
      const answer = await run(given, how)
      if (asked().length === 1) claimer.keySettled('orders', 'b', '9')
      return answer
    }
    const [found] = await claimer.claim([demand()], 'claim')
    const [then] = await claimer.claim([demand()], 'claim')
    await claimer.claim([demand()], 'claim')

    expect(asked().map(({ keys }) => keys.map(({ key, after }) => `${key}${after}`))).toEqual([
      ['a7', 'b8'],
      ['b9'],
      [],
    ])
    // What is left to be asked for is there to be had.
    expect([found!.isFull, then!.isFull]).toEqual([true, false])
  })

  test('is full when it took what it might, or there is more in sight', async () => {
    const { claimer } = claimerOf([queueOf(), messageOf(1)], [queueOf(11, { more: 'true', reached: '5' })])
    const [taken] = await claimer.claim([demand({ room: 1 })], 'claim')
    const [more] = await claimer.claim([demand()], 'claim')

    expect([taken!.isFull, more!.isFull]).toEqual([true, true])
  })

  test.each(['claim', 'sweep'] as const)(
    'that brought nothing, though something was left (a %s), is tried again in a moment and not at once: others have locked it',
    async (kind) => {
      const left = { more: 'true', reached: '5', leftover: 'true' } as const
      const { claimer, clock } = claimerOf([queueOf(10, left)], [queueOf(11, { ...left, nextdue: '500' })])
      const [found] = await claimer.claim([demand()], kind)
      const receivedAt = clock.now()

      expect([found!.isFull, found!.nextDueAt]).toEqual([false, receivedAt + 50])
    },
  )

  test('that brought less than it might, and left something, goes on at once where more is in sight, or else in a moment', async () => {
    const { claimer, clock } = claimerOf(
      [queueOf(10, { more: 'true', reached: '5', leftover: 'true' }), messageOf(1)],
      [queueOf(11, { leftover: 'true', nextdue: '20' }), messageOf(2)],
      [queueOf(12, { leftover: 'true' }), messageOf(3)],
    )
    const founds = []
    for (let n = 0; n < 3; n++) founds.push((await claimer.claim([demand()], 'claim'))[0]!)
    const receivedAt = clock.now()

    expect(founds.map(({ isFull }) => isFull)).toEqual([true, false, false])
    expect(founds.map(({ nextDueAt }) => nextDueAt)).toEqual([
      receivedAt - 14 + 50,
      receivedAt - 14 + 20,
      receivedAt + 50,
    ])
  })

  test('that took all it might does not look again by itself for what was left', async () => {
    const { claimer } = claimerOf([queueOf(10, { leftover: 'true' }), messageOf(1)])
    const [found] = await claimer.claim([demand({ room: 1 })], 'claim')

    expect([found!.isFull, found!.nextDueAt]).toEqual([true, null])
  })

  test('that took too long gets longer the next time, and gives back what comes too late', async () => {
    const late = runtimeError('OUTBOX_STATEMENT_TIMEOUT', 'too late')
    const { claimer, options, sent } = claimerOf(late, [queueOf()], [queueOf()])
    await expect(claimer.claim([demand()], 'claim')).rejects.toBe(late)
    await claimer.claim([demand()], 'claim')
    await claimer.claim([demand()], 'claim')

    expect(options.map(({ patience }) => patience)).toEqual([1, 2, 1])
    options[0]!.late?.([queueOf(), messageOf(1)])
    expect(sent.at(-1)!.name).toBe('release_leases')
  })
})

describe('a sweep', () => {
  test('hops over the keys from where the last one ended, then walks over the rows', async () => {
    const { claimer, asked } = claimerOf(
      [queueOf(10, { lastkey: 'k' })],
      [queueOf(11, { more: 'true', reached: '1000' })],
      [queueOf(12)],
      [queueOf(13)],
    )
    const rounds = []
    for (let n = 0; n < 2; n++) rounds.push((await claimer.claim([demand()], 'sweep'))[0]!.round)

    expect(asked().map(({ keysFrom, after }) => [keysFrom, after])).toEqual([
      ['', '0'],
      [null, '0'],
      ['k', '0'],
      [null, '1000'],
    ])
    expect(rounds).toEqual([
      { isOver: false, isEmpty: false },
      { isOver: true, isEmpty: true },
    ])
  })

  test('begins at the first key and the first row again when a round is asked for, once, and no claim does', async () => {
    const { claimer, asked } = claimerOf(
      [queueOf(10, { lastkey: 'k' })],
      [queueOf(11, { more: 'true', reached: '1000' }), messageOf(1)],
      [queueOf(12)],
      [queueOf(13, { lastkey: 'l' })],
      [queueOf(14)],
      [queueOf(15)],
    )
    await claimer.claim([demand()], 'sweep')
    claimer.beginRound()
    await claimer.claim([demand()], 'claim')
    const rounds = []
    for (let n = 0; n < 2; n++) rounds.push((await claimer.claim([demand()], 'sweep'))[0]!.round)

    expect(asked().map(({ keysFrom, after }) => [keysFrom, after])).toEqual([
      ['', '0'],
      [null, '0'],
      [null, '0'],
      ['', '0'],
      [null, '0'],
      ['l', '0'],
    ])
    expect(rounds).toEqual([
      { isOver: false, isEmpty: false },
      { isOver: true, isEmpty: true },
    ])
  })

  test('is over and not empty when something was found, or has to join its key first', async () => {
    const { claimer } = claimerOf(
      [queueOf(10), messageOf(1)],
      [queueOf(11)],
      [queueOf(12, { joining: '1' })],
      [{ joined: 0 }],
      [queueOf(13)],
    )
    const rounds = []
    for (let n = 0; n < 2; n++) rounds.push((await claimer.claim([demand()], 'sweep'))[0]!.round)

    expect(rounds).toEqual(Array(2).fill({ isOver: true, isEmpty: false }))
  })

  test('walks with the room that is left, and not at all without', async () => {
    const { claimer, asked } = claimerOf(
      [queueOf(10), messageOf(1), messageOf(2)],
      [queueOf(11), messageOf(3)],
      [queueOf(12), messageOf(4)],
    )
    const [found] = await claimer.claim([demand({ room: 5 })], 'sweep')
    await claimer.claim([demand({ room: 1 })], 'sweep')

    expect(asked().map(({ room }) => room)).toEqual([5, 3, 1])
    expect(found!.held.map(({ lease }) => lease.seq)).toEqual(['1', '2', '3'])
  })

  test('reckons the room of each queue by what was found of it', async () => {
    const { claimer, sent } = claimerOf(
      [queueOf(10, { queue: 'mails' }), queueOf(10), messageOf(1)],
      [queueOf(11, { queue: 'mails' })],
    )
    const found = await claimer.claim([demand({ room: 1 }), demand({ queue: 'mails', room: 4 })], 'sweep')

    expect(sent[1]!.queues.map(({ queue, room }) => [queue, room])).toEqual([['mails', 4]])
    expect(found.map(({ queue, held }) => [queue, held.length])).toEqual([
      ['mails', 0],
      ['orders', 1],
    ])
  })

  test('whose walk fails gives what it has claimed to the handlers, and the next says that it failed', async () => {
    const [cut, again] = [new Error('cut'), new Error('again')]
    const { claimer } = claimerOf([queueOf(), messageOf(1)], cut, [queueOf()], again)

    expect((await claimer.claim([demand()], 'sweep'))[0]!.held).toHaveLength(1)
    await expect(claimer.claim([demand()], 'sweep')).rejects.toBe(cut)
    await expect(claimer.claim([demand()], 'sweep')).rejects.toBe(again)
  })

  test('tells how long it took, without its walk', async () => {
    const { claimer } = claimerOf()
    await claimer.claim([demand()], 'sweep')

    expect(claimer.sweepMs).toBe(7)
  })
})

describe('messages that are due and have to join their key', () => {
  const joining = queueOf(10, { joining: '2', nextdue: '500' })

  test('do so at once, and are looked for again', async () => {
    const { claimer, sent } = claimerOf([joining, queueOf(10, { queue: 'mails' })], [{ joined: 2 }])
    const found = await claimer.claim([demand(), demand({ queue: 'mails' })], 'claim')

    expect(sent.map(({ name }) => name)).toEqual(['claim_in_order', 'join_keys'])
    expect(sent[1]!.queues).toEqual(['orders'])
    expect(found.map(({ isFull }) => isFull)).toEqual([true, false])
  })

  test('whose keys somebody has are tried again in a moment', async () => {
    const { claimer, clock } = claimerOf([joining], [{ joined: 0 }])
    const sentAt = clock.now()
    const [found] = await claimer.claim([demand()], 'claim')

    expect([found!.isFull, found!.nextDueAt]).toEqual([false, sentAt + 7 + 50])
  })

  test.each(['claim', 'sweep'] as const)(
    'and cannot, leave what a %s has taken to its handlers; that they cannot is told by the next, once',
    async (kind) => {
      const cut = new Error('cut')
      const answers = [[joining, messageOf(1)], cut, ...(kind === 'sweep' ? [[queueOf()]] : [])]
      const { claimer, sent } = claimerOf(...answers)
      const [found] = await claimer.claim([demand()], kind)
      const before = sent.length

      expect(found!.held).toHaveLength(1)
      await expect(claimer.claim([demand()], kind)).rejects.toBe(cut)
      expect(sent).toHaveLength(before)
      expect(await claimer.claim([demand()], kind)).toHaveLength(1)
    },
  )

  test('and cannot, are told of at once where nothing was taken', async () => {
    const cut = new Error('cut')
    const { claimer } = claimerOf([joining], cut)

    await expect(claimer.claim([demand()], 'claim')).rejects.toBe(cut)
    expect(await claimer.claim([demand()], 'claim')).toHaveLength(1)
  })
})
